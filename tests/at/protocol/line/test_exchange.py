"""Every line of the modem gets its owner: live, and offline."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.catalog import command_of
from at.protocol.line.answer_or_notice import Owner
from at.protocol.line.exchange import Exchange
from at.protocol.line.framing import Log
from at.protocol.line.items import Answer, Echo, Item, NoticeLine, Restart, Unknown
from at.protocol.state_machine import IllegalTransition


def live(command: str, stream: str, owner: Owner | None = None) -> list[Item]:
    machine = Exchange()
    machine.start(command, owner)
    return list(machine.feed(stream.encode()))


def offline(stream: str, command: str | None = None) -> list[Item]:
    machine = Exchange(offline=True)
    if command:
        machine.start(command)
    return [*machine.feed(stream.encode()), *machine.finish()]


def test_the_read_reply_and_the_notice_of_the_same_name_are_told_apart() -> None:
    found = live("AT+CEREG?", '+CEREG: 1\r\n+CEREG: 1,1\r\n+CEREG: 5,"00B7","1",7\r\nOK\r\n')
    assert found == [
        NoticeLine("+CEREG", "+CEREG: 1"),
        NoticeLine("+CEREG", '+CEREG: 5,"00B7","1",7'),
        Answer(("+CEREG: 1,1",), "OK"),
    ]


def test_a_set_command_owns_no_line_of_its_subscription() -> None:
    found = live("AT+CEREG=5", "+CEREG: 2\r\nOK\r\n")
    assert found == [NoticeLine("+CEREG", "+CEREG: 2"), Answer((), "OK")]


def test_a_notice_between_a_command_and_its_bare_answer_is_no_part_of_it() -> None:
    found = live("AT+CGSN", "+CSCON: 1\r\n352656100367872\r\nOK\r\n")
    assert found == [NoticeLine("+CSCON", "+CSCON: 1"), Answer(("352656100367872",), "OK")]


def test_a_typed_command_takes_no_bare_line_for_its_own() -> None:
    owner = Owner("%XVBAT", lambda line: True, bare=False)
    found = live("AT%XVBAT", "noise\r\n%XVBAT: 5054\r\nOK\r\n", owner)
    assert found == [Unknown("noise"), Answer(("%XVBAT: 5054",), "OK")]


@pytest.mark.parametrize(
    "echo", ["AT+CGMR\r\r\n", "AT+CGMR\r", "AT+CG\r\r\n", "T+CGMR\r\r\n", ""], ids=repr
)
def test_an_echo_whole_cut_or_missing_changes_no_answer(echo: str) -> None:
    found = live("AT+CGMR", f"{echo}\r\nmfw_nrf9160_1.3.5\r\n\r\nOK\r\n")
    assert [item for item in found if not isinstance(item, Echo)] == [
        Answer(("mfw_nrf9160_1.3.5",), "OK")
    ]


def test_an_echo_of_several_lines_is_no_answer_though_a_line_of_it_reads_ok() -> None:
    command = 'AT%CMNG=0,1,0,"-----BEGIN\nOK\nMII\n-----END"'
    found = live(command, command + "\r\r\n\r\nOK\r\n")
    assert [item for item in found if not isinstance(item, Echo)] == [Answer((), "OK")]


def test_an_echo_cut_at_4096_bytes_changes_no_answer() -> None:
    command = 'AT%CMNG=0,1,0,"' + "A" * 4200 + '"'
    found = live(command, command[:4096] + "\r\n\r\nOK\r\n")
    assert found == [Echo(command[:4096]), Answer((), "OK")]


@pytest.mark.parametrize("line", ["Ready", "INIT ERROR", "Bootloader mode ready"])
def test_a_restart_ends_the_exchange(line: str) -> None:
    machine = Exchange()
    machine.start("AT+CFUN=1")
    assert list(machine.feed(f"\r\n{line}\r\n".encode())) == [Restart(line)]
    assert not machine.in_flight


def test_a_boot_banner_is_a_log_line_and_a_restart() -> None:
    banner = "*** Booting nRF Connect SDK v2.7.0 ***"
    assert live("AT", f"{banner}\r\n") == [Log(banner), Restart(banner)]


BANNER = "*** Booting nRF Connect SDK v2.7.0 ***"


@pytest.mark.parametrize(
    ("stream", "start"),
    [
        (f"\xff{BANNER}\r\n", BANNER),  # the line is no line yet while the kit resets
        (f'%JWT: "eyJhbGciOi{BANNER}\r\n', BANNER),
        (f'%JWT: "eyJhbGciOi\r\n{BANNER}\r\n', BANNER),
        (f'%JWT: "eyJhbGciOi\r\n\0{BANNER}\r\n', BANNER),
        ('%JWT: "eyJhbGciOi\r\nReady\r\n', "Ready"),
        (f"%JWT: [00:00:07.250,000] <inf> app: x\r\n\x7f{BANNER}\r\n", BANNER),
        ("%JWT: [00:00:07.250,000] <inf> app: x\r\nReady\r\n", "Ready"),
        (f"[00:00:07.250,000] <inf> app: x{BANNER}\r\n", BANNER),
        (f"%JWT: [00:00:07.250,000] <inf> app: x{BANNER}\r\n", BANNER),
        (f'%JWT: "ey\r\n[00:00:07.250,000] <inf> app: x{BANNER}\r\n', BANNER),
    ],
)
def test_a_restart_is_told_from_the_line_that_it_broke_off(stream: str, start: str) -> None:
    machine = Exchange()
    machine.start("AT%JWT")
    items = list(machine.feed(stream.encode("latin-1")))
    assert Restart(start) in items
    assert not machine.in_flight


def test_a_log_line_that_a_restart_broke_off_within_an_answer_is_shown() -> None:
    log = "[00:00:07.250,000] <inf> app: x"
    assert live("AT%JWT", f"%JWT: {log}{BANNER}\r\n") == [Log(log), Log(BANNER), Restart(BANNER)]


@pytest.mark.parametrize(
    "text", ["***** MPU FAULT *****", ">>> ZEPHYR FATAL ERROR 2: Oops on CPU 0"]
)
def test_the_heading_of_a_crash_is_no_line_of_a_bare_answer(text: str) -> None:
    found = live("AT+CGSN", f"{text}\r\n352656100367872\r\nOK\r\n")
    assert found == [Log(text), Answer(("352656100367872",), "OK")]


def test_a_restart_gives_back_what_the_application_printed_within_an_answer() -> None:
    text = "ASSERTION FAIL [ready] @ main.c:12"
    found = live("AT%JWT", f'%JWT: "eyJhbGciOi"\r\n{text}\r\nReady\r\n')
    assert found == [Unknown(text), Restart("Ready")]


def test_a_modem_fault_is_a_notice_and_a_restart() -> None:
    line = "#XMODEM: FAULT,0x3,0x20083C2A"
    assert live("AT", f"{line}\r\n") == [NoticeLine("#XMODEM", line), Restart(line)]
    line = "#XMODEM: SHUTDOWN,0"  # INIT follows it
    assert live("AT", f"{line}\r\n") == [NoticeLine("#XMODEM", line)]


def test_without_a_command_a_final_result_belongs_to_nobody() -> None:
    assert list(Exchange().feed(b"\r\nOK\r\n")) == [Unknown("OK")]


def test_the_context_of_a_notice_is_the_last_accepted_command_of_its_name() -> None:
    machine = Exchange()
    machine.start("AT%NCELLMEAS=3,5")
    list(machine.feed(b"OK\r\n"))
    assert list(machine.feed(b"%NCELLMEAS: 1\r\n")) == [
        NoticeLine("%NCELLMEAS", "%NCELLMEAS: 1", "AT%NCELLMEAS=3,5")
    ]
    machine.start("AT%NCELLMEAS=9,9")
    list(machine.feed(b"ERROR\r\n"))
    assert machine.contexts == {"%NCELLMEAS": "AT%NCELLMEAS=3,5"}
    list(machine.feed(b"Ready\r\n"))
    assert machine.contexts == {}


def test_offline_an_echo_becomes_the_command() -> None:
    found = offline("AT+CFUN?\r\n+CFUN: 1\r\nOK\r\n")
    assert found == [Echo("AT+CFUN?"), Answer(("+CFUN: 1",), "OK")]
    assert isinstance(found[1], Answer)
    assert found[1].command == "AT+CFUN?"


def test_offline_the_end_of_the_input_ends_the_answer() -> None:
    assert offline("+CFUN: 1") == [Answer(("+CFUN: 1",), None)]
    assert offline("mfw_nrf9160_1.3.5", "AT+CGMR") == [Answer(("mfw_nrf9160_1.3.5",), None)]


def test_offline_lines_that_nobody_asked_for_are_unknown_or_notices_in_order() -> None:
    found = offline("hello\r\n%CESQ: 54,2,16,2\r\nagain\r\n+CEREG: 1\r\n")
    assert found == [
        Unknown("hello"),
        NoticeLine("%CESQ", "%CESQ: 54,2,16,2"),
        Unknown("again"),
        NoticeLine("+CEREG", "+CEREG: 1"),
    ]


def test_offline_a_notice_may_stand_between_a_bare_answer_and_its_final_result() -> None:
    assert offline("352656100367872\r\n+CEREG: 1\r\nOK\r\n") == [
        NoticeLine("+CEREG", "+CEREG: 1"),
        Answer(("352656100367872",), "OK"),
    ]


@given(st.lists(st.binary(max_size=60), max_size=30), st.booleans())
def test_no_bytes_make_the_reader_fail(pieces: list[bytes], is_offline: bool) -> None:
    machine = Exchange(offline=is_offline)
    machine.start("AT+CGMR")
    for piece in pieces:
        list(machine.feed(piece))
    list(machine.finish())


@given(
    pieces=st.lists(
        st.sampled_from(
            [
                b"OK\r\n",
                b"\r\n",
                b"\r",
                b"\n",
                b"+CEREG: 1\r\n",
                b'%CMNG: 1,0,"a',
                b'b"\r\n',
                b"+CM",
                b"x" * 90,
                b" y \r\n",
                b"> ",
                b"[00:00:12.345,678] <inf> a: b",
                b"AT+CGMR\r\r\n",
                b"*** Booting\r\n",
                b"*** Booting",
                b"\xff\r\n",
            ]
        ),
        max_size=14,
    ),
    cuts=st.sets(st.integers(0, 300)),
)
def test_plain_lines_are_sorted_like_all_others(pieces: list[bytes], cuts: set[int]) -> None:
    def items(parts: list[bytes]) -> list[Item]:
        machine = Exchange()
        machine.framer.limit = 100
        machine.start("AT%CMNG=1")
        found = [item for part in parts for item in machine.feed(part)]
        return found + list(machine.finish())

    stream = b"".join(pieces)
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(stream)), len(stream)]
    assert items([stream]) == items([stream[a:b] for a, b in pairwise(edges)])
    assert items([stream]) == items([stream[at : at + 1] for at in range(len(stream))])


CORPUS = (
    'AT%CMNG=2,1,0\r\r\n%CMNG: 1,0,"AB","-----BEGIN\r\nOK\r\n-----END"\r\n\r\nOK\r\n'
    "[00:00:01.000,000] <inf> app: x\r\n+CEREG: 5,1\r\n+CME ERROR: 518\r\nReady\r\n\x00\xff"
).encode("latin-1")


@given(cuts=st.sets(st.integers(1, len(CORPUS) - 1)))
def test_items_do_not_depend_on_where_the_bytes_were_cut(cuts: set[int]) -> None:
    def items(pieces: list[bytes]) -> list[Item]:
        machine = Exchange(offline=True)
        return [item for piece in pieces for item in machine.feed(piece)] + list(machine.finish())

    edges = [0, *sorted(cuts), len(CORPUS)]
    assert items([CORPUS[start:end] for start, end in pairwise(edges)]) == items([CORPUS])


@pytest.mark.parametrize("command", ["AT+CLAC", "AT#XCLAC"])
def test_the_commands_of_a_list_are_no_echoes(command: str) -> None:
    listed = "AT+CFUN\r\nAT#XCLAC\r\nAT+CLAC\r\nAT%XVBAT\r\n"
    names = ("AT+CFUN", "AT#XCLAC", "AT+CLAC", "AT%XVBAT")
    assert offline(f"{listed}OK\r\n", command) == [Answer(names, "OK")]
    assert offline(f"{command}\r\r\n{listed}OK\r\nAT+CFUN?\r\r\n") == [
        Echo(command),
        Answer(names, "OK"),
        Echo("AT+CFUN?"),
        Answer((), None),
    ]


PDU = "0791448720003023240DD0E474D81C0EBB010000111011315214000BE474D81C0EBB5DE3771B"


def test_a_short_message_is_part_of_its_notice_and_of_no_answer() -> None:
    stream = f'+CMT: "+15550100",24\r\n{PDU}\r\nmfw_nrf91x1_2.0.2\r\nOK\r\n'
    found = live("AT+CGMR", stream)
    assert found == [
        NoticeLine("+CMT", f'+CMT: "+15550100",24\r\n{PDU}'),
        Answer(("mfw_nrf91x1_2.0.2",), "OK"),
    ]
    assert offline(stream, "AT+CGMR") == found
    assert offline(f"+CDS: 24\r\n{PDU}") == [NoticeLine("+CDS", f"+CDS: 24\r\n{PDU}")]


def test_a_message_whose_text_does_not_come_is_told_all_the_same() -> None:
    assert offline("+CMT: 24\r\n") == [NoticeLine("+CMT", "+CMT: 24")]
    assert live("AT", "+CMT: 24\r\nOK\r\n") == [NoticeLine("+CMT", "+CMT: 24"), Answer((), "OK")]
    machine = Exchange()
    machine.start("AT")
    assert list(machine.feed(b"+CDS: 24\r\n")) == []
    assert machine.abandon() == [NoticeLine("+CDS", "+CDS: 24")]


def test_offline_lines_with_a_name_are_one_answer_though_no_command_was_seen() -> None:
    lines = ("352656100367872", "+CFUN: 1", "more", "+CGSN: 2", "+CGSN: 3", "end")
    assert offline("\r\n".join(lines)) == [Answer(lines, None)]
    assert offline("\r\n".join([*lines, "OK", "+CEREG: 1", *lines[2:], "AT+CFUN?"])) == [
        Answer(lines, "OK"),
        NoticeLine("+CEREG", "+CEREG: 1"),
        Answer(lines[2:], None),
        Echo("AT+CFUN?"),
        Answer((), None),
    ]


@pytest.mark.parametrize("before", ["OK", "AT\r\nOK", "+CFUN: 1\r\nOK", "+CFUN: 1\r\nAT\r\nOK"])
def test_offline_what_follows_an_answer_is_no_part_of_it(before: str) -> None:
    found = offline(f"{before}\r\nhello\r\nAT+CFUN?\r\n+CFUN: 1\r\nOK\r\nbye\r\n")
    assert found[-4:] == [
        Unknown("hello"),
        Echo("AT+CFUN?"),
        Answer(("+CFUN: 1",), "OK"),
        Unknown("bye"),
    ]
    assert offline(f"{before}\r\n")[-1].final == "OK"


def test_a_command_is_not_sent_while_another_is_in_flight() -> None:
    machine = Exchange()
    machine.abandon()
    machine.start("AT+CFUN?")
    with pytest.raises(IllegalTransition, match="ANSWERED does not allow ExchangeEvent COMMAND"):
        machine.start("AT")
    machine.abandon()
    machine.start("AT")
    assert list(machine.feed(b"OK\r\n")) == [Answer((), "OK")]


@given(
    st.lists(
        st.sampled_from(
            [b"OK\r\n", b"+CFUN: 1\r\n", b"AT+CFUN?\r\n", b"hi\r\n", b"Ready\r\n", b"> "]
        )
        | st.sampled_from(["start", "prompt", "abandon", "disown"]),
        max_size=14,
    ),
    st.booleans(),
)
def test_whatever_happens_one_command_is_in_flight_or_none(
    steps: list[bytes | str], is_offline: bool
) -> None:
    machine = Exchange(offline=is_offline)
    for step in steps:
        if isinstance(step, bytes):
            list(machine.feed(step))
        elif step == "abandon":
            machine.abandon()
        elif step == "disown":
            machine.disown()
        elif not machine.in_flight:
            machine.abandon()
            machine.start("AT+CFUN?", prompt=step == "prompt")
            assert machine.in_flight
    machine.abandon()
    assert not machine.in_flight
    machine.start("AT+CGMR")
    assert list(machine.feed(b"\r\nmfw\r\nOK\r\n"))[-1] == Answer(("mfw",), "OK")


@pytest.mark.parametrize(
    ("command", "notice", "reply"),
    [
        ("AT%XSIM?", "%XSIM: 0,9", "%XSIM: 1"),
        ("AT%XTEMP?", "%XTEMP: 2,56", "%XTEMP: 56"),
        ("AT%XVBATLOWLVL?", "%XVBATLOWLVL: 3204", "%XVBATLOWLVL: 3300"),
    ],
)
def test_a_notice_of_the_name_that_is_read_comes_before_the_reply(
    command: str, notice: str, reply: str
) -> None:
    for typed in (False, True):
        machine = Exchange()
        kind = command_of(command)
        assert kind is not None
        machine.start(command, Owner(kind.prefix, kind.owns, bare=False) if typed else None)
        items = list(machine.feed(f"{notice}\r\n{reply}\r\nOK\r\n".encode()))
        assert items == [NoticeLine(command[2:-1], notice), Answer((reply,), "OK")]
        assert kind.parse((reply,))


@pytest.mark.parametrize("noise", ["~x", "Ab", "\\xff\\xfe", "\x01\x02"])
@pytest.mark.parametrize("command", ["AT+CEREG?", "AT+COPS=?"])
def test_noise_is_no_line_of_an_answer(command: str, noise: str) -> None:
    machine = Exchange()
    machine.start(command)
    reply = f"{command[2:].rstrip('=?')}: 0,1"
    items = list(machine.feed(f"{noise}\r\n{reply}\r\n{noise}\r\nOK\r\n".encode()))
    assert items == [Unknown(noise), Unknown(noise), Answer((reply,), "OK")]


@pytest.mark.parametrize("noise", ["\\xff\\xfeabc", "ab\x7f"])
def test_what_is_not_printable_is_no_line_of_an_answer_without_names(noise: str) -> None:
    machine = Exchange()
    machine.start("AT+CGMR")
    items = list(machine.feed(f"{noise}\r\nmfw_nrf91x1_2.0.4\r\nOK\r\n".encode()))
    assert items == [Unknown(noise), Answer(("mfw_nrf91x1_2.0.4",), "OK")]


def test_a_reply_of_a_name_asked_before_and_its_ok_are_not_given_to_another_command() -> None:
    machine = Exchange()
    for command, reply in (("AT+CFUN?", "+CFUN: 1"), ("AT+CEREG?", "+CEREG: 5,1")):
        machine.start(command)
        list(machine.feed(f"{reply}\r\nOK\r\n".encode()))
    machine.start("AT%MDMEV=2")
    again = "+CFUN: 1\r\nOK\r\n+CEREG: 5,1\r\nOK\r\n"
    assert list(machine.feed(again.encode())) == [
        *map(Unknown, ("+CFUN: 1", "OK", "+CEREG: 5,1", "OK"))
    ]
    assert list(machine.feed(b"+CEREG: 5\r\nOK\r\n")) == [
        NoticeLine("+CEREG", "+CEREG: 5", "AT+CEREG?"),
        Answer((), "OK"),
    ]
