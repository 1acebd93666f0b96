"""Sleeps and periodic updates are announced at the times of their timers."""

from __future__ import annotations

import pytest

from tests.support.modem.virtual_modems import ask, notices_until, switched_on

PSM = 'AT+CPSMS=1,"","","10100011","00000101"'  # an update each 3 minutes, 10 s of active time


def test_power_saving_sleeps_from_the_active_time_to_the_update() -> None:
    kit = switched_on("AT%XMODEMSLEEP=1,5000,10240", "AT%XT3412=1,2000,30000", PSM, "AT+CSCON=1")
    assert "%XT3412: 180000" in ask(kit, "AT+CFUN=1")
    assert notices_until(kit, 180) == [
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
    kit = switched_on('AT+CEDRXS=2,4,"0011"', "AT%XMODEMSLEEP=1,0,10240")
    begun = ask(kit, "AT+CFUN=1")
    assert '+CEDRXP: 4,"0011","0011","0011"' in begun
    assert begun[-1] == "%XMODEMSLEEP: 2,35840"
    assert notices_until(kit, 41) == [
        (35.84, "%XMODEMSLEEP: 2,0"),
        (40.96, "%XMODEMSLEEP: 2,35840"),
    ]


def test_flight_mode_is_a_sleep_without_an_end_of_its_own() -> None:
    kit = switched_on("AT%XMODEMSLEEP=1,0,10240", "AT+CFUN=4")
    assert "%XMODEMSLEEP: 4,0" in ask(kit, "AT+CFUN=1")
    assert ask(kit, "AT+CFUN=4")[-2:] == ["%XMODEMSLEEP: 4", "OK"]
    assert notices_until(kit, 100_000) == []


def test_a_connection_that_flight_mode_ends_is_followed_by_no_update() -> None:
    kit = switched_on("AT+CSCON=1", "AT%XT3412=1,2000,30000", PSM, instant=False)
    ask(kit, "AT+CFUN=1")
    assert notices_until(kit, 10)[-1][1] == "+CSCON: 1"
    assert ask(kit, "AT+CFUN=4") == ["+CSCON: 0"]
    assert [line for _, line in notices_until(kit, 1000)] == ["OK"]


def test_a_span_shorter_than_wanted_is_not_told() -> None:
    kit = switched_on("AT%XMODEMSLEEP=1,0,200000", "AT%XT3412=1,0,3456000000", PSM, "AT+CFUN=1")
    assert notices_until(kit, 1000) == []


def test_what_is_unsubscribed_or_switched_off_meanwhile_is_told_no_more() -> None:
    kit = switched_on("AT%XMODEMSLEEP=1,5000,10240", "AT%XT3412=1,2000,30000", PSM, "AT+CFUN=1")
    notices_until(kit, 100)
    ask(kit, "AT%XT3412=0")
    assert notices_until(kit, 179) == [(175.0, "%XMODEMSLEEP: 1,5000")]
    assert ask(kit, "AT+CFUN=0")[-1] == "OK"
    assert notices_until(kit, 1000) == []
    assert not kit.kit.session.sleep_timers


@pytest.mark.parametrize("name", ["%XMODEMSLEEP", "%XT3412"])
@pytest.mark.parametrize("given", ["1", "1,100,10240", "1,0,10239", "1,3600001,10240", "2,0,10240"])
def test_a_subscription_outside_the_manual_is_refused(name: str, given: str) -> None:
    assert ask(switched_on(), f"AT{name}={given}") == ["ERROR"]


def test_a_period_of_nothing_does_not_keep_the_modem_busy() -> None:
    kit = switched_on('AT+CPSMS=1,"","","00000000","00000000"', "AT%XT3412=1,0,10240")
    assert "%XT3412: 3240000" in ask(kit, "AT+CFUN=1")


def test_an_active_time_in_a_unit_without_a_meaning_counts_minutes() -> None:
    kit = switched_on("AT%XMODEMSLEEP=1,0,10240", 'AT+CPSMS=1,"","","10100011","01100001"')
    ask(kit, "AT+CFUN=1")
    assert notices_until(kit, 100) == [(60.0, "%XMODEMSLEEP: 1,120000")]


def test_the_timers_of_power_saving_are_those_that_were_asked_for() -> None:
    kit = switched_on("AT+CEREG=5", PSM)
    assert ask(kit, "AT+CFUN=1")[-1].endswith(',7,,,"00000101","10100011"')
    assert '"","00000101","10100011","01001001"' in ask(kit, "AT%XMONITOR")[0]
    other = switched_on("AT+CEREG=5")
    assert ask(other, "AT+CFUN=1")[-1].endswith(',7,,,"11100000","11100000"')


def test_power_saving_is_kept_as_it_was_asked_for() -> None:
    kit = switched_on()
    assert ask(kit, "AT+CPSMS?")[0].startswith("+CPSMS: 0,,,")
    own = ask(kit, "AT+CPSMS?")[0].partition(",")[2]
    assert ask(kit, 'AT+CPSMS=1,,,"00101000","00000101"') == ["OK"]
    assert ask(kit, "AT+CPSMS?")[0] == '+CPSMS: 1,,,"00101000","00000101"'
    assert ask(kit, "AT+CPSMS=0") == ["OK"]
    assert ask(kit, "AT+CPSMS?")[0] == '+CPSMS: 0,,,"00101000","00000101"'
    assert ask(kit, 'AT+CPSMS=1,,,"0010"') == ["ERROR"]
    assert ask(kit, "AT+CPSMS=") == ["OK"]
    assert ask(kit, "AT+CPSMS?")[0] == f"+CPSMS: 0,{own}"


def test_a_paging_cycle_is_granted_once_the_kit_is_registered() -> None:
    kit = switched_on()
    assert ask(kit, "AT+CEDRXS?") == ["OK"]
    assert ask(kit, 'AT+CEDRXS=2,4,"0101"') == ["OK"]
    assert ask(kit, "AT+CEDRXS?") == ['+CEDRXS: 4,"0101"', "OK"]
    assert ask(kit, "AT+CEDRXRDP") == ["+CEDRXRDP: 0", "OK"]
    ask(kit, "AT+CFUN=1")
    assert ask(kit, "AT+CEDRXRDP")[0].startswith('+CEDRXRDP: 4,"0101","0101",')
    assert ask(kit, "AT+CEDRXS=3") == ["OK"]
    assert ask(kit, "AT+CEDRXRDP")[0] == "+CEDRXRDP: 0"
    assert ask(kit, 'AT+CEDRXS=2,9,"0101"') == ["ERROR"]


def test_firmware_for_satellites_has_a_paging_cycle_for_them() -> None:
    kit = switched_on("AT%XSYSTEMMODE=0,0,0,0,1", model="nrf9151", firmware="mfw_nrf9151-ntn_1.0.1")
    assert ask(kit, 'AT%LOCATION=2,"59.91","10.75","12",100,0') == ["OK"]
    assert ask(kit, 'AT+CEDRXS=2,6,"0101"') == ["OK"]
    assert ask(kit, 'AT%XPTW=6,"0010"') == ["OK"]
    assert ask(kit, "AT%XPTW?") == ['%XPTW: 6,"0010"', "OK"]
    ask(kit, "AT+CFUN=1")
    assert ask(kit, "AT+CEDRXRDP")[0].startswith('+CEDRXRDP: 6,"0101","0101",')


@pytest.mark.parametrize("command", ['AT+CEDRXS=2,6,"0101"', 'AT%XPTW=6,"0010"'])
def test_other_firmware_has_no_paging_cycle_for_satellites(command: str) -> None:
    assert ask(switched_on(), command) == ["ERROR"]


def test_the_range_of_paging_cycles_is_that_of_the_manual() -> None:
    kit = switched_on("AT+CFUN=1")
    assert ask(kit, "AT+CEDRXS=?") == ['+CEDRXS: (0-3),(4-5),("0000"-"1111")', "OK"]
