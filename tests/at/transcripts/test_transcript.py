"""The transcript's text: what is written is read back, by hand or by machine."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import TranscriptError
from at.transcripts import transcript
from at.transcripts.rules import escape, unescape
from at.transcripts.steps import Direction, TranscriptStep
from at.transcripts.transcript import (
    Transcript,
    format_transcript,
    load_transcript,
    parse_transcript,
    read_session,
)

TIMES = st.none() | st.floats(0, 1e6).map(lambda seconds: round(seconds, 6))
STEPS = st.one_of(
    st.builds(
        TranscriptStep,
        st.sampled_from([Direction.SENT, Direction.RECEIVED]),
        st.binary(min_size=1, max_size=40),
        TIMES,
    ),
    st.builds(TranscriptStep, st.just(Direction.CLOSED), st.just(b""), TIMES),
)
HEADERS = st.dictionaries(
    st.sampled_from(["device", "firmware", "origin", "note"]),
    st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=20),
)


@given(steps=st.lists(STEPS, max_size=12), header=HEADERS)
def test_what_is_written_is_read_back(steps: list[TranscriptStep], header: dict[str, str]) -> None:
    if any(not value.split() or value != " ".join(value.split()) for value in header.values()):
        header = {}
    transcript = Transcript(tuple(steps), header)
    again = parse_transcript(format_transcript(transcript))
    assert again.steps == transcript.steps
    assert {k: v for k, v in again.header.items() if k != "transcript"} == header


@given(data=st.binary(max_size=60))
def test_any_bytes_are_escaped_and_back(data: bytes) -> None:
    text = escape(data)
    assert unescape(text) == data
    assert text.isascii()
    assert text.isprintable()
    assert text == text.rstrip()


@given(text=st.text(max_size=200))
def test_no_text_upsets_the_reader(text: str) -> None:
    with contextlib.suppress(TranscriptError):
        assert isinstance(parse_transcript(text), Transcript)


def test_a_transcript_by_hand_reads_as_a_person_means_it() -> None:
    transcript = parse_transcript(
        "# device: any LTE modem\n# origin: by hand\n\n"
        "> AT+CESQ\n@0.012 < +CESQ: 99,99,255,255,19,47\n< OK\n"
        "# the prompt of a message\n>| AT+CM\n>| GS=4\\r\n<| > \n! closed\n"
    )
    assert transcript.header == {"device": "any LTE modem", "origin": "by hand"}
    assert [step.data for step in transcript.steps] == [
        b"AT+CESQ\r",
        b"+CESQ: 99,99,255,255,19,47\r\n",
        b"OK\r\n",
        b"AT+CM",
        b"GS=4\r",
        b"> ",
        b"",
    ]
    assert transcript.steps[1].at_s == 0.012
    assert transcript.steps[-1].direction is Direction.CLOSED


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("AT\n", "line 1 is no step"),
        ("> AT\n<| \n", "line 2: a piece without a byte"),
        ("> AT\\q\n", "no such escape"),
        ("! opened\n", "only `closed` is known"),
        ("# transcript: 3\n> AT\n", "line 1: a transcript of version '3'"),
        ("# terminator: \\z\n> AT\n", "no such escape"),
    ],
)
def test_what_is_malformed_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(TranscriptError) as failure:
        parse_transcript(text)
    assert complaint in str(failure.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_that_an_editor_of_windows_saved_is_read_as_any(
    tmp_path: Path, encoding: str, end: str
) -> None:
    file = tmp_path / "session.transcript"
    text = "# transcript: 1\n> AT+CGMR\n< mfw_nrf91x1_2.0.4\n< OK\n"
    file.write_bytes(text.replace("\n", end).encode(encoding))
    assert load_transcript(file) == parse_transcript(text)


@pytest.mark.parametrize(
    "made", [lambda text: text.encode("utf-16"), lambda text: b"\x1f\x8b\x08\0"]
)
def test_a_file_that_is_no_text_is_refused_with_the_way_out(
    tmp_path: Path, made: Callable[[str], bytes]
) -> None:
    file = tmp_path / "session.transcript"
    file.write_bytes(made("# transcript: 1\n> AT\n< OK\n"))
    with pytest.raises(TranscriptError, match=r"session\.transcript: this is no text") as failure:
        load_transcript(file)
    assert "iconv" in failure.value.hint
    assert failure.value.file == file


def test_a_file_without_end_is_refused_and_not_read_until_memory_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transcript, "LARGEST", 100)
    with pytest.raises(TranscriptError, match="/dev/zero: over 0 MiB, or without end"):
        load_transcript("/dev/zero")


class _Terminal(io.BytesIO):
    """What is typed; whoever reads beyond its end waits for more."""

    is_at_end = False

    def read(self, size: int | None = -1, /) -> bytes:
        assert not self.is_at_end
        data = super().read(size)
        self.is_at_end = len(data) < (size or 0)
        return data


@pytest.mark.parametrize("size", [0, 9, 65535, 65536, 70_000])
def test_the_end_of_what_is_typed_is_typed_once(size: int) -> None:
    assert read_session(_Terminal(b"x" * size)) == b"x" * size


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory has no such limit")
def test_a_small_file_is_read_where_there_is_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "session.transcript"
    file.write_text("> AT\n< OK\n")
    code = (
        "import resource, sys; from at.transcripts.transcript import load_transcript\n"
        "resource.setrlimit(resource.RLIMIT_AS, (200_000_000, 200_000_000))\n"
        "print(len(load_transcript(sys.argv[1]).steps))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, file], capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.stderr) == ("2\n", "")


@pytest.mark.parametrize(("first", "hint"), [("AT> AT+CGMR\n", "cellagent modem import"),
                                             ("> AT\n- OK\n", "a step begins with"),
                                             ("\ufeff> AT\n-", "a step begins with")])  # fmt: skip
def test_a_terminals_log_is_told_how_to_become_a_transcript(
    tmp_path: Path, first: str, hint: str
) -> None:
    file = tmp_path / "terminal log.txt"
    file.write_text(first, "utf-8")
    with pytest.raises(TranscriptError) as failure:
        load_transcript(file)
    assert failure.value.hint.removeprefix("if it is a terminal's log, `").startswith(hint)
    assert (f"'{file}'" in failure.value.hint) == hint.startswith("cellagent")
