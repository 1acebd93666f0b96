"""Fixes are where the kit is, at the times that were requested."""

from __future__ import annotations

import pytest

from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions
from tests.support.modem.virtual_modems import ask, notices_until, switched_on


def moving(kit: VirtualModem, until: float) -> list[tuple[float, str]]:
    """Return the notices up to a time; of a position its first coordinate alone."""
    return [
        (at, line.partition(",")[0] if "POS" in line else line)
        for at, line in notices_until(kit, until)
    ]


def test_a_single_fix_is_where_the_kit_is() -> None:
    kit = switched_on("AT+CFUN=31", firmware="serial-modem-2.0.0")
    started, fix, slept = ask(kit, "AT#XGNSS=1,0,0,0")[1:]
    where = kit.kit.position
    assert (started, slept) == ("#XGNSS: 1,1", "#XGNSS: 1,4")
    assert fix.startswith(f"#XGNSSPOS: {where.lat:.6f},{where.lon:.6f},")
    assert fix.endswith(',"2023-11-14 22:13:20"')
    assert ask(kit, "AT#XGNSS?") == ["#XGNSS: 1,4", "OK"]


def test_fixes_come_each_second_or_in_periods_until_they_are_stopped() -> None:
    kit = switched_on("AT+CFUN=31", firmware="serial-modem-2.0.0")
    ask(kit, "AT#XGNSS=1,0,1")
    place = f"#XGNSSPOS: {kit.kit.position.lat:.6f}"
    assert moving(kit, 2.5) == [(1.0, place), (2.0, place)]
    assert ask(kit, "AT#XGNSS=1,0,1") == ["ERROR"]
    assert ask(kit, "AT#XGNSS=0") == ["OK", "#XGNSS: 1,0"]
    assert ask(kit, "AT#XGNSS=0") == ["ERROR"]
    ask(kit, "AT#XGNSS=1,0,10")
    begun = kit.kit.now
    woken = [(begun + 10, "#XGNSS: 1,2"), (begun + 10, place), (begun + 10, "#XGNSS: 1,4")]
    assert moving(kit, begun + 15) == woken
    ask(kit, "AT+CFUN=30")
    assert moving(kit, begun + 100) == []
    assert ask(kit, "AT#XGNSS?") == ["#XGNSS: 0,0", "OK"]


def test_a_search_ends_where_its_time_is_over_and_one_without_goes_on() -> None:
    kit = VirtualModem(VirtualOptions(dialect="serial-modem"), now=0.0, unix_time=0.0)
    ask(kit, "AT+CFUN=31")
    kit.advance(1.0)
    ask(kit, "AT#XGNSS=1,0,0,10")
    assert moving(kit, 100) == [(11.0, "#XGNSS: 1,3")]
    ask(kit, "AT#XGNSS=1,0,0,0")
    assert [at for at, _ in moving(kit, 100)] == [43.0, 43.0]


@pytest.mark.parametrize(
    "command",
    [
        *("AT#XGNSS=1,0,5", "AT#XGNSS=1,0,1,60", "AT#XGNSS=0,0", "AT#XGNSS=1,1,0", "AT#XGNSS=1"),
        "AT#XGNSSDEL=0",
    ],
)
def test_navigation_that_the_firmware_does_not_take_is_refused(command: str) -> None:
    assert ask(switched_on("AT+CFUN=31", dialect="serial-modem"), command) == ["ERROR"]
    assert ask(switched_on("AT+CFUN=4", dialect="serial-modem"), "AT#XGNSS=1,0,0") == ["ERROR"]


def test_generation_1_prints_fixes_under_the_name_of_states() -> None:
    kit = switched_on("AT+CFUN=31", dialect="serial-modem")
    fix = next(line for line in ask(kit, "AT#XGNSS=1,0,0") if "." in line)
    assert fix.startswith(f"#XGNSS: {kit.kit.position.lat:.6f},")
