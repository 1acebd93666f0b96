"""Output that waits for no reader: in order, bounded, and honest about what it left out."""

from __future__ import annotations

import json
import threading

import pytest

from agent.cli.console import paced_output
from agent.cli.console.paced_output import OUTPUT_LIMIT, PacedOutput
from agent.cli.console.window import ConsoleWindow


class Reader:
    """Takes what is written once it is let; then it may be gone."""

    def __init__(self) -> None:
        self.goes = threading.Event()
        self.waits = threading.Event()
        self.taken: list[tuple[int, bytes]] = []
        self.gone = False

    def write(self, descriptor: int, data: bytes) -> None:
        self.waits.set()
        assert self.goes.wait(30)
        if self.gone:
            raise BrokenPipeError
        self.taken.append((descriptor, data))

    def text(self) -> bytes:
        return b"".join(data for _, data in self.taken)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader()
    monkeypatch.setattr(paced_output, "_write", made.write)
    return made


def left_out(lines: int) -> str:
    return f"{lines} left out"


def test_texts_come_in_order_on_the_stream_that_each_is_for(reader):
    reader.goes.set()
    output = PacedOutput(left_out)
    output.put("a\n")
    output.put("b\n", error=True)
    output.put("c\n")
    output.close()
    assert reader.text() == b"a\nb\nc\n"
    assert [where for where, data in reader.taken if b"b" in data] == [2]


def test_what_waits_is_written_together_and_in_order(reader):
    output = PacedOutput(left_out)
    output.put("first\n")
    assert reader.waits.wait(30)
    for text in ("second\n", "third\n", "fourth\n"):
        output.put(text)
    reader.goes.set()
    output.close()
    assert reader.text() == b"first\nsecond\nthird\nfourth\n"


def test_what_is_beyond_the_bound_is_counted_and_said(reader):
    output = PacedOutput(left_out, limit=10)
    output.put("first\n")
    assert reader.waits.wait(30)
    for text in ("second\n", "third\n", "two\nlines\n"):
        output.put(text)
    reader.goes.set()
    output.close()
    assert reader.text() == b"first\nsecond\n3 left out\n"


def test_a_reader_that_is_gone_ends_the_writer(reader):
    reader.gone = True
    reader.goes.set()
    output = PacedOutput(left_out)
    output.put("x\n")
    with pytest.raises(BrokenPipeError):
        output.close()
    with pytest.raises(BrokenPipeError):
        output.put("y\n")


def test_a_program_is_told_how_much_it_did_not_take(reader):
    shown = ConsoleWindow(True, None, "")
    shown.show_lost(3)
    assert reader.waits.wait(30)
    for _ in range(2):
        shown.show_answer(["x" * (OUTPUT_LIMIT // 2)])
    reader.goes.set()
    shown.close()
    first, _, last = map(json.loads, reader.text().splitlines())
    assert (first, last) == ({"type": "lost", "count": 3}, {"type": "lost", "count": 1})


def test_a_dump_is_announced_once_and_the_next_one_too(reader):
    reader.goes.set()
    shown = ConsoleWindow(False, None, "")
    for dump_bytes in (0, 1, 70, 0, 1):
        shown.announce_dump(dump_bytes)
    shown.close()
    assert reader.text() == b"** a core dump is coming\n" * 2
