"""The recorder: whole lines, and no secret in a file however the bytes were cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from at.transcripts.recorder import Recorder
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.steps import Direction
from tests.support.modem.secret_spellings import spelled

CANARY = "c0ffee5ec2e7"
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0." + CANARY * 7
SECRETS = {
    "psk": (Direction.SENT, f'AT%CMNG=0,7,3,"{CANARY}"\r'),
    "key": (
        Direction.SENT,
        (
            f'AT%CMNG=0,7,2,"-----BEGIN EC PRIVATE KEY-----\n{CANARY}\n'
            '-----END EC PRIVATE KEY-----\n"\r'
        ),
    ),
    "key in a wrong place": (
        Direction.SENT,
        f'AT%CMNG=0,7,0,"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----"\r',
    ),
    "psk read back": (Direction.RECEIVED, f'%CMNG: 7,3,"{"A" * 64}","{CANARY}"\r\n'),
    "token": (Direction.RECEIVED, f'%JWT: "{TOKEN}"\r\n'),
    "token in a log": (Direction.RECEIVED, f"[00:00:01.000,000] <inf> http: Bearer {TOKEN}\r\n"),
    "header": (Direction.RECEIVED, f"Authorization: Bearer {CANARY}\r\n"),
    "pin": (Direction.SENT, f'AT+CPIN="{CANARY}"\r'),
    "password": (Direction.SENT, f'AT+CGAUTH=0,1,"user","{CANARY}"\r'),
    **{
        f"{name} {spelling}": (Direction.SENT, f"{line}\r")
        for name, spelling, line, sent in spelled()
        if sent and spelling in {"as in the manual", "a quote that is not closed", "no sign"}
    },
    "wifi": (Direction.SENT, f'AT+CWJAP="home","{CANARY}"\r'),
}


def _written(name: str, cuts: set[int], interrupted: bool) -> bytes:
    """Return what a recorder writes of a secret's line that comes in parts."""
    direction, text = SECRETS[name]
    stream = text.encode()
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    recorder = Recorder(Redactor())
    written = b""
    other = Direction.RECEIVED if direction is Direction.SENT else Direction.SENT
    for a, b in itertools.pairwise(edges):
        steps = recorder.add(direction, stream[a:b], 0.0)
        if interrupted and '"' in text:
            steps += recorder.add(other, b"x\r\n", 0.0)
        written += b"".join(s.data for s in steps if s.direction is direction)
    return written + b"".join(s.data for s in recorder.finish() if s.direction is direction)


# All secrets with each example: to draw it takes longer than to record one. No shorter example is
# looked for, which would take minutes: the failure names the secrets.
@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(cuts=st.sets(st.integers(1, 200)), interrupted=st.booleans())
def test_no_secret_is_written(cuts: set[int], interrupted: bool) -> None:
    shown = [name for name in SECRETS if CANARY.encode() in _written(name, cuts, interrupted)]
    assert not shown, shown


READ_BACK = {
    "AT+CGAUTH?": f'+CGAUTH: 0,1,"{CANARY}","{CANARY}"',
    "AT%CMNG=2,7,3": f'%CMNG: 7,3,"{"A" * 64}","{CANARY}"',
    "AT%KEYINJECT=1": f'%KEYINJECT: "{CANARY}"',
    'AT+CSIM=10,"0088008110"': f'+CSIM: 28,"{CANARY}{CANARY}9000"',
    'AT%XSUDO=9,"c2ln";%CMNG=2,7,3': f'%CMNG: 7,3,"{"A" * 64}","{CANARY}"',
}


@pytest.mark.parametrize("command", READ_BACK)
@given(damage=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 255)), max_size=6))
def test_what_answers_a_command_with_secrets_is_hidden_whatever_noise_made_of_its_name(
    command: str, damage: list[tuple[int, int]]
) -> None:
    line = bytearray(READ_BACK[command].encode())
    for at, byte in damage:
        line[at] = byte
    recorder = Recorder(Redactor())
    steps = recorder.add(Direction.SENT, f"{command}\r".encode(), 0.0)
    steps += recorder.add(Direction.RECEIVED, b"\r\n+CEREG: 2\r\n\r\n", 0.1)
    steps += recorder.add(Direction.RECEIVED, bytes(line) + b"\r\n\r\nOK\r\n", 0.1)
    steps += recorder.add(Direction.SENT, b"AT+CFUN?\r", 0.2)
    steps += recorder.add(Direction.RECEIVED, b"\r\n+CFUN: 4\r\nOK\r\n", 0.3) + recorder.finish()
    written = b"".join(step.data for step in steps)
    assert CANARY.encode() not in written
    assert b"+CEREG: 2\r\n" in written
    if line.count(b'"') % 2 == 0:  # else a quote spans what follows
        assert written.endswith(b"+CFUN: 4\r\nOK\r\n")


def test_a_line_that_was_interrupted_in_its_name_keeps_its_secret() -> None:
    recorder = Recorder(Redactor())
    steps = recorder.add(Direction.SENT, b"AT%CMNG=0,", 0.0)
    steps += recorder.add(Direction.RECEIVED, b"+CEREG: 2\r\n", 0.1)
    steps += recorder.add(Direction.SENT, f'7,3,"{CANARY}"\r'.encode(), 0.2)
    assert CANARY.encode() not in b"".join(step.data for step in steps)


def test_an_endless_secret_is_left_out() -> None:
    recorder = Recorder(Redactor())
    written = b""
    for piece in (b'AT%CMNG=0,7,3,"', b"5" * 20000, CANARY.encode() * 2000, b'"\r', b"AT\r"):
        written += b"".join(step.data for step in recorder.add(Direction.SENT, piece, 0.0))
    assert CANARY.encode() not in written
    assert written.endswith(b"\rAT\r")


def test_what_stands_behind_an_endless_secret_is_left_out_too() -> None:
    for begun in ('AT%CMNG=0,7,2,"', "AT#XSEND=0,0,0,", "AT+CGAUTH=0,1,"):
        recorder = Recorder(Redactor())
        written = b""
        end = '"' if begun.endswith('"') else ""
        for piece in (begun, "5" * 20000, f'{end},"{CANARY}"', f",{CANARY}", "\r", "AT\r"):
            steps = recorder.add(Direction.SENT, piece.encode(), 0.0)
            written += b"".join(step.data for step in steps)
        assert CANARY.encode() not in written
        assert written.endswith(b"\rAT\r")


@pytest.mark.parametrize("before", ['"', 'x"', '"~~~~\r', 'AT+X="\r'])
def test_a_quote_before_a_secret_does_not_end_it(before: str) -> None:
    recorder = Recorder(Redactor())
    steps = recorder.add(Direction.SENT, before.encode(), 0.0)
    for piece in ('AT%CMNG=0,7,2,"a\r', f"{CANARY}\r", f'{CANARY}"\r', "AT\r"):
        steps += recorder.add(Direction.SENT, piece.encode(), 0.0)
    assert CANARY.encode() not in b"".join(step.data for step in steps + recorder.finish())


def test_bytes_without_a_line_end_are_kept_in_pieces() -> None:
    recorder = Recorder(Redactor())
    steps = recorder.add(Direction.RECEIVED, b"x" * 40000, 0.0) + recorder.finish()
    assert b"".join(step.data for step in steps) == b"x" * 40000


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", "\0"])
@given(cuts=st.sets(st.integers(1, 60)))
def test_an_answer_stands_behind_its_command_whatever_ends_that(end: str, cuts: set[int]) -> None:
    recorder = Recorder(Redactor(identity=True))
    steps = []
    for command, answer in (("AT+CGMM", "nRF9161-LACA"), ("AT+CIMI", "262011234567890")):
        steps += recorder.add(Direction.SENT, f"{command}{end}".encode(), 0.0)
        stream = f"{answer}\r\nOK\r\n".encode()
        edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
        for a, b in itertools.pairwise(edges):
            steps += recorder.add(Direction.RECEIVED, stream[a:b], 0.0)
    steps += recorder.finish()
    text = [(step.direction, step.data.strip(b"\r\n\0")) for step in steps]
    assert [pair for pair in text if pair[1]] == [
        (Direction.SENT, b"AT+CGMM"),
        (Direction.RECEIVED, b"nRF9161-LACA"),
        (Direction.RECEIVED, b"OK"),
        (Direction.SENT, b"AT+CIMI"),
        (Direction.RECEIVED, b"262019999900001"),
        (Direction.RECEIVED, b"OK"),
    ]


def test_an_answer_whose_line_feed_comes_late_stands_before_the_command_that_it_led_to() -> None:
    recorder = Recorder(Redactor())
    parts = (
        *((Direction.SENT, b"AT#XSEND\r"), (Direction.RECEIVED, b"\r\nOK\r")),
        *((Direction.SENT, b"data"), (Direction.RECEIVED, b"\n"), (Direction.SENT, b"+++")),
        (Direction.RECEIVED, b"\r\n#XDATAMODE: 0\r\n"),
    )
    steps = [step for direction, data in parts for step in recorder.add(direction, data, 0.0)]
    assert [(step.direction, step.data) for step in steps] == [
        (Direction.SENT, b"AT#XSEND\r"),
        (Direction.RECEIVED, b"\r\n"),
        (Direction.RECEIVED, b"OK\r"),
        (Direction.SENT, b"{redacted:payload:4}"),
        (Direction.RECEIVED, b"\n"),
        (Direction.SENT, b"+++"),
        (Direction.RECEIVED, b"\r\n"),
        (Direction.RECEIVED, b"#XDATAMODE: 0\r\n"),
    ]
