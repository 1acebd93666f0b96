"""The bench on virtual boards and the stand-in: what is left to do is done, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from operator_ca import make_ca
from standin import StandIn

from agent.auth.bearer import ApiKey
from agent.auth.credential import Keyring
from agent.call import Host
from agent.config.secrets import Secret
from agent.errors import RefusedByRule
from agent.http import HttpClient, HttpTransport
from agent.provisioning.batch import require_count, run_board, run_boards
from agent.provisioning.board import BoardLocation
from agent.provisioning.board_ledger import AsyncLedger
from agent.provisioning.board_run import Outcome, Station
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.goal import CertificateSource, Goal, KeyOrigin, RegistrationMethod
from agent.provisioning.ledger import open_ledger
from agent.provisioning.modem_board import ModemBoard
from agent.provisioning.plan import ProvisioningStep
from agent.provisioning.registrar import Registrar
from at.driver.modem import Modem
from at.protocol.errors import LinkLost
from at.virtual.transport import VirtualTransport

TAG = 16842753
CA_CHAIN = "-----BEGIN CERTIFICATE-----\nTEST ONLY\n-----END CERTIFICATE-----\n"
GOAL = Goal(TAG, CA_CHAIN, certificate=CertificateSource.OPERATOR_CA,
            registration=RegistrationMethod.ONBOARD, set_clock=True)  # fmt: skip


def now() -> datetime:
    return datetime.now(UTC)


class Tray:
    """Virtual boards with a state file each: they stay what they are from run to run."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.folder = folder
        self.options = options
        self.transports: dict[str, VirtualTransport] = {}

    def locations(self, number: int) -> list[BoardLocation]:
        return [BoardLocation(f"K{index}", f"1-{index}", f"S{index}", f"board{index}")
                for index in range(number)]  # fmt: skip

    def transport(self, port: str) -> VirtualTransport:
        index = int(port.removeprefix("board"))
        return VirtualTransport(
            str(self.folder / f"{port}.json"), imei=f"0044010000{index:04}", instant=True,
            **self.options,
        )  # fmt: skip

    @asynccontextmanager
    async def open(self, location: BoardLocation) -> AsyncIterator[ModemBoard]:
        transport = self.transports[location.port] = self.transport(location.port)
        modem = Modem(transport)
        await modem.open()
        try:
            yield ModemBoard(modem)
        finally:
            await modem.close()


@asynccontextmanager
async def station_of(
    standin: StandIn, folder: Path, goal: Goal = GOAL, address: str = ""
) -> AsyncIterator[Station]:
    ledger = AsyncLedger(open_ledger(address or str(folder / "ledger.sqlite"), "station"))
    keyring = Keyring([ApiKey(Secret(standin.credentials["api_key"]))])
    hosts = {host: standin.urls.get(host.value, "") for host in Host}
    (folder / "ca").mkdir(exist_ok=True)
    files = make_ca(folder / "ca") if not (folder / "ca/ca.pem").exists() else (
        folder / "ca/ca.pem", folder / "ca/ca.key")  # fmt: skip
    authority = DeviceCa.load(*files, lambda: "")
    try:
        async with HttpClient(HttpTransport(), hosts, keyring) as client:
            registrar = Registrar(client, goal.registration)
            yield Station(goal, ledger, registrar, authority, folder / "keys", now)
    finally:
        ledger.close()


async def provision(
    station: Station,
    tray: Tray,
    number: int,
    on_step: Callable[[BoardLocation, ProvisioningStep], None] = lambda *_: None,
) -> list[Outcome]:
    found = run_boards(tray.locations(number), station, tray.open, on_step)
    return sorted([outcome async for outcome in found], key=lambda one: one.location.port)


@pytest.mark.contract("C10", "D9.3", "D10.3", "D10.8", "D2.2")
async def test_a_tray_of_sixteen_is_provisioned_and_a_rerun_writes_nothing(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        first = await provision(station, tray, 16)
        assert {(one.outcome, one.writes, one.reason) for one in first} == {("done", 3, "")}
        again = await provision(station, tray, 16)
        assert {(one.outcome, one.writes) for one in again} == {("unchanged", 0)}
        records = await station.ledger.call(lambda ledger: ledger.boards())
    assert len({record.registered_key for record in records}) == 16
    assert {record.writes for record in records} == {3}


@pytest.mark.parametrize(
    "goal",
    [
        replace(
            GOAL, certificate=CertificateSource.NONE, registration=RegistrationMethod.PUBLIC_KEY
        ),
        replace(GOAL, key_origin=KeyOrigin.HOST, certificate=CertificateSource.SELF_SIGNED),
        replace(
            GOAL,
            registration=RegistrationMethod.CLAIM,
            certificate=CertificateSource.NONE,
            prove=False,
        ),
        replace(GOAL, id_prefix="nrf-"),
        replace(GOAL, registration=RegistrationMethod.NONE, prove=False),
    ],
    ids=["public-key", "host-key", "claim", "imei-id", "no-registration"],
)
async def test_every_way_ends_with_a_board_that_is_done(
    standin: StandIn, tmp_path: Path, goal: Goal
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path, goal) as station:
        [outcome] = await provision(station, tray, 1)
        assert (outcome.outcome, outcome.reason) == ("done", "")
        [again] = await provision(station, tray, 1)
        assert (again.outcome, again.writes) == ("unchanged", 0)


@pytest.mark.contract("D1.3")
async def test_old_firmware_is_refused_before_anything_is_written(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path, firmware="mfw_nrf9160_1.2.3", model="nrf9160")
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.step, outcome.exit, outcome.writes) == (
        "refused",
        "gate",
        4,
        0,
    )


@pytest.mark.contract("D10.5")
async def test_a_modem_without_time_is_told_how_to_get_it(standin: StandIn, tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path, replace(GOAL, set_clock=False)) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.step) == ("failed", "proof")
    assert "AT+CCLK" in outcome.hint


async def test_a_refused_write_is_a_failure_with_its_reason(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path, faults=("cmng-refused",))
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
        [record] = await station.ledger.call(lambda ledger: ledger.boards())
    assert outcome.outcome == "failed"
    assert outcome.step in {"ca-chain", "key"}
    assert outcome.reason == record.reason != ""


async def test_one_board_that_fails_stops_no_other(standin: StandIn, tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    healthy = tray.transport

    def one_is_silent(port: str) -> VirtualTransport:
        if port == "board1":
            return VirtualTransport(None, instant=True, faults=("silent",))
        return healthy(port)

    tray.transport = one_is_silent  # type: ignore[method-assign]
    async with station_of(standin, tmp_path) as station:
        outcomes = await provision(station, tray, 3)
    assert [one.outcome for one in outcomes] == ["done", "failed", "done"]
    assert outcomes[1].exit == 3


async def test_a_defect_of_ours_at_one_board_stops_no_other(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)

    def trips(location: BoardLocation, at: ProvisioningStep) -> None:
        if (location.port, at) == ("board1", ProvisioningStep.KEY):
            raise ZeroDivisionError

    async with station_of(standin, tmp_path) as station:
        outcomes = await provision(station, tray, 3, trips)
        again = await provision(station, tray, 3)
    assert [one.outcome for one in outcomes] == ["done", "failed", "done"]
    assert (outcomes[1].exit, outcomes[1].step) == (1, "key")
    assert "ZeroDivisionError" in outcomes[1].reason
    assert [one.outcome for one in again] == ["unchanged", "done", "unchanged"]


async def test_a_key_that_the_service_has_lost_is_registered_again_and_no_other(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        [first] = await provision(station, tray, 1)
        table = standin.cloud.table("device_keys")
        [(name, before)] = table.items()
        table.delete(name)
        [again] = await provision(station, tray, 1)
        assert (again.outcome, again.writes, again.reason) == ("done", 0, "")
        assert table.get(name)["public"] == before["public"]
        [last] = await provision(station, tray, 1)
    assert (first.outcome, last.outcome) == ("done", "unchanged")


async def test_a_board_that_is_not_to_be_registered_is_not_when_its_token_is_refused(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    goal = replace(GOAL, registration=RegistrationMethod.NONE, certificate=CertificateSource.NONE)
    async with station_of(standin, tmp_path, goal) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.step, outcome.exit) == ("failed", "proof", 5)
    assert not standin.cloud.table("device_keys").items()


async def test_the_mode_is_put_back_by_the_run_after_one_that_was_killed(
    standin: StandIn, tmp_path: Path
) -> None:
    """The host alone dies: the kit stays in the mode in which it took the credentials."""
    tray = Tray(tmp_path)
    [location] = tray.locations(1)
    transport = tray.transport(location.port)
    modem = Modem(transport)
    await modem.open()
    board = ModemBoard(modem)

    @asynccontextmanager
    async def same_kit(_place: BoardLocation) -> AsyncIterator[ModemBoard]:
        yield board

    def die(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is ProvisioningStep.WRITE:
            board.set_mode = dead  # type: ignore[method-assign]
            raise PowerPulled

    async def dead(_mode: int) -> None:
        raise LinkLost("the process that would is dead")

    await board.set_mode(1)
    async with station_of(standin, tmp_path) as station:
        with suppress(PowerPulled):
            await run_board(location, station, same_kit, die)
    assert (await board.read()).mode == 4
    board = ModemBoard(modem)
    async with station_of(standin, tmp_path) as station:
        outcome = await run_board(location, station, same_kit, lambda *_: None)
        assert outcome.outcome == "done", outcome.reason
    assert (await board.read()).mode == 1
    await board.set_mode(4)  # by somebody else, whose choice it stays
    async with station_of(standin, tmp_path) as station:
        await run_board(location, station, same_kit, lambda *_: None)
    assert (await board.read()).mode == 4
    await modem.close()


class PowerPulled(BaseException):
    """The process dies here."""


@pytest.mark.parametrize(
    "step", [step for step in ProvisioningStep if step is not ProvisioningStep.RESTORE]
)
async def test_power_pulled_at_a_step_is_made_good_by_a_rerun(
    standin: StandIn, tmp_path: Path, step: ProvisioningStep
) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)

    def pull(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is step:
            raise PowerPulled

    async with station_of(standin, tmp_path) as station:
        with suppress(PowerPulled):
            await run_board(location, station, tray.open, pull)
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
        assert outcome.ok, outcome.reason
        [record] = await station.ledger.call(lambda ledger: ledger.boards())
        async with tray.open(location) as board:
            held = [one for one in await board.credentials() if one.tag == TAG]
    assert sorted(one.type for one in held) == [0, 1, 2]
    assert record.registered_key


async def test_a_key_whose_answer_was_lost_is_replaced_by_exactly_one(
    standin: StandIn, tmp_path: Path
) -> None:
    """The cable is pulled after the modem made a key and before anyone noted its public half."""
    tray = Tray(tmp_path)
    [location] = tray.locations(1)

    class LosesTheAnswer(ModemBoard):
        async def make_key(self, tag: int, subject: str):  # type: ignore[no-untyped-def]
            await super().make_key(tag, subject)
            raise PowerPulled

    @asynccontextmanager
    async def opened(location: BoardLocation) -> AsyncIterator[ModemBoard]:
        async with tray.open(location) as board:
            yield LosesTheAnswer(board._modem)

    async with station_of(standin, tmp_path) as station:
        with pytest.raises(PowerPulled):
            await run_board(location, station, opened, lambda *_: None)
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
        assert outcome.outcome == "done"
        steps = await station.ledger.call(lambda ledger: ledger.steps(outcome.uuid))
    assert [one.detail for one in steps if one.step == "clear" and one.state == "done"] == [
        f"{TAG}:2"
    ]


@pytest.mark.parametrize(
    "swap_at",
    [
        ProvisioningStep.CA_CHAIN,
        ProvisioningStep.KEY,
        ProvisioningStep.WRITE,
        ProvisioningStep.VERIFY,
    ],
)
async def test_a_swapped_board_gets_no_key(
    standin: StandIn, tmp_path: Path, swap_at: ProvisioningStep
) -> None:
    """Another board answers on the port from some step on: it is told, nothing is written to it."""
    tray = Tray(tmp_path)
    [location, other] = tray.locations(2)
    boards: list[ModemBoard] = []
    async with station_of(standin, tmp_path) as station, tray.open(other) as second:

        @asynccontextmanager
        async def opened(location: BoardLocation) -> AsyncIterator[ModemBoard]:
            async with tray.open(location) as board:
                boards.append(board)
                yield board

        def swap(_place: BoardLocation, at: ProvisioningStep) -> None:
            if at is swap_at:
                boards[0]._modem = second._modem

        outcome = await run_board(location, station, opened, swap)
        assert (outcome.outcome, outcome.exit) == ("swapped", 4), outcome.reason
        assert [one for one in await second.credentials() if one.tag == TAG] == []


def test_another_number_of_boards_than_expected_stops_everything(tmp_path: Path) -> None:
    locations = Tray(tmp_path).locations(3)
    require_count(locations, None)
    require_count(locations, 3)
    with pytest.raises(RefusedByRule, match="3 boards are there, 4 were expected: S0, S1, S2"):
        require_count(locations, 4)


async def test_being_stopped_puts_the_mode_back(standin: StandIn, tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)
    reached = asyncio.Event()
    modes: list[int] = []

    @asynccontextmanager
    async def opened(location: BoardLocation) -> AsyncIterator[ModemBoard]:
        async with tray.open(location) as board:
            await board.set_mode(1)
            try:
                yield board
            finally:
                modes.append((await board.read()).mode)

    def at_key(_place: BoardLocation, at: ProvisioningStep) -> None:
        if at is ProvisioningStep.KEY:
            reached.set()

    async with station_of(standin, tmp_path) as station:
        task = asyncio.create_task(run_board(location, station, opened, at_key))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert modes == [1]
