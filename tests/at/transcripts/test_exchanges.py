"""Sessions of version 2: in any order, with what may be left out, with faults as steps."""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import TranscriptError
from at.transcripts.replay_transport import ReplayTransport
from at.transcripts.step_matching import Divergence, Playback
from at.transcripts.steps import TranscriptStep
from at.transcripts.transcript import parse_transcript
from tests.support.harness import virtual_time
from tests.support.modem.byte_receiver import ByteReceiver

HEAD = "# transcript: 2\n"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "transcripts.md"


def data(steps: list[TranscriptStep]) -> bytes:
    return b"".join(step.data for step in steps)


@given(order=st.permutations(range(5)), skipped=st.booleans())
def test_commands_between_the_marks_come_in_any_order(order: list[int], skipped: bool) -> None:
    block = "".join(f"> AT+X{n}\n< answer {n}\n< OK\n" for n in range(5))
    extra = "?> AT+EXTRA\n< extra\n"
    session = f"< Ready\n> ATE0\n< OK\n! any-order\n{block}{extra}! in-order\n< +LATER\n> AT+END\n"
    playback = Playback(parse_transcript(HEAD + session))
    assert data(playback.first_steps()) == b"Ready\r\n"
    assert data(playback.sent(b"ATE0\r")) == b"OK\r\n"
    if not skipped:
        assert data(playback.sent(b"AT+EXTRA\r")) == b"extra\r\n"
    for turn, n in enumerate(order):
        later = b"+LATER\r\n" if turn == 4 else b""
        assert data(playback.sent(b"AT+X%d\r" % n)) == b"answer %d\r\nOK\r\n" % n + later
    playback.sent(b"AT+END\r")
    assert playback.remaining == []


@given(chosen=st.lists(st.booleans(), min_size=4, max_size=4))
def test_what_is_optional_may_be_left_out(chosen: list[bool]) -> None:
    lines = (f"?> AT+O{n}\n< {n}\n> AT+M{n}\n< OK\n" for n in range(4))
    playback = Playback(parse_transcript(HEAD + "".join(lines)))
    for n, is_sent in enumerate(chosen):
        if is_sent:
            assert data(playback.sent(b"AT+O%d\r" % n)) == b"%d\r\n" % n
        assert data(playback.sent(b"AT+M%d\r" % n)) == b"OK\r\n"
    assert playback.remaining == []


def test_a_payload_belongs_to_its_command_in_any_order() -> None:
    message = '> AT+CMGS="{any}"\n<| > \n>| hello\\x1a\n< +CMGS: 1\n< OK\n'
    session = f"! any-order\n{message}> AT+CGMR\n< OK\n! in-order\n"
    for first in (b"AT+CGMR\r", b""):
        playback = Playback(parse_transcript(HEAD + session))
        assert data(playback.sent(first)) == b"OK\r\n" * bool(first)
        assert data(playback.sent(b'AT+CMGS="1"\r')) == b"> "
        assert data(playback.sent(b"hello\x1a")) == b"+CMGS: 1\r\nOK\r\n"


def test_what_is_written_out_goes_before_a_rule_and_the_nearest_is_named() -> None:
    session = "! any-order\n> AT+X={int}\n< rule\n> AT+X=5\n< five\n! in-order\n"
    playback = Playback(parse_transcript(HEAD + session))
    assert data(playback.sent(b"AT+X=5\r")) == b"five\r\n"
    with pytest.raises(Divergence) as failure:
        playback.sent(b"AT+X=a\r")
    assert failure.value.line == 3
    assert "line 3 of the transcript has `AT+X={int}` CR" in str(failure.value)
    with pytest.raises(Divergence, match=r"line 5 of the transcript has `AT.X=5` CR, or 1 other"):
        Playback(parse_transcript(HEAD + session)).sent(b"AT+Y=5\r")


def test_what_comes_after_the_end_names_its_line() -> None:
    playback = Playback(parse_transcript("> AT\n< OK\n"))
    playback.sent(b"AT\r")
    with pytest.raises(Divergence, match="after the last step of the transcript, line 2"):
        playback.sent(b"AT\r")


def test_a_lenient_replay_takes_rules_too() -> None:
    session = (
        "> AT+X={int}\n< rule\n! any-order\n> AT+X=5\n< five\n! in-order\n> AT#I={imei}\n< I\n"
    )
    playback = Playback(parse_transcript(HEAD + session), strict=False)
    asked = {b"AT+X=5": b"five", b"AT+X=17": b"rule", b"AT+X=a": b"ERROR"}
    asked |= {b"AT#I=352656100367872": b"I", b"AT#I=352656100367873": b"ERROR"}
    for command, answer in asked.items():
        assert data(playback.sent(command + b"\r")) == answer + b"\r\n"


@pytest.mark.parametrize(
    ("dialect", "said"),
    [("", b"*** Booting nRF Connect SDK ***\r\n"), ("# dialect: serial-modem\n", b"Ready\r\n")],
)
def test_faults_are_steps(dialect: str, said: bytes) -> None:
    session = f"{HEAD}{dialect}> AT\n! silence 2.5\n! garbage 3\n< OK\n! reset\n"
    steps = Playback(parse_transcript(session)).sent(b"AT\r")
    assert [step.direction.value for step in steps] == ["silence", "garbage", "<", "reset"]
    assert (steps[0].seconds, len(steps[1].data), steps[3].data) == (2.5, 3, said)
    assert min(steps[1].data) >= 0x80, "neither text nor a line end"


def test_nothing_comes_while_the_modem_is_silent() -> None:
    async def session() -> None:
        text = f"{HEAD}> AT\n< A\n! silence 60\n< B\n> AT\n< C\n"
        transport, receiver = ReplayTransport(parse_transcript(text)), ByteReceiver()
        await transport.open(receiver)
        transport.write(b"AT\r")
        await asyncio.sleep(59)
        assert receiver.data == b"A\r\n"
        transport.write(b"AT\r")
        await asyncio.sleep(0.5)
        assert receiver.data == b"A\r\n"
        await asyncio.sleep(1)
        assert receiver.data == b"A\r\nB\r\nC\r\n"

    virtual_time.run(session())


MALFORMED = [
    ("> AT+{imsi}\n", "line 2: {imsi} is no rule", "{imei}?"),
    ("> AT+{int:x}\n", "line 2: 'x' is no {int}", "{int:0}"),
    ("> AT+{imei:352656100367873}\n", "is no {imei}", "{imei:"),
    (">| AT+X={int}\n", "line 2: nothing says where the last rule ends", "write what follows"),
    ("> AT+{redacted:key}{any}\n", "line 2: nothing says where the redacted secret", "write what"),
    ("! reboot\n", "line 2: after ! closed, silence SECONDS", "! silence 3"),
    ("! silence\n", "line 2: after !", "! silence 3"),
    ("! silence -1\n", "line 2: after !", "! silence 3"),
    ("! garbage 0\n", "line 2: after !", "! silence 3"),
    ("?! reset\n", "line 2: after !", "! silence 3"),
    ("! in-order\n", "line 2: ! in-order behind no ! any-order", "! any-order"),
    ("> AT\n! any-order\n> AT\n", "line 3: ! any-order has no end", "! in-order"),
    ("! any-order\n! any-order\n", "line 3: ! any-order behind that of line 2", "! in-order"),
    ("! any-order\n>| AT\n< OK\n", "line 3: only a whole command may stand behind", "> AT+CGMR"),
    ("?>| AT\n", "line 2: only a whole command may be optional", "> AT+CGMR"),
    ("> AT\\q\n", "line 2: no such escape", "\\xHH"),
]


@pytest.mark.parametrize(("text", "wrong", "way_out"), MALFORMED)
def test_what_is_malformed_names_line_and_way_out(text: str, wrong: str, way_out: str) -> None:
    with pytest.raises(TranscriptError) as failure:
        parse_transcript(HEAD + text)
    assert wrong in str(failure.value)
    assert way_out in failure.value.hint


def test_version_1_has_none_of_it_and_says_where_it_is() -> None:
    steps = parse_transcript("> AT+X={int}\n< {nothing}\n").steps
    assert [step.data for step in steps] == [b"AT+X={int}\r", b"{nothing}\r\n"]
    for text in ("! silence 3\n", "?> AT\n", "> \\{\n"):
        with pytest.raises(TranscriptError):
            parse_transcript(text)
    with pytest.raises(TranscriptError) as failure:
        parse_transcript("! silence 3\n")
    assert "`# transcript: 2`" in failure.value.hint


def test_every_cut_of_a_transcript_is_read_or_refused_in_plain_words() -> None:
    whole = (
        f'{HEAD}# device: é\n@0.5 < Ready\n! any-order\n?> AT+X={{int:5}},"{{any}}"\n< {{imei}}\n'
        "> AT+CMGS={hex}\n<| > \n>| \\x41\\{b}\\x1a\n! in-order\n"
        "! silence 2.5\n! garbage 4\n! closed\n"
    ).encode()
    texts = [whole[:end] for end in range(len(whole))]
    texts += [whole[:at] + whole[at + 1 :] for at in range(len(whole))]
    texts += [whole[:a] + whole[b:] for a, b in itertools.pairwise(range(0, len(whole), 7))]
    for text in texts:
        said = complaint(text.decode("utf-8", "surrogateescape"))
        assert said is None or ("line " in said[0] and said[1] and "".join(said).isprintable())


def complaint(text: str) -> tuple[str, str] | None:
    try:
        parse_transcript(text)
    except TranscriptError as error:
        return str(error), error.hint
    return None


def test_the_example_of_the_page_plays_as_the_page_says() -> None:
    (example,) = re.findall(r"(?m)^    # transcript: 2\n(?:    .*\n)+", PAGE.read_text("utf-8"))
    playback = Playback(parse_transcript(re.sub(r"(?m)^    ", "", example)))
    said = [
        (b"AT%XSYSTEMMODE=1,0,1,0", b"OK\r\n"),
        (b"AT+CESQ", b"+CESQ: 99,99,255,255,19,47\r\nOK\r\n"),
        (b"AT+CGSN=1", b'+CGSN: "001009990000002"\r\nOK\r\n+CEREG: 2\r\n'),
        (b'AT#XHTTPCREQ="{"n":-7}"', b"OK\r\n"),
        (b"AT+CFUN=1", b"*** Booting nRF Connect SDK ***\r\n"),
    ]
    for command, answer in said:
        assert data(playback.sent(command + b"\r")) == answer
    assert playback.remaining == []
