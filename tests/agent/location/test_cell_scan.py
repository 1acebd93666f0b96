"""Scans of cells: every search and every end of it; what is known of a cell is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import UsageError
from agent.location.agnss import ServingCell
from agent.location.cell_scan import (
    SEARCHES,
    CellScan,
    ModemOff,
    NoCells,
    measurement_to_json,
    monitor_to_json,
    scan_cells,
    serving_cell,
)
from agent.location.cell_values import level
from at.commands.cells import read_measurement
from at.commands.functional_mode import SetFunctionalMode
from at.commands.signal import ReadMonitor
from at.driver.modem import Modem
from at.firmware_gate import require_firmware
from at.protocol.errors import CommandRejected, FirmwareRefused, LinkLost, ParseError
from at.virtual.transport import VirtualTransport
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem

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
        busy_s: float = 0.0,
    ) -> None:
        super().__init__(self.answer, lambda command: busy_s * (command == "AT%NCELLMEAS"))
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
        return [line for line in self.received if "NCELLMEAS" in line]


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


async def test_a_modem_that_is_off_is_not_made_to_measure(registered: Modem) -> None:
    await registered.send(SetFunctionalMode(4))
    with pytest.raises(ModemOff, match="functional mode 4") as off:
        await scan_cells(registered)
    assert off.value.hint == "`cellagent modem on`"


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
    assert "cellagent modem on" in told.value.hint
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
    async def work(cancel_when: Callable[[Kit], Awaitable[object]], busy_s: float) -> list[str]:
        kit = Kit(busy_s=busy_s)
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
        assert virtual_time.run(work(moment, 0.0)) == ["AT%NCELLMEAS", "AT%NCELLMEASSTOP"]
    # A modem that is busy for long hears no question meanwhile, and no stop.
    busy = work(lambda kit: kit.measures.wait(), 3.5)
    assert virtual_time.run(busy) == ["AT%NCELLMEAS", "AT%NCELLMEASSTOP"]


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


# --- cells as the service takes them


# By hand, from the grammar of types 0-2 and 3-5.
SERVING = '"0202B181","00101","0901",80,6400,43,44,20,5000'
NEIGHBORS = "6400,143,35,15,4,2300,9,255,255,-7"


@pytest.mark.contract("D8.2", "C5")
def test_a_serving_cell_goes_out_with_its_neighbours_and_in_the_units_of_the_service() -> None:
    (cell,) = measurement_to_json(read_measurement(f"%NCELLMEAS: 0,{SERVING},{NEIGHBORS},4880", 0))
    assert cell == {
        "mcc": 1, "mnc": 1, "eci": 33730945, "tac": 2305, "earfcn": 6400, "pci": 43,
        "rsrp": -97, "rsrq": -10.0, "adv": 80,
        "nmr": [
            {"earfcn": 6400, "pci": 143, "rsrp": -106, "rsrq": -12.5, "timeDiff": 4},
            {"earfcn": 2300, "pci": 9, "timeDiff": -7},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("advance", [65534, 65535])
def test_an_advance_that_is_not_known_is_left_out(advance: int) -> None:
    line = f'%NCELLMEAS: 0,"0202B181","310410","0901",{advance},6400,43,255,255,5000'
    (cell,) = measurement_to_json(read_measurement(line, 0))
    assert cell == {
        "mcc": 310, "mnc": 410, "eci": 33730945, "tac": 2305, "earfcn": 6400, "pci": 43,
    }  # fmt: skip


def test_the_greatest_values_that_the_service_takes_go_out() -> None:
    line = '%NCELLMEAS: 0,"0FFFFFFF","310410","FFFF",20512,262143,503,97,255,5000'
    (cell,) = measurement_to_json(read_measurement(line, 0))
    assert cell == {
        "mcc": 310, "mnc": 410, "eci": 0x0FFFFFFF, "tac": 65535, "adv": 20512, "earfcn": 262143,
        "pci": 503, "rsrp": -44,
    }  # fmt: skip
    (monitored,) = monitor_to_json(ReadMonitor().parse([MONITOR.replace("00011B07", "0FFFFFFF")]))
    assert monitored["eci"] == 0x0FFFFFFF


@pytest.mark.contract("D8.2")
def test_cells_with_a_global_id_go_each_for_itself_the_serving_one_first() -> None:
    other = '"0202B191","00101","0901",65535,0,2300,60,40,18,5100,0,0'
    serving = '"0202B181","00101","0901",80,4880,6400,43,44,20,5000,1,1,6400,143,35,15,4'
    nobody = '"FFFFFFFF","00101","0901",65535,0,2300,61,40,18,5100,0,0'
    cells = measurement_to_json(read_measurement(f"%NCELLMEAS: 0,{other},{serving},{nobody}", 3))
    assert [cell["eci"] for cell in cells] == [0x0202B181, 0x0202B191]
    assert [len(cell.get("nmr", [])) for cell in cells] == [1, 0]  # type: ignore[arg-type]


def test_what_the_service_would_refuse_is_left_out() -> None:
    line = f"%NCELLMEAS: 0,{SERVING},300000,143,35,15,4".replace("80,6400", "80,262144")
    (cell,) = measurement_to_json(read_measurement(line, 0))
    assert "earfcn" not in cell
    for rsrq_db, goes in ((-34.5, True), (-35.0, False), (3.5, True), (4.0, False)):
        assert level(5, 7, None, rsrq_db).get("rsrq") == (rsrq_db if goes else None)
    assert cell["nmr"] == []


@pytest.mark.contract("D8.2")
def test_the_monitored_cell_stands_in_for_a_measurement() -> None:
    line = '%XMONITOR: 1,"","","26295","00B7",7,4,"00011B07",7,2300,63,39,"","","",""'
    assert monitor_to_json(ReadMonitor().parse([line])) == [
        {"mcc": 262, "mnc": 95, "eci": 72455, "tac": 183, "rsrp": -78, "earfcn": 2300, "pci": 7}
    ]
    assert monitor_to_json(ReadMonitor().parse(["%XMONITOR: 2"])) == []
    nobody = line.replace("00011B07", "FFFFFFFF")
    assert monitor_to_json(ReadMonitor().parse([nobody])) == []


def test_assistance_is_asked_for_by_the_first_cell() -> None:
    cells = measurement_to_json(read_measurement(f"%NCELLMEAS: 0,{SERVING}", 0))
    assert serving_cell(cells) == ServingCell(1, 1, 2305, 33730945, -97)
    assert serving_cell([]) is None


LIMITS = {
    "eci": (0, 0x0FFFFFFF), "tac": (0, 65535), "earfcn": (0, 262143), "pci": (0, 503),
    "rsrp": (-157, -44), "rsrq": (-34.5, 3.5), "adv": (0, 20512), "mcc": (1, 999), "mnc": (0, 999),
}  # fmt: skip


@pytest.mark.contract("D8.2")
@given(
    st.integers(0, 2**32 - 1), st.integers(0, 65535), st.integers(0, 20512) | st.just(65535),
    st.integers(0, 2**31 - 1), st.integers(0, 503), st.integers(-20, 99) | st.just(255),
    st.integers(-40, 60) | st.just(255), st.sampled_from(["00101", "00000", "000000", "999999"]),
)  # fmt: skip
def test_whatever_the_modem_says_only_legal_values_go_out(
    cell_id: int, tac: int, advance: int, earfcn: int, pci: int, rsrp: int, rsrq: int, plmn: str
) -> None:
    cell = f'"{cell_id:08X}","{plmn}","{tac:04X}",{advance},{earfcn},{pci},{rsrp},{rsrq}'
    line = f"%NCELLMEAS: 0,{cell},5,{earfcn},{pci},{rsrp},{rsrq},1"
    try:
        measurement = read_measurement(line, 0)
        cells = measurement_to_json(measurement)
    except ParseError:
        return
    cell_at = f'"{plmn}","{tac:04X}",7,4,"{cell_id:08X}",7,2300,63,39'
    cells += monitor_to_json(ReadMonitor().parse([f'%XMONITOR: 1,"","",{cell_at},"","","",""']))
    for sent in [*cells, *(other for one in cells for other in one.get("nmr", []))]:  # type: ignore[attr-defined]
        for name, (low, high) in LIMITS.items():
            assert low <= sent.get(name, low) <= high, name


async def test_a_scan_waits_while_the_serial_modem_measures_for_a_position_of_its_own() -> None:
    transport = VirtualTransport(firmware="serial-modem-2.0.0", instant=True)
    modem = Modem(transport)
    await modem.open()
    try:
        for line in ("AT%KEYGEN=16842753,2,0", "AT+CFUN=1", "AT#XNRFCLOUD=1"):
            assert (await modem.execute(line)).ok
        kit = transport.modem.kit
        kit.delay = lambda _seconds: 0.2  # type: ignore[method-assign]
        assert (await modem.execute("AT#XNRFCLOUDPOS=4,0")).ok
        assert kit.session.locating
        found = await scan_cells(modem)  # else ERROR, and the monitored cell alone
        assert (found.source, kit.session.locating) == ("%NCELLMEAS", False)
        assert not (await modem.execute("AT#XNRFCLOUDPOS=99,0")).ok
        await modem.own_position.wait()  # a request that was refused is none
    finally:
        await modem.close()
