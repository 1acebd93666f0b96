"""Chunk export lines in whatever company they come."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.console.chunk_lines import ChunkLine, DamagedChunk, damaged_mark, extract_chunks
from agent.observability.ingest.chunk_codec import encode


def exported(chunk: bytes) -> bytes:
    return b"MC:" + base64.b64encode(chunk) + b":"


@pytest.mark.parametrize(
    "line",
    [
        b"MC:CAAA:",
        b"[00:00:10.123,456] <inf> mflt: MC:CAAA:",
        b"\x1b[0m[00:00:10.123,456] <inf> mflt: MC:CAAA:\x1b[0m",
        b"uart:~$ MC:CAAA: ",
        b"ML:AAAA:MC:CAAA:",
        b"MC:MC:CAAA:tail",
        b"MC:C$A:MC:CAAA:",
    ],
)
def test_a_chunk_is_found_wherever_it_stands(line):
    found, _ = extract_chunks(line)
    assert ChunkLine(b"\x08\0\0") in found


@pytest.mark.parametrize(
    "signs", [{"/": r"\/"}, {"+": r"\u002B", "/": r"\u002F", "=": r"\u003D"}, {"=": r"\u003d"}]
)
def test_a_chunk_is_found_in_json_that_escapes_signs_of_base64(signs):
    text = exported(b"\x08\xff\xbf\xfb\xef\0\0").decode()
    assert all(sign in text for sign in "+/=")
    line = f'{{"log": "{text}\\r\\n"}}'
    for sign, escaped in signs.items():
        line = line.replace(sign, escaped)
    found, _ = extract_chunks(line.encode())
    assert found == [ChunkLine(b"\x08\xff\xbf\xfb\xef\0\0")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"MC::", "an empty chunk"),
        (b"MC:CAA:", "3 characters are no whole base64"),
        (b"MC:CAAA", "the line ends inside the chunk"),
        (b"MC:CA_A:", "no base64 character: b'_'"),
        (b"MC:[\\]^:", "no base64 character: b'['"),
        (b"MC:CA==:", "no chunk: 1 byte"),
        (b"MC:CAA=:", "no chunk: 2 bytes"),
        (b"MC:CAA=A:", "no base64 character: b'A'"),
        (b"MC:C===:", "no base64 character: b'='"),
    ],
)
def test_a_damaged_export_is_reported_once_as_what_it_is(text, reason):
    found, around = extract_chunks(b"before " + text)
    assert found == [DamagedChunk(text, reason)]
    assert around == b"before "


def test_a_whole_message_without_its_mark_is_damage_and_a_word_is_none():
    (chunk,) = encode(b"\x02 a message", 100)
    text = base64.b64encode(chunk) + b":"
    assert damaged_mark(text) == DamagedChunk(text, "its mark is damaged")
    assert damaged_mark(b"CODE: 17") is None


def test_a_word_that_ends_like_the_mark_is_no_damaged_export():
    line = b"[00:00:01.000,000] <err> disk: EMMC: no card"
    assert extract_chunks(line) == ([], line)
    assert extract_chunks(b"EMMC: no card MC:CAAA:") == (
        [ChunkLine(b"\x08\0\0")],
        b"EMMC: no card ",
    )


def test_several_on_a_line_keep_their_order():
    chunks = [b"one", b"two!", b"three"]
    found, around = extract_chunks(b" and ".join(map(exported, chunks)))
    assert found == [ChunkLine(chunk) for chunk in chunks]
    assert around == b" and  and "


@given(st.lists(st.binary(min_size=3, max_size=90), max_size=5), st.data())
def test_every_chunk_comes_back_exactly(chunks, data):
    noise = st.binary(max_size=20).filter(lambda text: b"M" not in text)
    line = b"".join(data.draw(noise) + exported(chunk) for chunk in chunks) + data.draw(noise)
    found, _ = extract_chunks(line)
    assert [item.chunk for item in found if isinstance(item, ChunkLine)] == chunks


@given(st.binary(max_size=60) | st.text("MC:A=+ ", max_size=40).map(str.encode))
def test_no_line_stops_the_search_and_nothing_is_counted_twice(line):
    found, around = extract_chunks(line)
    assert len(found) <= line.count(b"MC:")
    assert len(around) <= len(line)
