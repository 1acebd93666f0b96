"""The signal is that of the cells in range, with the fields of the manual."""

from __future__ import annotations

import pytest

from tests.support.modem.virtual_modems import ask, switched_on


def test_what_is_heard_first_is_what_is_near() -> None:
    kit = switched_on()
    ask(kit, "AT+CFUN=1")
    for seconds in (0.0, 60.0, 300.0):
        kit.advance(seconds)
        here = kit.kit.position
        nearest = min(
            kit.kit.cells_in_range(), key=lambda found: here.distance_m(found.cell.position)
        )
        answer = ask(kit, "AT%XMONITOR")[0]
        assert f'"{nearest.cell.eci:08X}"' in answer
        assert nearest.rsrp_dbm == max(found.rsrp_dbm for found in kit.kit.cells_in_range())


def test_the_signal_is_unknown_until_the_radio_is_on() -> None:
    kit = switched_on()
    assert ask(kit, "AT+CESQ")[0] == "+CESQ: 99,99,255,255,255,255"
    ask(kit, "AT+CFUN=1")
    serving = kit.kit.cells_in_range()[0]
    assert ask(kit, "AT+CESQ")[0].endswith(f",{serving.rsrq_index},{serving.rsrp_index}")


@pytest.mark.parametrize(
    ("faults", "result"), [(("no-sim",), 2), (("no-cells",), 1), (("not-registered",), 6), ((), 0)]
)
def test_the_evaluation_names_what_is_missing(faults: tuple[str, ...], result: int) -> None:
    kit = switched_on(faults=faults)
    assert ask(kit, "AT%CONEVAL")[0] == "%CONEVAL: 7"
    ask(kit, "AT+CFUN=1")
    assert ask(kit, "AT%CONEVAL")[0].split(",")[0] == f"%CONEVAL: {result}"
