"""A claimed kit is given its credentials by the service's commands, to the end, and after kills."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent.http import HttpClient
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.planning.goal import CertificateSource, RegistrationMethod
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.batch import plan_boards, run_board
from agent.provisioning.running.board_run import Station
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.steps import commanded_store
from agent.standin.device_cloud.tables import CLAIMED, COMMANDS
from agent.standin.principal import DEVICE_KEYS
from at import provisioning_host
from at.commands.functional_mode import SetFunctionalMode
from at.driver.modem import Modem
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.ledgers import boards_of
from tests.support.provisioning.virtual_tray import (
    GOAL,
    TAG,
    PowerPulled,
    Tray,
    provision,
    station_of,
)

CLAIM = replace(GOAL, registration=RegistrationMethod.CLAIM)
SM2 = "serial-modem-2.0.0"
STEPS = [
    *("gate", "identity", "clock", "other-keys", "claim", "online"),
    *("ca-chain", "key", "certificate", "write", "verify", "register", "proof", "restore"),
]


def tray_of(standin: StandIn, folder: Path, **options: object) -> Tray:
    given = {"firmware": SM2, "provisioning": standin.urls["provisioning"], **options}
    return Tray(folder, **given)


def commands_of(standin: StandIn) -> list[tuple[str, bool, bool]]:
    """Return the kind of each command, whether a kit answered it, and whether that failed."""
    table = standin.cloud.table(COMMANDS)
    [claimed] = standin.cloud.table(CLAIMED).values()
    rows = [table[name] for name in claimed.commands]
    return [(next(iter(row.request)), row.by_kit, row.failed) for row in rows]


@pytest.mark.contract("D10.8")
async def test_a_claim_goes_on_to_a_proof_by_what_the_kit_takes_itself(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = tray_of(standin, tmp_path)
    seen: list[str] = []
    async with station_of(standin, tmp_path, CLAIM) as station:
        [outcome] = await provision(station, tray, 1, lambda _, step: seen.append(step.value))
        assert (outcome.outcome, outcome.reason, outcome.writes) == ("done", "", 3)
        assert seen[1:] == STEPS  # it is asked who it is before there is a plan
        [record] = await station.ledger.call(boards_of)
        assert record.registered_as == f"claim {record.uuid}"
        assert record.registered_key
        assert [row.device_id for _, row in standin.cloud.table(DEVICE_KEYS).items()] == [
            record.uuid
        ]
        assert commands_of(standin) == [
            (kind, True, False)
            for kind in (
                *("serverCertificate", "certificateSigningRequest", "clientCertificate"),
                "finished",
            )
        ]
        async with tray.open(tray.locations(1)[0]) as board:
            state = await board.read()
            assert state.mode == 0  # as it was found
            assert sorted(one.type for one in state.credentials if one.tag == TAG) == [0, 1, 2]
        [again] = await provision(station, tray, 1)
        assert (again.outcome, again.writes) == ("unchanged", 0)
    assert len(commands_of(standin)) == 4


async def test_a_kit_that_gets_the_time_from_its_network_is_asked_for_its_keys_once_it_is_online(
    standin: StandIn, tmp_path: Path
) -> None:
    seen: list[str] = []
    async with station_of(standin, tmp_path, replace(CLAIM, set_clock=False)) as station:
        [outcome] = await provision(
            station, tray_of(standin, tmp_path), 1, lambda _, step: seen.append(step.value)
        )
    assert outcome.outcome == "done"
    assert seen[3:6] == ["claim", "online", "other-keys"]


async def test_without_a_certificate_the_key_of_the_request_is_registered(
    standin: StandIn, tmp_path: Path
) -> None:
    goal = replace(CLAIM, certificate=CertificateSource.NONE, ca_chain="", id_prefix="nrf-")
    async with station_of(standin, tmp_path, goal) as station:
        [outcome] = await provision(station, tray_of(standin, tmp_path), 1)
    assert (outcome.outcome, outcome.reason) == ("done", "")
    assert [kind for kind, *_ in commands_of(standin)] == ["certificateSigningRequest", "finished"]


@pytest.mark.parametrize("firmware", ["serial-modem-1.0.0", "2.0.4"])
async def test_a_kit_without_a_client_is_refused_before_it_is_claimed(
    standin: StandIn, tmp_path: Path, firmware: str
) -> None:
    tray = tray_of(standin, tmp_path, firmware=firmware, provisioning="")
    async with station_of(standin, tmp_path, CLAIM) as station:
        [planned] = await plan_boards(
            tray.locations(1), CLAIM, station.ledger, tray.open, station.now()
        )
        [outcome] = await provision(station, tray, 1)
    assert "#XNRFPROV" in planned.plan.refusal
    assert "--no-proof" in planned.plan.hint
    assert (outcome.outcome, outcome.exit, outcome.reason_code) == (
        *("refused", 4),
        "no-provisioning-client",
    )
    assert not standin.cloud.table(CLAIMED).items()


async def done_on(board: ModemBoard, location: BoardLocation, station: Station) -> Outcome:
    """Run a board that is open already, and stays so; return its outcome, which is done."""

    @asynccontextmanager
    async def same_kit(_place: BoardLocation) -> AsyncIterator[ModemBoard]:
        yield board

    outcome = await run_board(location, station, same_kit, lambda *_: None)
    assert outcome.outcome == "done", outcome.reason
    return outcome


@pytest.mark.parametrize("mode", [0, 1, 4])
async def test_the_mode_is_put_back(standin: StandIn, tmp_path: Path, mode: int) -> None:
    tray = tray_of(standin, tmp_path)
    [location] = tray.locations(1)
    async with station_of(standin, tmp_path, CLAIM) as station, tray.open(location) as board:
        await board.set_mode(mode)
        await done_on(board, location, station)
        assert (await board.read()).mode == mode


@pytest.mark.parametrize(
    ("set_clock", "mode", "is_set"), [(True, 0, True), (False, 0, False), (True, 1, False)]
)
async def test_the_clock_is_set_where_that_is_allowed_and_the_kit_has_no_time(
    standin: StandIn, tmp_path: Path, set_clock: bool, mode: int, is_set: bool
) -> None:
    tray, goal = tray_of(standin, tmp_path), replace(CLAIM, set_clock=set_clock)
    [location] = tray.locations(1)
    async with station_of(standin, tmp_path, goal) as station, tray.open(location) as board:
        await board.set_mode(mode)
        outcome = await done_on(board, location, station)
        notes = await station.ledger.call(lambda ledger: ledger.steps(outcome.uuid))
        assert ("clock" in {note.step for note in notes}) is is_set


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"faults": ("provisioning-failed=-5",)}, "#XNRFPROV: -5"),
        ({"faults": ("keygen-failed",)}, "code 523"),
        ({"faults": ("memory-full",)}, "code 515"),
    ],
)
async def test_a_kit_that_does_not_take_its_commands_fails_with_the_cause(
    standin: StandIn, tmp_path: Path, options: dict[str, object], says: str
) -> None:
    tray = tray_of(standin, tmp_path, **options)
    async with station_of(standin, tmp_path, CLAIM) as station:
        [outcome] = await provision(station, tray, 1)
        assert (outcome.outcome, outcome.exit) == ("failed", 1)
        assert says in outcome.reason
        assert outcome.hint
        tray.options["faults"] = ()
        [again] = await provision(station, tray, 1)
    assert (again.outcome, again.reason) == ("done", "")


async def test_an_answer_that_the_stand_in_played_is_no_proof(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commanded_store, "_PAUSES_S", (0.4, 0.4))
    tray = tray_of(standin, tmp_path, provisioning="")  # the kit asks nobody
    goal = replace(CLAIM, ca_chain="")
    async with station_of(standin, tmp_path, goal) as station:
        [outcome] = await provision(station, tray, 1)
    assert outcome.outcome == "failed"
    assert outcome.step == "key"
    assert not standin.cloud.table(DEVICE_KEYS).items()


@pytest.mark.parametrize("step", [step for step in STEPS if step != "restore"])
async def test_power_pulled_at_a_step_is_made_good_by_a_rerun(
    standin: StandIn, tmp_path: Path, step: str
) -> None:
    tray = tray_of(standin, tmp_path)
    [location] = tray.locations(1)

    def pull(_place: object, at: ProvisioningStep) -> None:
        if at.value == step:
            raise PowerPulled

    async with station_of(standin, tmp_path, CLAIM) as station:
        with suppress(PowerPulled):
            await run_board(location, station, tray.open, pull)
    async with station_of(standin, tmp_path, CLAIM) as station:
        [outcome] = await provision(station, tray, 1)
        assert outcome.ok, outcome.reason
        [record] = await station.ledger.call(boards_of)
        async with tray.open(location) as board:
            state = await board.read()
    assert sorted(one.type for one in state.credentials if one.tag == TAG) == [0, 1, 2]
    assert record.registered_key
    assert not any(failed for *_, failed in commands_of(standin))


class Killer:
    """Pulls the power at the `at`-th edge: before and after each call, and each change of mode."""

    def __init__(self, at: int, patch: pytest.MonkeyPatch) -> None:
        self.at, self.seen = at, 0
        for owner, name in ((HttpClient, "send"), (Modem, "send")):
            patch.setattr(owner, name, self._edged(getattr(owner, name)))

    def _edged(self, send: Any) -> Any:
        async def sent(sender: Any, what: Any, **options: Any) -> Any:
            counts = isinstance(sender, HttpClient) or isinstance(what, SetFunctionalMode)
            self._edge(counts)
            answer = await send(sender, what, **options)
            self._edge(counts)
            return answer

        return sent

    def _edge(self, counts: bool) -> None:
        self.seen += counts
        if counts and self.seen == self.at:
            raise PowerPulled


@pytest.mark.parametrize("before", [[1, 4], [1, 4, 1]], ids=["off", "on"])
async def test_a_kit_that_waits_for_the_radio_since_a_kill_is_brought_to_the_end(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[int]
) -> None:
    """The kit lives on, and its client with it, which asked a host that is gone."""
    monkeypatch.setattr(provisioning_host, "_LEFT_S", 0.2)
    tray = tray_of(standin, tmp_path)
    [location] = tray.locations(1)
    async with tray.open(location) as board:

        @asynccontextmanager
        async def same_kit(_place: BoardLocation) -> AsyncIterator[ModemBoard]:
            yield board

        modes: list[int] = []
        send = Modem.send

        async def dying(modem: Modem, what: Any, **options: Any) -> Any:
            if isinstance(what, SetFunctionalMode):
                modes.append(what.fun)
                if modes == before:
                    raise PowerPulled
            return await send(modem, what, **options)

        async with station_of(standin, tmp_path, CLAIM) as station:
            with monkeypatch.context() as patch, suppress(PowerPulled):
                patch.setattr(Modem, "send", dying)
                await run_board(location, station, same_kit, lambda *_: None)
        assert modes == before
        async with station_of(standin, tmp_path, CLAIM) as station:
            outcome = await run_board(location, station, same_kit, lambda *_: None)
        assert (outcome.outcome, outcome.reason) == ("done", "")
        state = await board.read()
    assert sorted(one.type for one in state.credentials if one.tag == TAG) == [0, 1, 2]


SMALL = replace(CLAIM, certificate=CertificateSource.NONE, ca_chain="")


async def killed_at(standin: StandIn, folder: Path, edge: int) -> int:
    """Pull the power at an edge; return how many there were."""
    tray = tray_of(standin, folder)
    [location] = tray.locations(1)
    with pytest.MonkeyPatch.context() as patch:
        killer = Killer(edge, patch)
        async with station_of(standin, folder, SMALL) as station:
            with suppress(PowerPulled):
                await run_board(location, station, tray.open, lambda *_: None)
    return killer.seen


@pytest.mark.parametrize("part", range(4))
async def test_a_kill_at_any_edge_leaves_one_key_which_a_rerun_proves(
    standin: StandIn, tmp_path: Path, part: int
) -> None:
    (tmp_path / "whole").mkdir()
    edges = await killed_at(standin, tmp_path / "whole", 0)
    assert edges > 20
    for edge in range(1 + part, edges, 4):
        for row in list(standin.cloud.table(CLAIMED).items()):
            standin.cloud.table(CLAIMED).delete(row[0])
        folder = tmp_path / str(edge)
        folder.mkdir()
        await killed_at(standin, folder, edge)
        async with station_of(standin, folder, SMALL) as station:
            [outcome] = await provision(station, tray_of(standin, folder), 1)
            assert outcome.ok, (edge, outcome.reason)
            [record] = await station.ledger.call(boards_of)
        assert record.registered_key, edge
        asked = commands_of(standin)
        assert not any(failed for *_, failed in asked), edge
        table = standin.cloud.table(COMMANDS)
        [claimed] = standin.cloud.table(CLAIMED).values()
        waiting = [table[name] for name in claimed.commands if table[name].response is None]
        assert [next(iter(row.request)) for row in waiting] in ([], ["finished"]), edge
