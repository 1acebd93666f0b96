"""The label that was scanned for a run goes to its board, unless that is a clone of the board."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from agent.provisioning.running.batch import run_board
from agent.provisioning.running.board_run import Station
from at.virtual.transport import VirtualTransport
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.virtual_tray import GOAL, Tray, station_of

UUID = "50363154-3930-4d96-80f9-13121cf35adc"


class OneUuid(Tray):
    """Boards that all say they have the same UUID, each with an IMEI of its own."""

    def transport(self, port: str) -> VirtualTransport:
        index = int(port.removeprefix("board"))
        return VirtualTransport(
            statefile=str(self.folder / f"{port}.json"), imei=f"0044010000{index:04}", uuid=UUID,
            instant=True,
        )  # fmt: skip


async def run(station: Station, tray: Tray, index: int, label: str) -> tuple[str, str]:
    """Run one board, and return its outcome with the label that the ledger has for its UUID."""
    place = tray.locations(index + 1)[index]
    outcome = await run_board(place, station, tray.open, lambda *_: None, label=label)
    record = await station.ledger.call(lambda ledger: ledger.board(UUID))
    return outcome.outcome, record.label if record is not None else ""


async def test_a_refused_clone_gives_the_board_no_label(standin: StandIn, tmp_path: Path) -> None:
    tray = OneUuid(tmp_path)
    async with station_of(standin, tmp_path) as station:
        assert await run(station, tray, 0, "") == ("done", "")
        for _ in range(2):
            assert await run(station, tray, 1, "L2") == ("refused", "")
        assert await run(station, tray, 0, "L1") == ("unchanged", "L1")


async def test_a_clone_that_was_allowed_has_the_label(standin: StandIn, tmp_path: Path) -> None:
    tray = OneUuid(tmp_path)
    async with station_of(standin, tmp_path) as station:
        assert await run(station, tray, 0, "") == ("done", "")
    async with station_of(standin, tmp_path, replace(GOAL, rekey=True)) as station:
        assert await run(station, tray, 1, "L2") == ("done", "L2")


async def test_a_board_that_is_refused_for_what_it_holds_is_found_by_its_label(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = OneUuid(tmp_path)
    async with tray.open(tray.locations(1)[0]) as board:
        await board.make_key(GOAL.security_tag)
    async with station_of(standin, tmp_path) as station:
        assert await run(station, tray, 0, "L1") == ("refused", "L1")
