"""A write is refused or lost: the ledger and the board stay right."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.running.batch import run_board
from at.virtual import kit
from at.virtual.families import credentials
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.ledgers import boards_of
from tests.support.provisioning.virtual_tray import TAG, PowerPulled, Tray, provision, station_of


async def test_a_refused_write_is_a_failure_with_its_reason(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path, faults=("cmng-refused",))
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
        [record] = await station.ledger.call(boards_of)
    assert outcome.outcome == "failed"
    assert outcome.step in {"ca-chain", "key"}
    assert outcome.reason == record.reason != ""
    assert (outcome.writes, record.writes) == (0, 0), "what was refused wears no flash"


async def test_a_write_to_a_tag_that_takes_none_says_how_to_name_another(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path, faults=("cmng-refused=514",))
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.step) == ("failed", "ca-chain")
    assert "private key" not in outcome.hint
    assert "`--security-tag TAG`" in outcome.hint


async def test_a_write_that_was_acknowledged_and_not_kept_is_made_good_by_a_rerun(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        with monkeypatch.context() as patched:
            patched.setattr(credentials, "_write", lambda *_: kit.ok())
            [failed] = await provision(station, tray, 1)
        assert (failed.outcome, failed.step) == ("failed", "verify")
        assert "the modem lists nothing" in failed.reason
        assert failed.hint == (
            "the modem acknowledged what it did not keep: run the same command again, which "
            "writes it again"
        )
        [again] = await provision(station, tray, 1)
    assert (again.outcome, again.reason, again.writes) == ("done", "", 2)


async def test_a_clock_that_the_modem_acknowledges_and_does_not_take_is_not_to_be_set_again(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit.VirtualKit, "modem_time", lambda _kit: None)
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, Tray(tmp_path), 1)
    assert (outcome.outcome, outcome.step, outcome.exit) == ("failed", "clock", 1)
    assert outcome.reason == "it answers OK to AT+CCLK, and knows no time"
    assert "--set-clock" not in outcome.hint
    assert "`cellagent modem on`" in outcome.hint


async def test_a_key_whose_answer_was_lost_is_replaced_by_exactly_one(
    standin: StandIn, tmp_path: Path
) -> None:
    """The cable is pulled after the modem made a key and before anyone noted its public half."""
    tray = Tray(tmp_path)
    [location] = tray.locations(1)

    class LosesTheAnswer(ModemBoard):
        async def make_key(self, tag: int):  # type: ignore[no-untyped-def]
            await super().make_key(tag)
            raise PowerPulled

    async with station_of(standin, tmp_path) as station:
        with pytest.raises(PowerPulled):
            await run_board(location, station, tray.opening(LosesTheAnswer), lambda *_: None)
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
        assert outcome.outcome == "done"
        steps = await station.ledger.call(lambda ledger: ledger.steps(outcome.uuid))
    assert [one.detail for one in steps if one.step == "clear" and one.state == "done"] == [
        f"{TAG}:2"
    ]


async def test_a_key_that_the_modem_does_not_list_is_none(standin: StandIn, tmp_path: Path) -> None:
    tray = Tray(tmp_path)

    class HidesIt(ModemBoard):
        async def credentials(self):  # type: ignore[no-untyped-def]
            return [one for one in await super().credentials() if one.type != 2]

    async with station_of(standin, tmp_path) as station:
        outcome = await run_board(
            tray.locations(1)[0], station, tray.opening(HidesIt), lambda *_: None
        )
        [record] = await station.ledger.call(boards_of)
    assert (outcome.outcome, outcome.step, record.public_key) == ("failed", "key", "")
    assert "does not list it" in outcome.reason


async def test_a_certificate_for_another_key_than_the_boards_is_found_before_the_service_is_told(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign, another = DeviceCa.sign, ec.generate_private_key(ec.SECP256R1()).public_key()
    monkeypatch.setattr(DeviceCa, "sign", lambda ca, _key, *rest: sign(ca, another, *rest))
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, Tray(tmp_path), 1)
        [record] = await station.ledger.call(boards_of)
    assert (outcome.outcome, outcome.step, record.registered_key) == ("failed", "verify", "")
    assert "for another key" in outcome.reason
