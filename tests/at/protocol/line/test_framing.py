"""Bytes to events: every line discipline of a firmware, cut anywhere."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.line.framing import DroppedLine, Event, Framer, Line, Log, Prompt

LOG = "[00:00:12.345,678] <inf> app: hello, world"


def events(pieces: list[bytes], *, prompt: bool = False) -> list[Event]:
    framer = Framer(limit=200)
    framer.expects_prompt = prompt
    found = [event for piece in pieces for event in framer.feed(piece)]
    return found + list(framer.finish())


def split(stream: bytes, cuts: set[int]) -> list[bytes]:
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(stream)), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def lines(stream: bytes) -> list[str]:
    return [event.text for event in events([stream]) if isinstance(event, Line)]


PIECES = st.sampled_from(
    [
        b"\r\n",
        b"\r",
        b"\n",
        b"OK\r\n",
        b"\r\nOK\r\n",
        b"+CEREG: 1,5",
        b'+X: "a',
        b'b",2\r\n',
        b"OK",
        b"> ",
        b">",
        LOG.encode(),
        LOG.encode() + b"\r\n",
        b"\x1b[1;32muart:~$ \x1b[m",
        b"\x00\xff\xfe",
        b"AT+CGMR\r\r\n",
        b"*** Booting nRF Connect SDK ***\r\n",
        b"*** Booting nRF Connect SDK ***",
        b"Ready\r\n",
        b"x" * 150,
        b'"',
    ]
)


@given(
    stream=st.lists(PIECES | st.binary(max_size=4), max_size=12).map(b"".join),
    cuts=st.sets(st.integers(0, 400)),
    prompt=st.booleans(),
)
def test_events_do_not_depend_on_where_the_bytes_were_cut(
    stream: bytes, cuts: set[int], prompt: bool
) -> None:
    whole = events([stream], prompt=prompt)
    assert events(split(stream, cuts), prompt=prompt) == whole
    bytewise = [stream[at : at + 1] for at in range(len(stream))]
    assert events(bytewise, prompt=prompt) == whole


@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r", b"\r\r\n"])
def test_every_line_end_ends_a_line_and_empty_lines_carry_nothing(end: bytes) -> None:
    assert lines(end + b"+CSQ: 1,2" + end + end + b"OK" + end) == ["+CSQ: 1,2", "OK"]


def test_a_quoted_text_keeps_its_line_breaks_and_a_line_that_reads_ok() -> None:
    text = '+UHTTP: 0,"HTTP/1.1 200\r\nOK\r\n\r\nbody, with commas"'
    assert lines(text.encode() + b"\r\nOK\r\n") == [text, "OK"]


def test_a_quote_that_never_closes_costs_nothing_but_its_own_line() -> None:
    stream = b'+CEREG: 2,"00B7,7\r\nOK\r\n+CSCON: 1\r\n'
    assert lines(stream) == ['+CEREG: 2,"00B7,7', "OK", "+CSCON: 1"]


@pytest.mark.parametrize(
    "row",
    [
        '+CWLAP:(3,"5" screen",-60,"40:01:7a:00:00:01",1)',
        '%WIFISCAN: (-,"5\\" screen",-60,"40:01:7A:00:00:01",1)',
    ],
)
def test_a_row_in_parentheses_is_whole_with_a_quote_in_its_name(row: str) -> None:
    assert list(Framer().feed(f"{row}\r\nOK\r\n".encode())) == [Line(row), Line("OK")]


@pytest.mark.parametrize("lines", [b"a\r\n", b"a\n\r", b'""\r', b"\n"])
@pytest.mark.parametrize("cut", [1, 1000, 10**6])
def test_lines_in_an_open_quote_are_each_looked_at_once(lines: bytes, cut: int) -> None:
    framer, looked_at, data = Framer(), 0, b'%X: "' + lines * 5000

    def count(_frame: object, event: str, called: object) -> None:
        nonlocal looked_at
        if event == "c_call" and isinstance(
            own := getattr(called, "__self__", None), bytes | bytearray
        ):
            looked_at += len(own)

    sys.setprofile(count)
    try:
        for start in range(0, len(data), cut):
            list(framer.feed(data[start : start + cut]))
    finally:
        sys.setprofile(None)
    assert looked_at < 20 * len(data)


def test_a_head_that_log_lines_cut_again_and_again_is_bounded() -> None:
    framer = Framer(limit=1000)
    found = list(framer.feed(b"abcd[00:00:01.000,000] <inf> x\r\n" * 1000 + b"end\r\nOK\r\n"))
    assert len([event for event in found if isinstance(event, Log)]) == 1000
    assert DroppedLine("abcd" * 20) in found
    assert found[-1] == Line("OK")


def test_a_stray_quote_at_the_end_of_the_input_releases_what_it_held() -> None:
    assert lines(b'%XMONITOR: 1,"EDAV\r\nOK\r\n') == ['%XMONITOR: 1,"EDAV', "OK"]


@pytest.mark.parametrize(
    "text",
    [
        LOG,
        "[00:00:00.250,000] <err> lte: +CEREG: 1",
        "[2024-01-31 10:00:00.123,456] <wrn> x: y",
        "<dbg> x: y",
        "*** Booting nRF Connect SDK v2.7.0-5cb85570ca43 ***",
        "*** Using Zephyr OS v3.6.99-100befc70c74 ***",
        "I: Starting bootloader",
        "[INF] Booting TF-M v2.1.0",
        "--- 12 messages dropped ---",
        "MC:SFQCpwIBAwEHalRFU1RTRVJJQUwK:",
        "#CD:5a4501000100050000000000",
    ],
)
def test_console_lines_are_told_from_at_lines(text: str) -> None:
    assert events([f"\x1b[0m{text}\x1b[0m\r\n".encode()]) == [Log(text)]


@pytest.mark.parametrize("at", range(1, len("+CEREG: 5,1")))
def test_a_log_line_inside_an_at_line_is_lifted_out_and_the_line_mended(at: int) -> None:
    line = "+CEREG: 5,1"
    stream = f"{line[:at]}{LOG}\r\n{line[at:]}\r\nOK\r\n".encode()
    assert events([stream]) == [Log(LOG), Line(line), Line("OK")]


def test_a_log_line_right_before_the_line_end_does_not_swallow_the_next_line() -> None:
    stream = f"+CEREG: 1{LOG}\r\n\r\nOK\r\n".encode()
    assert events([stream]) == [Log(LOG), Line("+CEREG: 1"), Line("OK")]


def test_a_log_line_within_a_quoted_text_is_no_part_of_it() -> None:
    stream = f'%CMNG: 1,0,"AB","-----BEGIN\n{LOG}\r\nMII\n-----END\n"\r\n'.encode()
    assert events([stream]) == [Log(LOG), Line('%CMNG: 1,0,"AB","-----BEGIN\nMII\n-----END\n"')]


def test_the_line_end_of_a_log_line_within_a_quoted_text_is_no_part_of_it_however_it_is_cut() -> (
    None
):
    stream = b'%CMNG: 1,0,"ab\r\n[00:00:01.000,000] <inf> a: b\r\ncd"\r\n'
    framer = Framer()
    framer.multiline = "%CMNG"
    found = [event for at in range(len(stream)) for event in framer.feed(stream[at : at + 1])]
    assert found == [Log("[00:00:01.000,000] <inf> a: b"), Line('%CMNG: 1,0,"ab\r\ncd"')]


def test_an_endless_line_is_one_event_and_the_next_line_is_whole() -> None:
    framer = Framer()
    found = [event for _ in range(1000) for event in framer.feed(b"x" * 1024)]
    found += framer.feed(b"\r\nOK\r\n")
    assert found == [DroppedLine("x" * 80), Line("OK")]
    assert len(framer._pending) == 0


def test_a_prompt_needs_no_line_end_when_one_is_expected() -> None:
    framer = Framer()
    framer.expects_prompt = True
    assert list(framer.feed(b"\r\n>")) == [Prompt()]
    assert list(framer.feed(b" \r\n+CMGS: 1\r\n")) == [Line("+CMGS: 1")]


def test_a_line_may_begin_like_a_prompt() -> None:
    assert events([b"> not a prompt\r\n"]) == [Line("> not a prompt")]


def test_the_shell_prompt_and_its_colours_are_no_part_of_a_line() -> None:
    stream = b"\x1b[8D\x1b[J\x1b[1;32muart:~$ \x1b[m352656100367872\r\nOK\r\n"
    assert lines(stream) == ["352656100367872", "OK"]


def test_invalid_utf8_and_nul_are_shown_and_harm_nothing() -> None:
    assert lines(b"\x00\x00+X: \xff\r\nOK\r\n") == ["+X: \\xff", "OK"]


def test_a_line_that_two_log_lines_cut_is_mended_and_the_next_ones_are_ordinary() -> None:
    stream = f"+CER{LOG}\r\nEG: 5{LOG}\r\n,1\r\n\r\n\x1b[0mOK\r\n".encode()
    assert events([stream]) == [Log(LOG), Log(LOG), Line("+CEREG: 5,1"), Line("OK")]


def test_an_overlong_line_changes_nothing_of_the_lines_after_it() -> None:
    assert events([b"x" * 201, b"x\r\n\r\n\x1b[0mOK\r\n"]) == [DroppedLine("x" * 80), Line("OK")]


def test_the_line_feed_of_a_text_that_was_given_up_belongs_to_no_other_line() -> None:
    framer = Framer()
    assert list(framer.feed(b'%CMNG: 1,0,"ab\r')) == []
    assert list(framer.drop_partial()) == [Line('%CMNG: 1,0,"ab')]
    assert list(framer.feed(b"\nOK\r\n")) == [Line("OK")]


@given(
    steps=st.lists(PIECES | st.sampled_from(["prompt", "drop"]), max_size=12),
    end=st.sampled_from([b"\r\n", b"\n", b"\r"]),
)
def test_whatever_came_before_the_next_line_is_whole_once_the_rest_is_dropped(
    steps: list[bytes | str], end: bytes
) -> None:
    framer = Framer(limit=200)
    for step in steps:
        if isinstance(step, bytes):
            list(framer.feed(step))
        elif step == "prompt":
            framer.expects_prompt = True
        else:
            list(framer.drop_partial())
    list(framer.drop_partial())
    assert list(framer.feed(end + b"OK\r\n")) == [Line("OK")]
