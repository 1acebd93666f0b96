"""What a kit printed, as other programs save it."""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.framework.saved_text import saved_text, whole_text
from agent.errors import AgentError, UsageError

SPELLINGS = {
    "utf-8": (b"", "utf-8"),
    "utf-8 with its mark": (codecs.BOM_UTF8, "utf-8"),
    "utf-16 of PowerShell": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16 saved again": (2 * codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16, the other way round": (codecs.BOM_UTF16_BE, "utf-16-be"),
}


@pytest.mark.parametrize(("mark", "encoding"), SPELLINGS.values(), ids=SPELLINGS)
@given(text=st.text(st.characters(codec="utf-8")), size=st.integers(1, 9))
def test_text_is_the_same_however_it_was_saved_and_cut(
    mark: bytes, encoding: str, text: str, size: int
) -> None:
    text = f"AT{text}"
    data = mark + text.encode(encoding)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert b"".join(saved_text(pieces)) == text.encode()


@pytest.mark.parametrize(
    "noise",
    [
        b"",
        b"\xff",
        b"\xff\xfe",
        b"\xff\xfeOK\r\n",
        b"\xff\xfe\xff\xfeOK\r\n",
        b"\xfe\xffAT",
        b"\xef\xbb",
    ],
)
def test_noise_that_begins_like_a_mark_is_left_as_it_is(noise: bytes) -> None:
    assert b"".join(saved_text([noise] if noise else [])) == noise
    assert b"".join(saved_text([bytes([one]) for one in noise])) == noise


def test_what_comes_is_not_held_back() -> None:
    def live():
        yield b"A"
        pytest.fail("the first piece should have been given on before the second is asked for")

    assert next(saved_text(live())) == b"A"


def test_what_goes_on_without_lines_is_refused_and_what_has_some_is_not() -> None:
    piece = bytes(1 << 20)
    with pytest.raises(AgentError, match="64 MiB without the end of a line"):
        for _ in saved_text(itertools.repeat(piece)):
            pass
    assert sum(map(len, saved_text([piece + b"\r", piece] * 64))) == 128 * len(piece) + 64


def test_a_text_that_is_needed_whole_has_an_end() -> None:
    assert whole_text(io.BytesIO('\ufeff{"a": 1}'.encode("utf-16-le")), "it") == b'{"a": 1}'
    with (
        Path("/dev/zero").open("rb") as endless,
        pytest.raises(UsageError, match="it: over 64 MiB, or without end"),
    ):
        whole_text(endless, "it")


def test_a_compressed_text_is_told_by_what_opens_it() -> None:
    with pytest.raises(UsageError, match="it is compressed") as refused:
        whole_text(io.BytesIO(gzip.compress(b"{}")), "events.json.gz")
    assert "`gunzip events.json.gz`" in refused.value.hint
