"""Settings of start-up code are kept, and read back by the manual's grammar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.transcripts.steps import Direction
from at.transcripts.transcript import load_transcript
from at.virtual.families.settings import SETTINGS
from tests.support.modem.answers import value_of
from tests.support.modem.virtual_modems import ask, notices_until, switched_on

SETTLED_S = 20  # then the kit is registered, and asleep
START_UP = "fixtures/transcripts/start-up.transcript"


def test_the_start_up_of_firmware_is_answered_line_by_line_and_read_back() -> None:
    kit = switched_on()
    wanted: list[str] = []
    printed: list[str] = []
    for step in load_transcript(START_UP).steps:
        line = step.data.decode().strip()
        if step.direction is Direction.RECEIVED:
            wanted.append(line)
            continue
        assert printed == wanted
        wanted, printed = [], ask(kit, line)
        if line == "AT+CFUN=1":
            printed += [notice for _, notice in notices_until(kit, SETTLED_S)]
    assert printed == wanted


def test_a_band_lock_is_read_back_in_bits_and_refused_where_it_leaves_no_band() -> None:
    kit = switched_on()
    assert ask(kit, 'AT%XBANDLOCK=1,"1000"') == ["OK"]
    assert ask(kit, 'AT%XBANDLOCK=2,"1000000000000"') == ["OK"]
    locks = value_of("AT%XBANDLOCK?", ask(kit, "AT%XBANDLOCK?")[0])
    assert locks == {"permanent": [4], "run_time": [13]}
    assert ask(kit, 'AT%XBANDLOCK=2,"100000"') == ["ERROR"]  # band 6
    assert ask(kit, 'AT%XBANDLOCK=2,""') == ["ERROR"]
    assert ask(kit, 'AT%XBANDLOCK=2,"12"') == ["ERROR"]
    assert ask(kit, "AT%XBANDLOCK=0") == ["OK"]
    assert ask(kit, "AT%XBANDLOCK?")[0] == '%XBANDLOCK: "",""'


def test_firmware_for_satellites_locks_bands_by_a_list() -> None:
    kit = switched_on(model="nrf9151", firmware="mfw_nrf9151-ntn_1.0.1")
    assert ask(kit, 'AT%XBANDLOCK=2,,"255,256"') == ["OK"]
    assert ask(kit, "AT%XBANDLOCK?")[0] == '%XBANDLOCK: "","255,256"'
    assert ask(kit, 'AT%XBANDLOCK=2,,"4"') == ["ERROR"]


@pytest.mark.parametrize("command", ["AT%REL14FEAT=0,1,0,0,0", 'AT%XBANDLOCK=2,"1000"'])
def test_what_is_not_allowed_while_active_says_so(command: str) -> None:
    kit = switched_on("AT+CMEE=1", "AT+CFUN=1")
    assert ask(kit, command) == ["+CME ERROR: 518"]


@pytest.mark.parametrize(
    "command",
    [
        *("AT%XPOFWARN=1", "AT%XPOFWARN=1,34", "AT%XPOFWARN?", "AT%XVBATLVL?", "AT%RAI=3"),
        *("AT%XVBATLOWLVL=3099", "AT%XTEMPHIGHLVL=86", "AT%REL14FEAT=0,1", "AT+CNMI"),
        *("AT%FEACONF=0,1,1", "AT%FEACONF=3", "AT%FEACONF?", "AT%XPTW=6", 'AT%XPTW=4,"2"'),
        *("AT%XCOEX0=1", "AT%XCOEX0=1,1,1570", "AT%XCOEX0=5", "AT%XMAGPIO=1,0,0,1", "AT%RAI"),
        *("AT%XMODEMTRACE", "AT%XMODEMTRACE?", "AT%XMODEMTRACE=1", "AT%XMODEMTRACE=1,6"),
        *("AT%XMODEMTRACE=2,1", "AT%PERIODICSEARCHCONF=4", "AT%PERIODICSEARCHCONF?"),
        *("AT%PERIODICSEARCHCONF=0,0,0,1", "AT%PERIODICSEARCHCONF=1,0", "AT%CELLULARPRFL=1"),
        *("AT+CIND=2", "AT+CIND=0,0,0,0", "AT+CGAUTH=0,1", 'AT+CGAUTH=11,1,"u","p"', "AT+CEER?"),
        *("AT+CGAUTH?", "AT+CGAUTH=?", "AT+CGAUTH"),
    ],
)
def test_what_the_manual_does_not_have_is_an_error(command: str) -> None:
    assert ask(switched_on(), command) == ["ERROR"]


@given(st.data())
def test_any_values_within_the_ranges_are_read_back_as_they_were_set(data: st.DataObject) -> None:
    readable = sorted(
        name for name, setting in SETTINGS.items() if setting.default and not setting.groups
    )
    name = data.draw(st.sampled_from(readable))
    numbers = [data.draw(st.integers(low, high)) for low, high in SETTINGS[name].ranges]
    text = ",".join(map(str, numbers))
    kit = switched_on()
    assert ask(kit, f"AT{name}={text}") == ["OK"]
    assert ask(kit, f"AT{name}?")[0] == f"{name}: {text}"


def test_what_is_kept_in_flash_is_there_after_a_restart_and_the_rest_is_not() -> None:
    kit = switched_on("AT%RAI=1", "AT+CIND=1,1,1", "AT+CFUN=0")
    kit.kit.restart()
    assert ask(kit, "AT%RAI?")[0] == "%RAI: 1"
    assert ask(kit, "AT+CIND?")[0] == "+CIND: 0,0,0"


def test_a_search_configuration_that_is_none_or_not_there_says_so() -> None:
    kit = switched_on("AT+CMEE=1")
    for pattern in ("", "2,60", "0,60", "1", "1,1,2,3,4,5,6", "0,60,3600,,", "1,-1"):
        assert ask(kit, f'AT%PERIODICSEARCHCONF=0,0,0,1,"{pattern}"') == ["+CME ERROR: 527"]
    assert ask(kit, "AT%PERIODICSEARCHCONF=1") == ["+CME ERROR: 513"]
    assert ask(kit, 'AT%PERIODICSEARCHCONF=0,1,0,10,"0,60,3600,300,600"') == ["OK"]
    kit.kit.restart()
    assert ask(kit, "AT%PERIODICSEARCHCONF=3") == ["OK"]
    assert ask(kit, "AT%PERIODICSEARCHCONF=1")[1:] == ["OK"]
    assert ask(kit, "AT%PERIODICSEARCHCONF=2") == ["OK"]
    assert ask(kit, "AT%PERIODICSEARCHCONF=1") == ["ERROR"]


def test_cellular_profiles_are_of_firmware_for_satellites() -> None:
    kit = switched_on(model="nrf9151", firmware="mfw_nrf9151-ntn_1.0.1")
    for command in ("1", "2,0,4,0", "2,1,1,0", "2,0,2,2", "2,1"):
        assert ask(kit, f"AT%CELLULARPRFL={command}") == ["OK"]
    assert kit.kit.saved.settings == {"%CELLULARPRFL 0": "2,2"}
    for command in ("0", "1,0", "2", "2,2", "2,0,4", "2,0,0,0", "2,0,4,3", "2,0,4,0,0"):
        assert ask(kit, f"AT%CELLULARPRFL={command}") == ["ERROR"]


def test_the_ranges_of_a_pin_are_as_many_as_their_count_and_are_deleted_by_the_bare_command() -> (
    None
):
    kit = switched_on("AT%XCOEX0=3,1,1570,1580,1,2000,2180,1,600,800")
    assert ask(kit, "AT%XCOEX0?")[0] == "%XCOEX0: 3,1,1570,1580,1,2000,2180,1,600,800"
    assert ask(kit, "AT%XCOEX0") == ["OK"]
    assert ask(kit, "AT%XCOEX0?")[0] == "%XCOEX0: 0"
