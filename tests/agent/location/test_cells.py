"""Cells as the service takes them: what is known goes, what is not known stays behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.location.agnss import ServingCell
from agent.location.cell_scan import measurement_to_json, monitor_to_json, serving_cell
from at.commands.cells import read_measurement
from at.commands.signal import ReadMonitor
from at.protocol.errors import ParseError

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
    "rsrp": (-157, -44), "rsrq": (-34.5, 3.5), "adv": (0, 20512),
}  # fmt: skip


@given(
    st.integers(0, 2**32 - 1), st.integers(0, 65535), st.integers(0, 20512) | st.just(65535),
    st.integers(0, 2**31 - 1), st.integers(0, 503), st.integers(-20, 99) | st.just(255),
    st.integers(-40, 60) | st.just(255),
)  # fmt: skip
def test_whatever_the_modem_says_only_legal_values_go_out(
    cell_id: int, tac: int, advance: int, earfcn: int, pci: int, rsrp: int, rsrq: int
) -> None:
    line = (
        f'%NCELLMEAS: 0,"{cell_id:08X}","00101","{tac:04X}",{advance},{earfcn},{pci},{rsrp},{rsrq},'
        f"5,{earfcn},{pci},{rsrp},{rsrq},1"
    )
    try:
        measurement = read_measurement(line, 0)
        cells = measurement_to_json(measurement)
    except ParseError:
        return
    for cell in [*cells, *(other for one in cells for other in one.get("nmr", []))]:  # type: ignore[attr-defined]
        for name, (low, high) in LIMITS.items():
            assert low <= cell.get(name, low) <= high, name
