"""The virtual modem tells of its sleep and of its updates, at the times of its timers."""

from __future__ import annotations

import pytest

from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions

PSM = 'AT+CPSMS=1,"","","10100011","00000101"'  # an update each 3 minutes, 10 s of active time


def modem(*lines: str, **options: object) -> VirtualModem:
    kit = VirtualModem(VirtualOptions(instant=True, **options), now=0.0, unix_time=1_700_000_000.0)  # type: ignore[arg-type]
    for line in lines:
        assert "OK" in ask(kit, line)
    return kit


def ask(kit: VirtualModem, line: str) -> list[str]:
    kit.receive(line.encode() + b"\r", now=kit.kit.now)
    return kit.data_to_send().decode().split("\r\n")[:-1]


def told(kit: VirtualModem, until: float) -> list[tuple[float, str]]:
    """Return the notices up to a time, each with its own."""
    found = []
    while kit.next_at is not None and kit.next_at <= until:
        kit.advance(kit.next_at)
        lines = kit.data_to_send().decode().split("\r\n")[:-1]
        found += [(round(kit.kit.now, 2), line) for line in lines]
    return found


def test_power_saving_sleeps_from_the_active_time_to_the_update() -> None:
    kit = modem("AT%XMODEMSLEEP=1,5000,10240", "AT%XT3412=1,2000,30000", PSM, "AT+CSCON=1")
    assert "%XT3412: 180000" in ask(kit, "AT+CFUN=1")
    assert told(kit, 180) == [
        (10.0, "%XMODEMSLEEP: 1,170000"),
        (175.0, "%XMODEMSLEEP: 1,5000"),
        (178.0, "%XT3412: 2000"),
        (180.0, "%XT3412: 0"),
        (180.0, "%XMODEMSLEEP: 1,0"),
        (180.0, "+CSCON: 1"),
        (180.0, "+CSCON: 0"),
        (180.0, "%XT3412: 180000"),
    ]


def test_an_extended_cycle_sleeps_between_its_paging_windows() -> None:
    kit = modem('AT+CEDRXS=2,4,"0011"', "AT%XMODEMSLEEP=1,0,10240")
    begun = ask(kit, "AT+CFUN=1")
    assert '+CEDRXP: 4,"0011","0011","0011"' in begun
    assert begun[-1] == "%XMODEMSLEEP: 2,35840"
    assert told(kit, 41) == [(35.84, "%XMODEMSLEEP: 2,0"), (40.96, "%XMODEMSLEEP: 2,35840")]


def test_flight_mode_is_a_sleep_without_an_end_of_its_own() -> None:
    kit = modem("AT%XMODEMSLEEP=1,0,10240", "AT+CFUN=4")
    assert "%XMODEMSLEEP: 4,0" in ask(kit, "AT+CFUN=1")
    assert ask(kit, "AT+CFUN=4")[-2:] == ["%XMODEMSLEEP: 4", "OK"]
    assert told(kit, 100_000) == []


def test_a_span_shorter_than_wanted_is_not_told() -> None:
    kit = modem("AT%XMODEMSLEEP=1,0,200000", "AT%XT3412=1,0,3456000000", PSM, "AT+CFUN=1")
    assert told(kit, 1000) == []


def test_what_is_unsubscribed_or_switched_off_meanwhile_is_told_no_more() -> None:
    kit = modem("AT%XMODEMSLEEP=1,5000,10240", "AT%XT3412=1,2000,30000", PSM, "AT+CFUN=1")
    told(kit, 100)
    ask(kit, "AT%XT3412=0")
    assert told(kit, 179) == [(175.0, "%XMODEMSLEEP: 1,5000")]
    assert ask(kit, "AT+CFUN=0")[-1] == "OK"
    assert told(kit, 1000) == []
    assert not kit.kit.session.sleep_timers


@pytest.mark.parametrize("name", ["%XMODEMSLEEP", "%XT3412"])
@pytest.mark.parametrize("given", ["1", "1,100,10240", "1,0,10239", "1,3600001,10240", "2,0,10240"])
def test_a_subscription_outside_the_manual_is_refused(name: str, given: str) -> None:
    assert ask(modem(), f"AT{name}={given}") == ["ERROR"]


def test_a_period_of_nothing_does_not_keep_the_modem_busy() -> None:
    kit = modem('AT+CPSMS=1,"","","00000000","00000000"', "AT%XT3412=1,0,10240")
    assert "%XT3412: 3240000" in ask(kit, "AT+CFUN=1")


def test_the_timers_of_power_saving_are_those_that_were_asked_for() -> None:
    kit = modem("AT+CEREG=5", PSM)
    assert ask(kit, "AT+CFUN=1")[-1].endswith(',7,,,"00000101","10100011"')
    assert '"","00000101","10100011","01001001"' in ask(kit, "AT%XMONITOR")[0]
    other = modem("AT+CEREG=5")
    assert ask(other, "AT+CFUN=1")[-1].endswith(',7,,,"11100000","11100000"')
