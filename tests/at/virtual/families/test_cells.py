"""Measurements give the cells in range, with the fields of the manual."""

from __future__ import annotations

import pytest

from at.commands.cells import read_measurement
from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions
from tests.support.modem.virtual_modems import ask, switched_on


@pytest.mark.parametrize("search", [0, 1, 2])
def test_a_measurement_gives_the_serving_cell_and_neighbours(search: int) -> None:
    kit = switched_on()
    ask(kit, "AT+CFUN=1")
    ok, notice = ask(kit, f"AT%NCELLMEAS={search}" if search else "AT%NCELLMEAS")
    fields = notice.removeprefix("%NCELLMEAS: ").split(",")
    assert (ok, fields[0]) == ("OK", "0")
    assert (len(fields) - 10) % 5 == 1  # the time of the timing advance stands at the end
    assert 1 <= (len(fields) - 11) // 5 <= 17


def test_a_second_measurement_waits_and_the_first_can_be_stopped() -> None:
    kit = VirtualModem(VirtualOptions(), now=0.0, unix_time=0.0)
    kit.receive(b"AT+CFUN=1\r", now=0.0)
    kit.advance(20.0)
    kit.data_to_send()
    assert ask(kit, "AT%NCELLMEAS=5,4") == ["OK"]
    assert ask(kit, "AT%NCELLMEAS") == ["ERROR"]
    answer = ask(kit, "AT%NCELLMEASSTOP")
    assert answer[0] == "OK"
    assert answer[1].startswith("%NCELLMEAS: 2,")
    kit.advance(60.0)
    assert kit.data_to_send() == b""
    assert ask(kit, "AT%NCELLMEAS") == ["OK"]


@pytest.mark.parametrize(("search", "count"), [(3, 2), (4, 5), (5, 15)])
def test_a_wide_search_gives_a_block_with_an_id_for_each_cell(search: int, count: int) -> None:
    kit = switched_on("AT+CFUN=1")
    _, notice = ask(kit, f"AT%NCELLMEAS={search},{count}")
    measurement = read_measurement(notice, search)
    found = kit.kit.cells_in_range()
    assert [cell.phys_cell_id for cell in measurement.cells] == [
        one.cell.pci for one in found[:count]
    ]


@pytest.mark.parametrize("given", ["6,2", "3,1", "3,16", "3", "-1"])
def test_a_search_that_the_manual_does_not_have_is_refused(given: str) -> None:
    assert ask(switched_on("AT+CFUN=1"), f"AT%NCELLMEAS={given}") == ["ERROR"]
