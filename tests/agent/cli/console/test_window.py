"""Output that waits for no reader: in order, bounded, and honest about what it left out."""

from __future__ import annotations

import threading

import pytest

from agent.cli.console import window
from agent.cli.console.window import PacedOutput


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
    monkeypatch.setattr(window, "_write", made.write)
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
