"""An operator's second thoughts: no key that is at work dies without a word."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from msgspec.structs import replace

from agent.errors import RefusedByRule
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.ca.certificates import name_in
from agent.provisioning.ledger import KeyRecord
from agent.provisioning.planning.goal import CertificateSource, Goal, RegistrationMethod
from agent.provisioning.running.batch import plan_boards
from agent.provisioning.running.board_run import Outcome
from agent.provisioning.running.steps.registrar import Registrar
from at.commands.credentials import CredentialType
from at.virtual.transport import VirtualTransport
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.tray import registered_keys
from tests.support.provisioning.virtual_tray import (
    GOAL,
    TAG,
    PowerPulled,
    Tray,
    provision,
    station_of,
)

SECOND = 101
KEY = CredentialType.CLIENT_PRIVATE_KEY
OTHER_UUID = "50363154-3930-4d96-80f9-13121cf35adc"
BY_IMEI = replace(GOAL, id_prefix="nrf-")
BARE = replace(GOAL, certificate=CertificateSource.NONE)
BARE_BY_IMEI = replace(BY_IMEI, certificate=CertificateSource.NONE)


def flash(tray: Tray, number: int) -> Path:
    return tray.folder / f"board{number}.json"


def erase(tray: Tray, number: int) -> None:
    """Empty the credential store of a board's modem."""
    state = json.loads(flash(tray, number).read_text())
    flash(tray, number).write_text(json.dumps({**state, "credentials": {}}))


async def run(
    standin: StandIn, folder: Path, tray: Tray, number: int, goal: Goal = GOAL, address: str = ""
) -> list[Outcome]:
    async with station_of(standin, folder, goal, address) as station:
        return await provision(station, tray, number)


async def test_an_erased_board_gets_another_key_only_when_told(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    await run(standin, tmp_path, tray, 1)
    before = registered_keys(standin)
    erase(tray, 0)
    [refused] = await run(standin, tmp_path, tray, 1)
    assert (refused.outcome, refused.exit, refused.writes) == ("refused", 4, 0)
    assert "erased, or it is a clone" in refused.reason
    assert "--rekey" in refused.hint
    assert registered_keys(standin) == before
    [done] = await run(standin, tmp_path, tray, 1, replace(GOAL, rekey=True))
    assert (done.outcome, done.writes) == ("done", 3)
    assert registered_keys(standin) != before
    [again] = await run(standin, tmp_path, tray, 1, replace(GOAL, rekey=True))
    assert (again.outcome, again.writes) == ("unchanged", 0)


@pytest.mark.parametrize("first_is_done", [False, True])
async def test_a_clone_in_the_same_run_is_named_and_a_rerun_gives_it_no_key(
    standin: StandIn, tmp_path: Path, first_is_done: bool
) -> None:
    tray = Tray(tmp_path)
    if first_is_done:
        await run(standin, tmp_path, tray, 1)
    before = registered_keys(standin)
    give_identity_of_board_0(tray)
    for _ in range(2):
        outcomes = await run(standin, tmp_path, tray, 2)
        assert [(one.outcome, one.exit, one.writes) for one in outcomes] == [("refused", 4, 0)] * 2
        for one, other in zip(outcomes, ("board1", "board0"), strict=True):
            assert "a clone of the other, or one board is on two ports" in one.reason
            assert other in one.reason
            assert one.uuid
    assert registered_keys(standin) == before
    if first_is_done:
        [alone] = await run(standin, tmp_path, tray, 1)
        assert alone.outcome == "unchanged"
        flash(tray, 1).replace(flash(tray, 0))
        [clone] = await run(standin, tmp_path, tray, 1)
        assert (clone.outcome, clone.writes) == ("refused", 0)
        assert registered_keys(standin) == before


@pytest.mark.contract("D2.2")
async def test_two_boards_with_one_imei_are_refused_in_plan_and_run_before_any_write(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    give_identity_of_board_0(tray, OTHER_UUID)
    async with station_of(standin, tmp_path, BY_IMEI) as station:
        planned = await plan_boards(
            tray.locations(2), BY_IMEI, station.ledger, tray.open, station.now()
        )
    for one in planned:
        assert (one.exit, one.plan.writes) == (RefusedByRule.exit_code, 0)
        assert f"would be device {one.device_id}" in one.plan.refusal
    outcomes = await run(standin, tmp_path, tray, 2, BY_IMEI)
    assert [(one.outcome, one.exit, one.writes) for one in outcomes] == [("refused", 4, 0)] * 2
    assert not registered_keys(standin)
    assert [one.outcome for one in await run(standin, tmp_path, tray, 2)] == ["done"] * 2


def give_identity_of_board_0(tray: Tray, uuid: str = "") -> None:
    """Give board 1, a fresh one, the IMEI of board 0, and its UUID if no other is named."""
    usual = tray.transport

    def transport(port: str) -> VirtualTransport:
        if port != "board1":
            return usual(port)
        imei = "00440100000000"
        return VirtualTransport(statefile=str(flash(tray, 1)), imei=imei, uuid=uuid, instant=True)

    tray.transport = transport  # type: ignore[method-assign]


async def test_a_second_tag_is_refused_unless_told_and_then_the_first_key_is_retired(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    [first] = await run(standin, tmp_path, tray, 1)
    before = registered_keys(standin)
    second = replace(GOAL, security_tag=SECOND)
    [refused] = await run(standin, tmp_path, tray, 1, second)
    assert (refused.outcome, refused.exit, refused.writes) == ("refused", 4, 0)
    assert "one key for each device" in refused.reason
    assert "--second-tag" in refused.hint
    assert registered_keys(standin) == before
    [told] = await run(standin, tmp_path, tray, 1, replace(second, second_tag=True))
    assert told.outcome == "done"
    old, new = await keys_of(standin, tmp_path, first.uuid)
    assert (old.retired_at is not None, new.retired_at) == (True, None)
    assert f"the key of tag {SECOND} took its place" in old.retired_because
    assert registered_keys(standin) == {first.uuid: new.public_key} != before
    # The ordinary command does not lead back by itself: that would end the second key.
    [back] = await run(standin, tmp_path, tray, 1)
    assert (back.outcome, back.writes) == ("refused", 0)
    assert f"--security-tag {SECOND}" in back.hint
    assert "was retired" in back.reason
    [again] = await run(standin, tmp_path, tray, 1, second)
    assert (again.outcome, again.writes) == ("unchanged", 0)


async def keys_of(standin: StandIn, folder: Path, uuid: str) -> Sequence[KeyRecord]:
    async with station_of(standin, folder) as station:
        return await station.ledger.call(lambda ledger: ledger.keys(uuid))


@pytest.mark.contract("D2.2")
async def test_a_device_id_is_taken_from_another_board_only_when_told_and_it_is_locked_out(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    [first] = await run(standin, tmp_path, tray, 1, BY_IMEI)
    before = registered_keys(standin)
    give_identity_of_board_0(tray, OTHER_UUID)
    scrap = flash(tray, 0).rename(tmp_path / "scrap.json")
    for _ in range(2):
        [refused] = await run(standin, tmp_path, Newcomer(tray), 1, BY_IMEI)
        assert (refused.outcome, refused.exit, refused.writes) == ("refused", 4, 0)
        assert f"board {first.uuid} (IMEI " in refused.reason
        assert " UTC at station" in refused.reason
        assert f"--take-over {first.device_id}" in refused.hint
    assert registered_keys(standin) == before
    taking = replace(BY_IMEI, take_over=frozenset({first.device_id}))
    [taken] = await run(standin, tmp_path, Newcomer(tray), 1, taking)
    assert (taken.outcome, taken.device_id) == ("done", first.device_id)
    [lost] = await keys_of(standin, tmp_path, first.uuid)
    assert f"given to board {OTHER_UUID}" in lost.retired_because
    [again] = await run(standin, tmp_path, Newcomer(tray), 1, BY_IMEI)
    assert (again.outcome, again.writes) == ("unchanged", 0)
    scrap.rename(flash(tray, 0))
    [back] = await run(standin, tmp_path, tray, 1, BY_IMEI)
    assert (back.outcome, back.writes) == ("refused", 0)
    assert OTHER_UUID in back.reason


class Newcomer(Tray):
    """A tray whose one board is board 1 of another."""

    def __init__(self, tray: Tray) -> None:
        super().__init__(tray.folder)
        self._all = tray

    def locations(self, number: int) -> list[BoardLocation]:
        return self._all.locations(number + 1)[1:]

    def transport(self, port: str) -> VirtualTransport:
        return self._all.transport(port)


async def test_a_refused_newcomer_does_not_keep_the_first_board_from_its_device_id(
    standin: StandIn, tmp_path: Path
) -> None:
    """It had a key under its own UUID before, so that it is no stranger to the ledger."""
    tray = Tray(tmp_path)
    give_identity_of_board_0(tray, OTHER_UUID)
    await run(standin, tmp_path, Newcomer(tray), 1)
    await run(standin, tmp_path, tray, 1, BY_IMEI)
    before = registered_keys(standin)
    [refused] = await run(standin, tmp_path, Newcomer(tray), 1, BY_IMEI)
    assert refused.outcome == "refused"
    [first] = await run(standin, tmp_path, tray, 1, BY_IMEI)
    [own] = await run(standin, tmp_path, Newcomer(tray), 1)
    assert [(one.outcome, one.writes) for one in (first, own)] == [("unchanged", 0)] * 2
    assert registered_keys(standin) == before


async def test_a_second_tag_that_was_made_and_not_registered_takes_no_first_key_with_it(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    await run(standin, tmp_path, tray, 1)
    before = registered_keys(standin)
    unregistered = replace(GOAL, security_tag=SECOND, registration=RegistrationMethod.NONE)
    unregistered = replace(unregistered, prove=False, second_tag=True)
    [made] = await run(standin, tmp_path, tray, 1, unregistered)
    assert made.outcome == "done"
    [first] = await run(standin, tmp_path, tray, 1)
    assert first.outcome == "unchanged"
    [refused] = await run(standin, tmp_path, tray, 1, replace(GOAL, security_tag=SECOND))
    assert (refused.outcome, refused.writes) == ("refused", 0)
    assert registered_keys(standin) == before


async def test_what_was_allowed_and_why_stands_in_the_record(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    [first] = await run(standin, tmp_path, tray, 1)
    erase(tray, 0)
    await run(standin, tmp_path, tray, 1, replace(GOAL, rekey=True))
    async with station_of(standin, tmp_path) as station:
        runs = await station.ledger.call(lambda ledger: ledger.runs(first.uuid))
        old, _ = await station.ledger.call(lambda ledger: ledger.keys(first.uuid))
    assert [one.consent.partition(":")[0] for one in runs] == ["", "--rekey"]
    assert "the modem was erased" in runs[1].consent
    assert old.retired_because == runs[1].consent


@pytest.mark.contract("D2.2")
async def test_a_former_device_id_of_another_board_is_not_taken_without_a_word(
    standin: StandIn, tmp_path: Path
) -> None:
    """The service still takes the other board's key for it."""
    tray = Tray(tmp_path)
    give_identity_of_board_0(tray, OTHER_UUID)
    [former] = await run(standin, tmp_path, tray, 1, BARE_BY_IMEI)
    [first] = await run(standin, tmp_path, tray, 1, BARE)
    before = registered_keys(standin)
    [refused] = await run(standin, tmp_path, Newcomer(tray), 1, BARE_BY_IMEI)
    assert (refused.outcome, refused.writes) == ("refused", 0)
    assert first.uuid in refused.reason
    assert registered_keys(standin) == before
    taking = replace(BARE_BY_IMEI, take_over=frozenset({former.device_id}))
    [taken] = await run(standin, tmp_path, Newcomer(tray), 1, taking)
    [again] = await run(standin, tmp_path, Newcomer(tray), 1, BARE_BY_IMEI)
    [other] = await run(standin, tmp_path, tray, 1, BARE)
    assert [one.outcome for one in (taken, again, other)] == ["done", "unchanged", "unchanged"]


@pytest.mark.contract("D2.2")
async def test_a_certificate_of_another_device_id_is_not_called_right(
    standin: StandIn, tmp_path: Path
) -> None:
    """A certificate names one device: its key may be that of two."""
    tray = Tray(tmp_path)
    [first] = await run(standin, tmp_path, tray, 1)
    before = registered_keys(standin)
    [refused] = await run(standin, tmp_path, tray, 1, BY_IMEI)
    assert (refused.outcome, refused.writes) == ("refused", 0)
    assert f"tag {TAG} holds the client certificate of device {first.uuid}" in refused.reason
    assert refused.hint == f"`--replace {TAG}:1` allows it"
    assert registered_keys(standin) == before
    told = replace(BY_IMEI, replace=frozenset({(TAG, int(CredentialType.CLIENT_CERTIFICATE))}))
    [done] = await run(standin, tmp_path, tray, 1, told)
    [again] = await run(standin, tmp_path, tray, 1, BY_IMEI)
    assert [one.outcome for one in (done, again)] == ["done", "unchanged"]
    async with station_of(standin, tmp_path) as station:
        record = await station.ledger.call(lambda ledger: ledger.board(first.uuid))
    assert record is not None
    certificate = x509.load_pem_x509_certificate(record.certificate.encode())
    assert name_in(certificate) == done.device_id


@pytest.mark.contract("D2.2")
@pytest.mark.parametrize("erased", [False, True])
async def test_a_key_that_lost_one_of_its_two_device_ids_does_not_die_at_the_other_unasked(
    standin: StandIn, tmp_path: Path, address: str, erased: bool
) -> None:
    tray = Tray(tmp_path)
    give_identity_of_board_0(tray, OTHER_UUID)
    [own] = await run(standin, tmp_path, tray, 1, BARE, address)
    [lost] = await run(standin, tmp_path, tray, 1, BARE_BY_IMEI, address)
    assert len({lost.device_id, own.device_id}) == len(registered_keys(standin)) == 2
    taking = replace(BARE_BY_IMEI, take_over=frozenset({lost.device_id}))
    [taken] = await run(standin, tmp_path, Newcomer(tray), 1, taking, address)
    assert taken.outcome == "done"
    before = registered_keys(standin)
    if erased:
        erase(tray, 0)
    goal = BARE if erased else replace(BARE, security_tag=SECOND)
    [refused] = await run(standin, tmp_path, tray, 1, goal, address)
    assert (refused.outcome, refused.writes) == ("refused", 0)
    assert ("--rekey" if erased else "--second-tag") in refused.hint
    assert registered_keys(standin) == before


@pytest.mark.contract("D2.2")
async def test_a_second_tag_as_another_device_leaves_the_first_key_alive(
    standin: StandIn, tmp_path: Path, address: str
) -> None:
    tray = Tray(tmp_path)
    [first] = await run(standin, tmp_path, tray, 1, GOAL, address)
    second = replace(BY_IMEI, security_tag=SECOND, second_tag=True)
    [other] = await run(standin, tmp_path, tray, 1, second, address)
    assert [one.outcome for one in (first, other)] == ["done", "done"]
    before = registered_keys(standin)
    assert set(before) == {first.device_id, other.device_id}
    # Each is right at its own id, and neither takes the other's without a word.
    for goal in (GOAL, replace(second, second_tag=False)):
        [again] = await run(standin, tmp_path, tray, 1, goal, address)
        assert (again.outcome, again.writes) == ("unchanged", 0)
    for goal in (BY_IMEI, replace(GOAL, security_tag=SECOND)):
        [refused] = await run(standin, tmp_path, tray, 1, goal, address)
        assert (refused.outcome, refused.writes) == ("refused", 0)
        assert "--second-tag" in refused.hint
    assert registered_keys(standin) == before


async def test_a_key_whose_place_a_run_that_was_killed_may_have_taken_is_not_called_right_unproven(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    await run(standin, tmp_path, tray, 1)
    second = replace(GOAL, security_tag=SECOND, second_tag=True)

    class KilledAsTheServiceTookIt(Registrar):
        async def wait(self, request_id: str) -> None:
            await super().wait(request_id)
            raise PowerPulled

    async with station_of(standin, tmp_path, second) as station:
        assert station.registrar is not None
        station.registrar = KilledAsTheServiceTookIt(station.registrar.client, GOAL.registration)
        with suppress(PowerPulled):
            await provision(station, tray, 1)
    [unproven] = await run(standin, tmp_path, tray, 1, replace(GOAL, prove=False))
    assert (unproven.outcome, unproven.writes) == ("refused", 0)
    assert "--second-tag" in unproven.hint
    [resumed] = await run(standin, tmp_path, tray, 1, replace(second, prove=False))
    assert (resumed.outcome, resumed.writes) == ("done", 0)
