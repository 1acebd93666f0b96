"""A measurement of cells: every search, every end of it, and nothing left running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import virtual_time
from line_modem import LineModem

from agent.errors import UsageError
from agent.location.cell_scan import (
    SEARCHES,
    CellScan,
    NoCells,
    require_firmware,
    scan_cells,
)
from at.commands.power import SetFunctionalMode
from at.driver.modem import Modem
from at.protocol.errors import CommandRejected, FirmwareRefused, LinkLost, ParseError
from at.virtual.transport import VirtualTransport

MONITOR = '%XMONITOR: 1,"","","26295","00B7",7,4,"00011B07",7,2300,63,39,"","","",""'
RESULT = '%NCELLMEAS: {},"0202B181","00101","0901",80,6400,43,44,20,5000,6400,143,35,15,4,4880'


class Kit(LineModem):
    """A modem whose measurement ends as the test says: `told` after the start, `stopped` after."""

    def __init__(
        self,
        told: str | None = None,
        stopped: str | None = None,
        *,
        monitor: str = "%XMONITOR: 2",
        firmware: str = "mfw_nrf9160_1.3.5",
        refuses: bool = False,
    ) -> None:
        super().__init__(self.answer)
        self.told, self.stopped, self.monitor = told, stopped, monitor
        self.firmware, self.refuses = firmware, refuses
        self.measures = asyncio.Event()

    def answer(self, command: str) -> str | None:
        if command == "AT+CGMR":
            return self.firmware
        if command == "AT%XMONITOR":
            return self.monitor
        if command == "AT%NCELLMEASSTOP":
            self._later(self.stopped)
        elif command.startswith("AT%NCELLMEAS"):
            if self.refuses:
                return None
            self._later(self.told)
            self.measures.set()
        return ""

    def _later(self, line: str | None) -> None:
        if line is not None:
            asyncio.get_running_loop().call_later(1.0, self.say, line)

    @property
    def measured(self) -> list[str]:
        return [line for line in self.heard if "NCELLMEAS" in line]


made: list[Kit] = []


def scanned(make: Callable[[], Kit], search: str = "default", count: int | None = None) -> CellScan:
    """Scan in virtual time; `made` keeps the kit, for the test to look at."""

    async def work() -> CellScan:
        made[:] = [make()]
        modem = Modem(made[0].transport)
        await modem.open()
        try:
            return await scan_cells(modem, search, count=count)
        finally:
            await modem.close()

    return virtual_time.run(work())


@pytest.fixture
async def registered() -> object:
    transport = VirtualTransport(instant=True)
    modem = Modem(transport)
    await modem.open()
    await modem.subscribe("AT+CEREG=1")
    with modem.notices("+CEREG") as heard:
        await modem.send(SetFunctionalMode(1))
        while not (await anext(heard)).line.startswith("+CEREG: 1"):
            pass
    yield modem
    await modem.close()


@pytest.mark.contract("D8.2", "C5")
@pytest.mark.parametrize("search", SEARCHES)
async def test_each_search_hears_the_cells_around_the_kit(registered: Modem, search: str) -> None:
    scan = await scan_cells(registered, search)
    assert (scan.source, scan.radio, scan.on_cell) == ("%NCELLMEAS", "ltecatm", True)
    assert len(scan.cells) == (5 if search.startswith("gci") else 1)
    assert {"mcc", "mnc", "eci", "tac", "rsrp", "rsrq", "earfcn", "pci", "adv", "nmr"} == set(
        scan.cells[0]
    )


async def test_as_many_cells_are_listed_as_are_asked_for(registered: Modem) -> None:
    assert len((await scan_cells(registered, "gci-default", count=3)).cells) == 3
    with pytest.raises(UsageError, match="takes no count"):
        await scan_cells(registered, "default", count=3)


def test_a_firmware_without_search_types_measures_what_it_can() -> None:
    for search in SEARCHES:
        scan = scanned(lambda: Kit(RESULT.format(0), firmware="mfw_nrf9160_1.3.3"), search)
        assert made[0].measured == ["AT%NCELLMEAS"]
        assert bool(scan.notes) == (search != "default")


def test_a_later_chip_is_never_too_old_for_search_types() -> None:
    scanned(lambda: Kit(RESULT.format(0), firmware="mfw_nrf91x1_2.0.1"), "extended-light")
    assert made[0].measured == ["AT%NCELLMEAS=1"]


def test_where_measuring_is_refused_the_monitored_cell_is_taken() -> None:
    scan = scanned(lambda: Kit(monitor=MONITOR, refuses=True))
    assert (scan.source, scan.cells[0]["eci"]) == ("%XMONITOR", 72455)
    assert "refused to measure" in scan.notes[0]


def test_a_modem_that_refuses_and_is_on_no_cell_says_so() -> None:
    with pytest.raises(NoCells, match=r"refused to measure .* on no cell") as told:
        scanned(lambda: Kit(refuses=True))
    assert "CFUN=1" in told.value.hint
    assert isinstance(told.value.__cause__, CommandRejected)


def test_a_failed_measurement_and_an_interrupted_one_are_told_apart() -> None:
    with pytest.raises(NoCells, match="failed: the modem heard no cell"):
        scanned(lambda: Kit("%NCELLMEAS: 1"))
    with pytest.raises(NoCells, match="interrupted before a cell was heard"):
        scanned(lambda: Kit("%NCELLMEAS: 2"))
    scan = scanned(lambda: Kit(RESULT.format(2)))
    assert scan.cells
    assert "interrupted" in scan.notes[0]
    assert scanned(lambda: Kit(RESULT.format(0))).notes == ()


def test_a_failed_measurement_of_a_registered_kit_leaves_its_own_cell() -> None:
    scan = scanned(lambda: Kit("%NCELLMEAS: 1", monitor=MONITOR))
    assert (scan.source, len(scan.cells)) == ("%XMONITOR", 1)


def test_a_result_that_breaks_its_grammar_ends_the_wait_with_the_reason() -> None:
    with pytest.raises(ParseError, match="phys_cell_id"):
        scanned(lambda: Kit(RESULT.format(0).replace(",43,", ",504,")))


def test_after_the_deadline_the_measurement_is_stopped_and_what_there_is_is_taken() -> None:
    scan = scanned(lambda: Kit(None, stopped=RESULT.format(2)))
    assert made[0].measured == ["AT%NCELLMEAS", "AT%NCELLMEASSTOP"]
    assert "interrupted" in scan.notes[0]


def test_a_modem_that_tells_nothing_even_when_stopped_is_given_up() -> None:
    with pytest.raises(NoCells, match="within 60 s, nor when stopped"):
        scanned(Kit)


def test_a_scan_that_is_cancelled_leaves_no_measurement_running() -> None:
    async def work(cancel_when: Callable[[Kit], Awaitable[object]]) -> list[str]:
        kit = Kit()
        modem = Modem(kit.transport)
        await modem.open()
        scan = asyncio.create_task(scan_cells(modem))
        await cancel_when(kit)
        scan.cancel()
        with pytest.raises(asyncio.CancelledError):
            await scan
        await modem.close()
        return kit.measured

    # At the moment the command was taken, its OK not read yet; and in the wait for the result.
    for moment in (lambda kit: kit.measures.wait(), lambda _kit: asyncio.sleep(10)):
        assert virtual_time.run(work(moment)) == ["AT%NCELLMEAS", "AT%NCELLMEASSTOP"]


def test_a_kit_that_is_unplugged_while_it_measures_is_said_to_be() -> None:
    async def work() -> None:
        kit = Kit()
        modem = Modem(kit.transport)
        await modem.open()
        scan = asyncio.create_task(scan_cells(modem))
        await kit.measures.wait()
        kit.transport.unplug()
        with pytest.raises(LinkLost):
            await scan
        await modem.close()

    virtual_time.run(work())


@pytest.mark.contract("D1.3")
@pytest.mark.parametrize("firmware", ["mfw_nrf9160_1.2.9", "mfw_nrf9160_1.3.0-rc1", "something"])
def test_a_kit_whose_firmware_is_too_old_or_unreadable_is_not_spoken_for(firmware: str) -> None:
    async def work() -> None:
        modem = Modem(Kit(firmware=firmware).transport)
        await modem.open()
        try:
            await require_firmware(modem)
        finally:
            await modem.close()

    with pytest.raises(FirmwareRefused) as told:
        virtual_time.run(work())
    assert told.value.hint
