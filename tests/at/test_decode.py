"""Captured bytes to objects: the fixed shape of `cellagent modem decode`. Written by hand."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.decode import Decoder

NOTICE = {"type", "name", "line", "value", "error"}
ANSWER = {"type", "command", "final", "code", "lines", "value", "error"}


def decode(data, command=None, cuts=()):
    decoder = Decoder(command)
    data = data if isinstance(data, bytes) else data.encode()
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    found = []
    for start, end in itertools.pairwise(places):
        found += decoder.feed(data[start:end])
    found += decoder.finish()
    json.dumps(found, allow_nan=False)
    return found


def only(data, command=None):
    (found,) = decode(data, command)
    return found


def test_an_answer_has_the_fixed_keys():
    found = only("+CESQ: 99,99,255,255,20,45\r\n\r\nOK\r\n")
    assert set(found) == ANSWER
    assert (found["command"], found["final"], found["code"]) == (None, "OK", None)
    assert found["lines"] == ["+CESQ: 99,99,255,255,20,45"]
    assert found["value"]["rsrp_dbm"] == -96


def test_a_notice_has_the_fixed_keys():
    found = only('+CEREG: 1,"00B7","00011B07",7\r\n')
    assert set(found) == NOTICE
    assert (found["name"], found["value"]["tac"], found["error"]) == ("+CEREG", "00B7", None)


def test_the_things_of_a_session_are_told_apart_in_order():
    session = (
        "*** Booting nRF Connect SDK ***\r\nReady\r\nAT+CEREG?\r\r\n+CEREG: 1\r\n"
        '[00:00:01.000,000] <inf> app: up\r\n+CEREG: 5,1,"00B7","00011B07",7\r\n\r\nOK\r\n'
        "what is this\r\n%MDMEV: SEARCH STATUS 2\r\n> "
    )
    found = decode(session)
    assert [one["type"] for one in found] == [
        "log",
        "notice",
        "echo",
        "notice",
        "log",
        "answer",
        "unknown",
        "notice",
        "prompt",
    ]
    assert found[5]["value"]["n"] == 5
    assert found[5]["command"] == "AT+CEREG?"


@given(cuts=st.sets(st.integers(0, 200), max_size=20))
def test_objects_do_not_depend_on_where_the_bytes_were_cut(cuts):
    session = (
        'AT%CMNG=2,1,0\r\r\n%CMNG: 1,0,"' + "AB" * 32 + '","a\r\nOK\r\nERROR\r\n"\r\n\r\nOK\r\n'
        "+CME ERROR: 513\r\nnoise\r\n+CSCON: 1\r\n"
    )
    assert decode(session, cuts=cuts) == decode(session)


@given(st.binary(max_size=200), st.sampled_from([None, "AT+CEREG?", "AT%CMNG=1", "AT+CGMR", "AT"]))
def test_any_bytes_become_objects(data, command):
    kinds = {"answer", "notice", "log", "unknown", "echo", "prompt"}
    for found in decode(data, command):
        assert found["type"] in kinds
        assert found.get("error") is None or found["value"] is None


@pytest.mark.parametrize("notice", ["%XSIM: 0,9", "%XVBATLOWLVL: 3100"])
def test_a_notice_after_the_line_of_another_command_takes_nothing_of_it(notice):
    noticed, answer = decode(f"%XVBAT: 3600\r\n{notice}\r\nOK\r\n")
    assert (noticed["line"], answer["lines"]) == (notice, ["%XVBAT: 3600"])
    assert answer["value"] == {"vbat_mv": 3600}


@pytest.mark.parametrize(
    ("text", "final", "code", "said"),
    [
        ("ERROR", "ERROR", None, None),
        ("+CME ERROR: 513", "+CME ERROR", 513, None),
        ("+CME ERROR:513", "+CME ERROR", 513, None),
        ("+CME ERROR: SIM busy", "+CME ERROR", None, "SIM busy"),
        ("+CME ERROR: ", "+CME ERROR", None, None),
        ("+CMS ERROR: 304", "+CMS ERROR", 304, None),
        ("NO CARRIER", "NO CARRIER", None, None),
    ],
)
def test_every_kind_of_refusal_ends_an_answer(text, final, code, said):
    found = only(f"{text}\r\n", "AT+CPIN?")
    assert (found["final"], found["code"], found.get("text")) == (final, code, said)
    assert found["command"] == "AT+CPIN?"
    assert found["value"] is found["error"] is None


def test_the_end_of_the_input_ends_the_line_and_the_answer():
    found = only('+CEREG: 5,1,"00B7","00011B07",7', "AT+CEREG?")
    assert (found["final"], found["value"]["tac"]) == (None, "00B7")
    found = decode("AT+CGMR\r\nmfw_nrf9160_1.3.7")
    assert [one["type"] for one in found] == ["echo", "answer"]
    assert found[1]["value"] == {"revision": "mfw_nrf9160_1.3.7"}


def test_a_broken_line_is_refused_whole_and_its_error_said():
    for text, command in (
        ('+CEREG: 2,1,"002F"\r\nOK\r\n', "AT+CEREG?"),
        ('%CONEVAL: 0,1,5,8,2,14,"011B0780\u201d,"26295",7,1\r\nOK\r\n', "AT%CONEVAL"),
        ('%CMNG: 1,0,"' + "AB" * 32 + '"\r\n%CMNG: 2\r\nOK\r\n', "AT%CMNG=1"),
        ("+CSCON: 1\r\nOK\r\n", None),
    ):
        objects = decode(text, command)
        if command is None:
            assert objects[0]["type"] == "notice"
            continue
        (found,) = objects
        assert found["value"] is None
        assert found["error"]
    assert only("+CSCON: 2\r\n")["error"]


def test_bare_text_without_a_command_is_an_answer_only_if_a_final_result_follows():
    assert only("mfw_nrf9160_1.3.7\r\nOK\r\n")["lines"] == ["mfw_nrf9160_1.3.7"]
    assert only("mfw_nrf9160_1.3.7\r\n") == {"type": "unknown", "line": "mfw_nrf9160_1.3.7"}


def test_an_unknown_name_is_a_notice_unless_it_was_asked_for():
    assert only("+FOO: 1\r\n")["type"] == "notice"
    found = only("+FOO: 1\r\nOK\r\n", "AT+FOO?")
    assert (found["type"], found["value"], found["error"]) == ("answer", None, None)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("AT#XNRFCLOUD=0", "#XNRFCLOUD: 0,1"),
        ("AT#XGNSS=1,0,0", "#XGNSS: 1,1"),
        ("AT+CEREG=5", "+CEREG: 2"),
        ("AT%LOCATION=1", "%LOCATION: 2000"),
    ],
)
def test_a_line_before_the_ok_of_a_command_that_answers_nothing_is_a_notice(command, line):
    echo, notice, answer = decode(f"{command}\r\n\r\n{line}\r\n\r\nOK\r\n")
    assert (echo["type"], notice["line"], notice["type"]) == ("echo", line, "notice")
    assert notice["value"] is not None
    assert (answer["command"], answer["lines"]) == (command, [])


def test_text_beside_a_command_that_answers_nothing_is_nobodys():
    found = decode("AT%NCELLMEAS=3,5\r\nRRC mode: Connected\r\nOK\r\n")
    assert [one["type"] for one in found] == ["echo", "unknown", "answer"]
    assert (found[2]["lines"], found[2]["error"]) == ([], None)


@pytest.mark.parametrize("typed", ["at AT+CFUN?", "at 'AT+CFUN?'", "at  AT+CFUN?"])
def test_the_echo_of_the_shell_is_the_command_within(typed):
    found = decode(f"uart:~$ {typed}\r\n+CFUN: 1\r\nOK\r\nuart:~$ at_cmd_mode start\r\n")
    assert [one["type"] for one in found] == ["echo", "answer", "unknown"]
    assert found[0]["line"] == typed
    assert (found[1]["command"], found[1]["value"]["fun"]) == ("AT+CFUN?", 1)


def test_the_given_command_is_the_context_of_its_notices():
    line = '%NCELLMEAS: 0,"014A0305","24201","8169",80,4659,6400,105,50,16,4758,1,0\r\n'
    assert len(only(line, "AT%NCELLMEAS=3,2")["value"]["cells"]) == 1
    assert only(line, "AT%NCELLMEAS")["error"]
    found = decode(f"AT%NCELLMEAS=4,2\r\nOK\r\n{line}")
    assert found[-1]["value"]["cells"][0]["serving"] == 1


def test_a_token_is_decoded_and_not_repeated_in_its_error():
    found = only('%JWT: "aaaa.bbbb.cccc"\r\nOK\r\n', 'AT%JWT=0,0,"",""')
    assert found["value"] is None
    assert "bbbb" not in found["error"]


def test_a_restart_is_told_once():
    assert [one["name"] for one in decode("Ready\r\n#XMODEM: FAULT,0x1,0x2\r\n")] == [
        "Ready",
        "#XMODEM",
    ]
    assert only("*** Booting Zephyr OS ***\r\n")["type"] == "log"


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", "\r\r\n"])
def test_any_line_end_will_do(end):
    found = only(f"%XSYSTEMMODE: 1,0,1,0{end}OK{end}", "AT%XSYSTEMMODE?")
    assert found["value"] == {"lte_m": 1, "nb_iot": 0, "gnss": 1, "preference": 0}


@pytest.mark.parametrize(
    "line",
    [
        "+CEREG: (0-5)",
        "+CSCON: (0,1,2,3)",
        '+CEDRXS: (0-3),(4-5),("0000"-"1111")',
        "%XSYSTEMMODE: (0,1),(0,1),(0,1),(0-4)",
        "+CMEE:(0,1)",
    ],
)
def test_the_answer_to_an_unknown_test_command_is_no_malformed_one(line):
    found = only(f"{line}\r\nOK\r\n")
    assert (found["lines"], found["value"], found["error"]) == ([line], None, None)


def test_lists_that_a_type_reads_are_read_without_a_command():
    assert only("+CFUN: (0,1,4)\r\nOK\r\n")["value"]["funs"] == [0, 1, 4]
    assert only('+COPS: (1,"A\r\nOK\r\n')["error"]
    assert only('+CWLAP:(3,"x",-40,"02:00:00:00:00:01",6)\r\nOK\r\n')["value"]["networks"]


@pytest.mark.parametrize(
    ("command", "text", "whole"),
    [
        ("AT+CGMR", "mfw_nrf9151-ntn_1.0.0-1.alpha", True),
        ("AT+CGMR", "mfw_nrf91x1_2.0.", False),
        ("AT+CGMR", "mfw_nrf91x1_2.00.4", False),
        ("AT+CGMR", "EG915UEUABR03A01M08", True),  # other makers have no grammar
        ("AT%SHORTSWVER", "%SHORTSWVER: nrf91x1_2.0.2", True),
        ("AT%SHORTSWVER", "%SHORTSWVER: nrf91x1_2", False),
    ],
)
def test_a_firmware_name_that_breaks_off_is_refused(command, text, whole):
    found = only(f"{text}\r\nOK\r\n", command)
    assert (found["error"] is None) is whole
    assert (found["value"] is not None) is whole


@pytest.mark.parametrize("command", ["AT#XNRFCLOUD?", None])
def test_the_reply_about_the_cloud_names_the_device_and_a_notice_does_not(command):
    reply, notice = '#XNRFCLOUD: 1,0,16842753,""', "#XNRFCLOUD: 0,0"
    found = decode(f"\r\n{notice}\r\n\r\n{reply}\r\n\r\nOK\r\n", command)
    assert [one["type"] for one in found] == ["notice", "answer"]
    assert found[0]["value"]["device_id"] is None
    assert (found[1]["lines"], found[1]["value"]["device_id"]) == ([reply], "")
