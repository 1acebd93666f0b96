"""A transcript that plays: what fits is answered, what does not is explained."""

from __future__ import annotations

import itertools
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import TranscriptError
from at.protocol.redaction.command_redaction import without_secrets
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.rules import unescape
from at.transcripts.step_matching import Divergence, Playback, spans
from at.transcripts.steps import Direction, TranscriptStep
from at.transcripts.transcript import Transcript, parse_transcript
from tests.support.modem.secret_spellings import CANARY, spelled

SESSION = parse_transcript(
    "# origin: by hand\n"
    "< Ready\n"
    "> AT+CGMR\n"
    "< mfw_nrf9160_1.3.7\n"
    "< OK\n"
    '> AT%CMNG=0,7,3,"{redacted:key}"\n'
    "< OK\n"
    "> AT+CGMR\n"
    "< ERROR\n"
)


def data(steps: list[TranscriptStep]) -> bytes:
    return b"".join(step.data for step in steps)


@given(cuts=st.sets(st.integers(1, 60)))
def test_a_strict_session_is_answered_however_it_is_cut(cuts: set[int]) -> None:
    playback = Playback(SESSION)
    assert data(playback.first_steps()) == b"Ready\r\n"
    stream = b'AT+CGMR\rAT%CMNG=0,7,3,"0123"\rAT+CGMR\r'
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    got = b"".join(data(playback.sent(stream[a:b])) for a, b in itertools.pairwise(edges))
    assert got == b"mfw_nrf9160_1.3.7\r\nOK\r\nOK\r\nERROR\r\n"
    assert playback.remaining == []


def test_the_first_byte_that_does_not_fit_is_explained() -> None:
    playback = Playback(SESSION)
    playback.first_steps()
    with pytest.raises(TranscriptError) as failure:
        playback.sent(b'AT%CMNG=0,7,3,"0123"\r')
    assert "AT%CMNG" in str(failure.value)
    assert "line 3 of the transcript has `AT+CGMR` CR" in str(failure.value)
    assert "nearest step is line 6" in failure.value.hint


@pytest.mark.parametrize(
    "command", ['AT+CSCA="+447700900123",145', "ATD+447700900123;", "ATD4770090;"]
)
def test_a_host_that_has_the_telephone_number_itself_is_answered(command: str) -> None:
    redacted = Redactor(identity=True).clean(f"{command}\r".encode())
    assert b"77009" not in redacted
    playback = Playback(parse_transcript(f"> {redacted.decode().strip()}\n< OK\n"))
    assert data(playback.sent(f"{command}\r".encode())) == b"OK\r\n"


def test_what_comes_after_the_last_step_is_refused() -> None:
    playback = Playback(parse_transcript("> AT\n< OK\n<\n"))
    playback.sent(b"AT\r")
    with pytest.raises(Divergence, match="after the last step") as refused:
        playback.sent(b"AT\r")
    assert refused.value.heard == "`OK` CR LF"  # and not the empty line behind it


def test_the_questions_of_a_drivers_setup_are_answered_beside_the_session() -> None:
    playback = Playback(SESSION, answers_setup=True)
    playback.first_steps()
    assert data(playback.sent(b"AT+CMEE?\r")) == b"+CMEE: 1\r\nOK\r\n"
    assert data(playback.sent(b"AT+CGMR\r")) == b"mfw_nrf9160_1.3.7\r\nOK\r\n"
    with pytest.raises(TranscriptError):
        playback.sent(b"AT+CMEE=2\r")


def test_a_lenient_session_answers_by_command() -> None:
    playback = Playback(SESSION, strict=False)
    assert data(playback.sent(b'AT%CMNG=0,7,3,"anything"\r')) == b"OK\r\n"
    assert data(playback.sent(b"AT+CGMR\r")) == b"mfw_nrf9160_1.3.7\r\nOK\r\n"
    assert data(playback.sent(b"AT+CGMR\r")) == b"ERROR\r\n"
    assert data(playback.sent(b"AT+CGMR\r")) == b"ERROR\r\n"
    assert data(playback.sent(b"AT+UNKNOWN\r")) == b"ERROR\r\n"
    assert data(playback.sent(b'AT+UNKNOWN="a\rb"\r')) == b"ERROR\r\n"
    assert data(playback.sent(b"AT\r")) == b"OK\r\n"


def test_a_lenient_session_makes_nothing_up_behind_what_a_driver_does_in_doubt() -> None:
    playback = Playback(SESSION, strict=False, answers_setup=True)
    for doubt in (b"~~~~\r", b"AT+CFUN?\r", b"AT%XSYSTEMMODE?\r"):
        assert data(playback.sent(doubt)) == b"ERROR\r\n"
    assert data(playback.sent(b"AT+CMEE?\r")) == b"+CMEE: 1\r\nOK\r\n"


TYPED = [
    line
    for _name, _spelling, line, sent in spelled()
    if sent and line.count('"') % 2 == 0 and not set("\x08\x7f\x1b") & set(line)
]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_a_redacted_command_is_matched_by_itself_in_every_spelling(
    strict: bool, whole: bool
) -> None:
    for line in TYPED:
        sent = line.encode() + b"\r"
        steps = (
            TranscriptStep(Direction.SENT, Redactor().clean(sent)),
            TranscriptStep(Direction.RECEIVED, b"+CFUN: 7\r\n"),
            TranscriptStep(Direction.SENT, b"AT+CGMR\r"),
            TranscriptStep(Direction.RECEIVED, b"OK\r\n"),
        )
        playback = Playback(Transcript(steps), strict=strict)
        playback.first_steps()
        pieces = [sent] if whole else [bytes([byte]) for byte in sent]
        assert b"".join(data(playback.sent(piece)) for piece in pieces) == b"+CFUN: 7\r\n", line
        assert data(playback.sent(b"AT+CGMR\r")) == b"OK\r\n", line


def test_a_secret_of_known_length_is_that_many_bytes() -> None:
    session = ">| {redacted:payload:12}+++\\r\n< #XDATAMODE: 0\n"
    playback = Playback(parse_transcript(session))
    assert data(playback.sent(b'AT+CPIN="\r\n+')) == b""
    assert data(playback.sent(b"+++\r")) == b"#XDATAMODE: 0\r\n"


@pytest.mark.contract("C9")
def test_a_secret_in_quotes_ends_with_them_and_another_anywhere() -> None:
    quoted, bare = parse_transcript(
        '> AT+CPIN="{redacted:pin}","0"\n> AT+CPIN={redacted:pin},0\n'
    ).steps
    assert spans(quoted, b'AT+CPIN="1234","0"\r') == []
    assert spans(quoted, b'AT+CPIN="1234","9","0"\r') is None
    assert spans(bare, b'AT+CPIN="1234","9",0\r') == []


@pytest.mark.parametrize("cut", [None, 40, 12])
def test_no_mismatch_shows_a_secret(cut: int | None) -> None:
    transcript = parse_transcript(
        f'> AT+CGMR\n> AT%CMNG=0,7,3,"{CANARY}"\n> AT+CPIN={CANARY}\n> AT+CPIN="{{redacted:pin}}"\n'
    )
    for sent in (f'AT%CMNG=0,7,2,"{CANARY}"\r', f"AT+CPIN={CANARY * 9}\r", f'AT+CPIN="{CANARY}\r'):
        playback = Playback(transcript)
        with pytest.raises(TranscriptError) as failure:
            playback.sent(sent.encode()[:cut])
        assert CANARY not in str(failure.value) + failure.value.hint
        assert "line 1 of the transcript has `AT+CGMR` CR" in str(failure.value)


@pytest.mark.parametrize("command", ["AT%CMNG=1", "AT+CPIN?", 'AT+CLCK="SC",2', "AT+CGMR"])
def test_a_mismatch_is_whole_though_messages_are_redacted_again(command: str) -> None:
    playback = Playback(parse_transcript(f"> {command}\n> AT+CFUN=1\n> {command}\n"))
    playback.sent(f"{command}\r".encode())
    with pytest.raises(TranscriptError) as failure:
        playback.sent(f"{command}\r".encode())
    text = f"{failure.value}; {failure.value.hint}"
    assert without_secrets(text) == text
    assert f"sent `{command}` CR, yet line 2 of the transcript has `AT+CFUN=1` CR" in text


@pytest.mark.parametrize("strict", [True, False])
def test_the_digest_of_what_is_sent_in_a_placeholder_is_listed(strict: bool) -> None:
    """The recording has the digest of the placeholder, as if the modem had stored that."""
    of_placeholder, of_another = digest("{redacted:certificate}"), "AB" * 32
    session = parse_transcript(
        '> AT%CMNG=0,7,1,"{redacted:certificate}"\n'
        "< OK\n"
        "> AT%CMNG=1\n"
        f'< %CMNG: 7,0,"{of_another}"\n'
        f'< %CMNG: 7,1,"{of_placeholder}"\n'
        f'< %CMNG: 8,1,"{of_placeholder}"\n'
        "< OK\n"
    )
    playback = Playback(session, strict=strict)
    playback.sent(b'AT%CMNG=0,7,1,"-----BEGIN\nmine"\r')
    listed = data(playback.sent(b"AT%CMNG=1\r")).decode().split("\r\n")
    assert listed[0] == f'%CMNG: 7,0,"{of_another}"'
    assert listed[1] == f'%CMNG: 7,1,"{digest("-----BEGIN" + chr(10) + "mine")}"'
    assert listed[2] == f'%CMNG: 8,1,"{of_placeholder}"', "of another tag"


@pytest.mark.parametrize("strict", [True, False])
def test_a_host_sets_the_clock_to_its_own_time(strict: bool) -> None:
    session = parse_transcript('> AT+CCLK="26/03/14,12:00:00+00"\n< OK\n')
    playback = Playback(session, strict=strict)
    assert data(playback.sent(b'AT+CCLK="27/01/01,00:00:01+00"\r')) == b"OK\r\n"
    assert strict is not True or playback.remaining == []


def digest(content: str) -> str:
    return sha256(content.encode()).hexdigest().upper()


@pytest.mark.contract("C9")
@pytest.mark.parametrize("terminator", ["\\r", "\\n", "\\r\\n"])
def test_a_secret_at_the_end_of_what_is_sent_ends_with_the_line(terminator: str) -> None:
    session = f"# terminator: {terminator}\n>| AT+CPIN={{redacted:pin}}\n< OK\n"
    playback = Playback(parse_transcript(session))
    assert data(playback.sent(b"AT+CPIN=1234")) == b""
    assert data(playback.sent(unescape(terminator))) == b"OK\r\n"


@pytest.mark.parametrize("abort", [b"~~~~\r", b'"~~~~\r', b'+++\x1b"~~~~\r'])
@pytest.mark.parametrize("cut", [1, 3, 100])
def test_a_way_back_that_the_session_does_not_have_is_answered_until_the_session_goes_on(
    abort: bytes, cut: int
) -> None:
    session = "> AT+COPS=?\n< OK\n> AT+CESQ\n< OK\n> AT+CIMI\n< OK\n"
    playback = Playback(parse_transcript(session), answers_setup=True)

    def sent(data: bytes) -> bytes:
        pieces = [data[at : at + cut] for at in range(0, len(data), cut)]
        return b"".join(step.data for piece in pieces for step in playback.sent(piece))

    assert sent(b"AT+COPS=?\r") == b"OK\r\n"
    assert sent(abort) == b"ERROR\r\n"
    assert sent(b"AT+CFUN?\r") == b"+CFUN: 0\r\nOK\r\n"
    assert sent(b"AT+CESQ\r") == b"OK\r\n"
    with pytest.raises(TranscriptError):
        sent(b"AT+CFUN?\r")
