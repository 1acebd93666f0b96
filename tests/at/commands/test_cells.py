"""Neighbour cell measurements: both shapes of the notice, and what is sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.cells import MeasureCells, read_measurement
from at.protocol.errors import ParseError, UnsafeArgument
from at.protocol.values import as_json


def test_the_cells_of_a_serving_measurement_are_read():
    line = (
        '%NCELLMEAS: 0,"00011B07","26295","00B7",10512,2300,7,63,31,150344527,'
        "2300,8,60,29,0,2400,11,55,26,-184,9034"
    )
    found = as_json(read_measurement(line, 0))
    assert found == as_json(read_measurement(line))
    assert found["cells"][0]["rsrp_dbm"] == found["rsrp_dbm"] == -78
    assert [cell["time_diff"] for cell in found["neighbors"]] == [0, -184]
    assert found["neighbor_count"] == 2
    assert found["ta_meas_time"] == 9034


def test_both_shapes_are_told_apart_without_a_context():
    single = '%NCELLMEAS: 0,"014A0305","24201","8169",80,4659,6400,105,50,16,4758,1,0'
    several = (
        '%NCELLMEAS:0,"00011B07","26295","00B7",10512,9034,2300,7,63,31,150344527,1,1,'
        '2300,8,60,29,5,"00011B08","26295","00B7",65534,0,2300,9,62,30,150345527,0,0,'
    )
    assert len(read_measurement(single).cells) == 1
    found = read_measurement(several)
    assert [cell.serving for cell in found.cells] == [1, 0]
    assert len(found.cells[0].neighbors) == 1
    assert found == read_measurement(several, 3)


@pytest.mark.parametrize("gci", [False, True])
@given(cells=st.integers(1, 70), neighbors=st.integers(0, 70), cut=st.integers(1, 3))
def test_measurements_of_any_size_are_read_and_cut_ones_refused(gci, cells, neighbors, cut):
    near = ",2300,8,60,-3,-5" * neighbors
    if gci:
        one = ',"00011B07","26295","00B7",65535,0,2300,7,63,31,99,{serving},{count}{near}'
        line = "%NCELLMEAS: 0" + one.format(serving=1, count=neighbors, near=near)
        line += one.format(serving=0, count=0, near="") * (cells - 1)
    else:
        line = f'%NCELLMEAS: 0,"00011B07","26295","00B7",65535,2300,7,63,31,99{near}'
    found = read_measurement(line)
    assert len(found.neighbors) == neighbors
    assert len(found.cells) == (cells if gci else 1)
    short = ",".join(line.split(",")[:-cut])
    with pytest.raises(ParseError):
        read_measurement(short, 3 if gci else 0)


@pytest.mark.parametrize("line", ["%NCELLMEAS: 1", "%NCELLMEAS: 1,,,", "%NCELLMEAS:1"])
def test_a_failed_measurement_has_no_cells(line):
    assert read_measurement(line).cells == ()


@pytest.mark.parametrize(
    "bad", [MeasureCells(6), MeasureCells(0, 5), MeasureCells(3, 1), MeasureCells(4, 16)]
)
def test_a_measurement_that_no_modem_takes_is_not_sent(bad):
    with pytest.raises(UnsafeArgument):
        bad.encode()


def test_measurements_are_sent_as_the_sdk_sends_them():
    assert MeasureCells().encode() == "AT%NCELLMEAS"
    assert MeasureCells(2).encode() == "AT%NCELLMEAS=2"
    assert MeasureCells(5, 15).encode() == "AT%NCELLMEAS=5,15"
