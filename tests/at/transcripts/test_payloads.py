"""A payload is never recorded, only its length; what is no payload is recorded as it is."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from at.transcripts.recorder import Recorder
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.step_matching import Playback
from at.transcripts.steps import Direction, TranscriptStep
from at.transcripts.transcript import Transcript

SENT, RECEIVED = Direction.SENT, Direction.RECEIVED
CANARY = b"c0ffee5ec2e7"
DATA = b'{"pin":"' + CANARY + b'"}\r\nAT+CFUN=1\r"' + CANARY

ENTERS_DATA_MODE = (
    b"AT#XSEND",
    b"AT#XSEND=0,2,0",
    b"at#xsend=0,2,0,64",
    b'AT#XSENDTO=0,2,0,"host",1234',
    b'AT#XSENDTO="host",1234',
    b"AT#XTCPSEND",
    b"AT#XUDPSEND",
    b'AT#XMQTTPUB="topic"',
    b'AT#XMQTTPUB="topic","",1,0',
    b'AT#XHTTPCREQ=0,"https://h/p",1,1,0,64,"A: b"',
    b'AT#XHTTPCREQ=0,"https://h/p",1,1,64,"A: b"',
    b'AT#XHTTPCREQ="POST","/p","",64',
    b'AT#XHTTPCREQ="POST","/p","","text/plain",64',
    b'AT#XCOAPCREQ=0,"path",2,1,0,1,50,64',
    b'AT#XFTP="put","file"',
    b'AT#XFTP="uput"',
    b'AT#XCARRIER="app_data_set"',
    b"AT#XNRFCLOUD=2",
    b"AT#XDFUWRITE=0,0,64",
)
STAYS_IN_COMMANDS = (
    b'AT#XSEND=0,0,0,"x"',
    b"AT#XSEND=?",
    b'AT#XSENDTO=0,0,0,"host",1,"x"',
    b'AT#XMQTTPUB="topic","x",0,0',
    b'AT#XHTTPCREQ=0,"https://h/p",0',
    b'AT#XHTTPCREQ=0,"https://h/p",0,1,1',
    b'AT#XHTTPCREQ="GET","/p"',
    b"AT#XNRFCLOUD=1,1",
    b"AT#XNRFCLOUD?",
    b"AT#XDFUWRITE=?",
    b"AT+CMGS=?",
    b"AT+CFUN=1",
)


def recorded(*session: tuple[Direction, bytes]) -> list[TranscriptStep]:
    recorder = Recorder(Redactor())
    steps = [step for direction, data in session for step in recorder.add(direction, data, 0.0)]
    return steps + recorder.finish()


def sent(steps: list[TranscriptStep]) -> bytes:
    return b"".join(step.data for step in steps if step.direction is SENT)


def replayed(steps: list[TranscriptStep], *data: bytes) -> bool:
    """Return whether a strict replay takes all of `data`, byte by byte, and expects no more."""
    playback = Playback(Transcript(tuple(steps)))
    playback.first_steps()
    for byte in b"".join(data):
        playback.sent(bytes([byte]))
    return playback.remaining == []


@pytest.mark.parametrize("command", ENTERS_DATA_MODE)
@given(
    cuts=st.sets(st.integers(1, 60), max_size=6), mark=st.sampled_from([b"", b"+++", b"+++\r\n"])
)
def test_the_bytes_of_data_mode_are_left_out(command: bytes, cuts: set[int], mark: bytes) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(DATA)), len(DATA)]
    pieces = [DATA[a:b] for a, b in itertools.pairwise(edges)]
    steps = recorded(
        (SENT, command + b"\r"),
        (RECEIVED, b"\r\nOK\r\n"),
        *((SENT, piece) for piece in pieces),
        *([(SENT, mark)] if mark else []),
        (RECEIVED, b"\r\n#XDATAMODE: 0\r\n"),
        (SENT, b"AT+CGMR\r"),
        (RECEIVED, b"\r\nOK\r\n"),
    )
    assert CANARY not in sent(steps)
    assert b"AT+CFUN" not in sent(steps)
    assert sent(steps).endswith(mark + b"AT+CGMR\r")
    assert replayed(steps, command + b"\r", DATA, mark, b"AT+CGMR\r")


@pytest.mark.parametrize("command", STAYS_IN_COMMANDS)
def test_commands_go_on_where_no_payload_follows(command: bytes) -> None:
    steps = recorded(
        (SENT, command + b"\r"), (RECEIVED, b"\r\nOK\r\n"), (SENT, b"AT+CFUN=1\r"), (SENT, b"AT\r")
    )
    assert sent(steps).endswith(b"AT+CFUN=1\rAT\r")


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n", b"\0"])
@pytest.mark.parametrize("echo", [False, True])
def test_a_payload_is_left_out_whatever_ends_a_command(end: bytes, echo: bool) -> None:
    command = b"AT#XSEND=0,2,0" + end
    steps = recorded(
        (SENT, b"AT" + end),
        (RECEIVED, b"\r\nOK\r\n"),
        (SENT, command),
        (RECEIVED, (command if echo else b"\r\n") + b"OK\r\n"),
        (SENT, DATA + b"+++"),
        (RECEIVED, b"\r\n#XDATAMODE: 0\r\n"),
        (SENT, b'AT%CMNG=0,7,2,"a' + end + CANARY + b'"' + end),
        (SENT, b"AT+CGMR" + end),
    )
    assert CANARY not in sent(steps)
    assert sent(steps).endswith(b"AT+CGMR" + end)
    assert steps[0].data == b"AT" + end[:1]


def test_commands_go_on_where_the_modem_refuses_the_payload() -> None:
    steps = recorded(
        (SENT, b"AT#XSEND=0,2,0\rAT+CFUN=1\r"), (RECEIVED, b"\r\nERROR\r\n"), (SENT, b"AT\r")
    )
    assert sent(steps) == b"AT#XSEND=0,2,0\rAT+CFUN=1\rAT\r"


def test_a_payload_sent_before_the_answer_is_left_out() -> None:
    for end in ((), ((RECEIVED, b"\r\nOK\r\n"),)):
        steps = recorded((SENT, b"AT#XSEND=0,2,0\r\n"), (SENT, DATA), *end)
        assert CANARY not in sent(steps)
        assert replayed(steps, b"AT#XSEND=0,2,0\r\n", DATA)


def test_a_command_taken_for_payload_costs_no_more_than_itself() -> None:
    steps = recorded(
        (SENT, b"AT#XNRFCLOUD=2\r"),
        (RECEIVED, b"\r\nOK\r\n"),
        (SENT, b"AT+CFUN?\r"),
        (RECEIVED, b"\r\n+CFUN: 1\r\n\r\nOK\r\n"),
        (SENT, b"AT+CGMR\r"),
    )
    assert sent(steps) == b"AT#XNRFCLOUD=2\r{redacted:payload:9}AT+CGMR\r"


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("message", [CANARY, b"0011" * 20, b'say "' + CANARY + b"\rAT+CPIN=1"])
def test_a_message_is_left_out_and_so_is_its_echo(message: bytes, echo: bool) -> None:
    command = b"AT+CMGS=24\r"
    steps = recorded(
        (SENT, command),
        (RECEIVED, (command if echo else b"") + b"\r\n> "),
        (SENT, message + b"\x1a"),
        *([(RECEIVED, message + b"\x1a")] if echo else []),
        (RECEIVED, b"\r\n+CMGS: 7\r\n\r\nOK\r\n"),
        (SENT, b"AT\r"),
    )
    assert message not in b"".join(step.data for step in steps)
    assert CANARY not in b"".join(step.data for step in steps)
    assert sent(steps) == command + b"{redacted:payload:%d}\x1aAT\r" % len(message)
    assert any(step.data == b"+CMGS: 7\r\n" for step in steps)
    assert replayed(steps, command, message + b"\x1a", b"AT\r")


@pytest.mark.parametrize("name", [b"+CMT", b"+CDS", b"+CMGR"])
@pytest.mark.parametrize(
    ("message", "shown"),
    [(b"07911326" * 3, b"00000000" * 3), (CANARY + b"!", b"{redacted:message}")],
)
def test_a_message_that_came_is_hidden_and_hex_stays_hex(
    name: bytes, message: bytes, shown: bytes
) -> None:
    steps = recorded((RECEIVED, name + b": 24\r\n" + message + b"\r\n+CEREG: 1\r\n"))
    assert [step.data for step in steps] == [name + b": 24\r\n", shown + b"\r\n", b"+CEREG: 1\r\n"]


def test_a_message_that_a_log_shows_is_hidden_behind_the_same_stamp() -> None:
    steps = recorded(
        (
            RECEIVED,
            b"[00:00:01.000,000] <inf> at: +CMT: 24\r\n[00:00:01.000,900] <inf> app: beat 12\r\n"
            b"[00:00:01.001,000] <inf> at: " + CANARY + b"!\r\n",
        )
    )
    assert [step.data for step in steps][1:] == [
        b"[00:00:01.000,900] <inf> app: beat 12\r\n",
        b"[00:00:01.001,000] <inf> at: {redacted:message}\r\n",
    ]


@pytest.mark.parametrize("message", [b"07911326" * 3, CANARY + b"!"])
def test_a_message_that_a_log_shows_on_its_next_line_is_hidden(message: bytes) -> None:
    notice = b"[00:00:01.000,000] <dbg> at_monitor: +CMT: 24\r\n"
    steps = recorded((RECEIVED, notice + message + b"\r\n[00:00:02.000,000] <inf> app: beat\r\n"))
    assert message not in b"".join(step.data for step in steps)
    assert steps[-1].data == b"[00:00:02.000,000] <inf> app: beat\r\n"


def test_a_log_line_before_the_message_that_came_is_not_taken_for_it() -> None:
    log = b"[00:00:01.000,900] <inf> app: beat 12\r\n"
    steps = recorded((RECEIVED, b"+CMT: 24\r\n" + log + CANARY + b"!\r\n"))
    assert [step.data for step in steps][1:] == [log, b"{redacted:message}\r\n"]


@given(
    st.lists(
        st.tuples(st.sampled_from([SENT, RECEIVED]), st.binary(min_size=1, max_size=40)),
        max_size=20,
    )
)
def test_a_session_of_any_bytes_loses_none_unless_a_payload_or_secret_is_named(
    session: list[tuple[Direction, bytes]],
) -> None:
    assume(b"-----BEGIN " not in b"".join(data for _, data in session))  # a key's
    steps = recorded(*session)
    for direction in (SENT, RECEIVED):
        data = b"".join(data for way, data in session if way is direction)
        assert b"".join(s.data for s in steps if s.direction is direction) == data


@pytest.mark.parametrize("stamp", [b"", b"[10:00:00.5] "])
def test_no_line_of_a_message_that_was_read_is_recorded(stamp: bytes) -> None:
    lines = (
        b'+CMGL: 1,"REC READ","12",,"25/01/01,10:00:00+04"',
        *(b"Your code:", CANARY, b"good for " + CANARY),
        b"+CSCON: 1",
        CANARY,
        b'+CMGL: 2,"REC READ","12",,"25/01/01,10:00:00+04"',
        CANARY,
        b"OK",
        b"+CSCON: 0",
    )
    answer = b"".join(stamp + line + b"\r\n" for line in lines)
    steps = recorded((SENT, b'AT+CMGL="ALL"\r'), (RECEIVED, answer))
    received = b"".join(step.data for step in steps)
    assert CANARY not in received
    assert received.count(b"{redacted:message}") == 2  # and what looks like hex keeps its shape
    assert received.count(b"+CSCON") == 2
