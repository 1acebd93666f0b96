"""What the agent heard arrives at a window as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zephyr_dumps import arch, header, memory, printed

from agent.console.reader import ConsoleReader, decode, encode

DUMP = header() + arch() + memory(0x20000000, bytes(range(100)))
PIECES = [
    b"*** Booting nRF Connect SDK v3.1.0 ***\r\n",
    b"[00:00:10.123,456] <inf> app: started\r\n",
    b"[00:00:47.000,000] <err> os: >>> ZEPHYR FATAL ERROR 3: Kernel oops on CPU 0\r\n",
    b"MC:CAAA:\r\n",
    b"MC:x:\r\n",
    printed(DUMP),
    b"#CD:BEGIN#\r\n#CD:5\r\n",
    b"\xff\x00 " * 500 + b"\r\n",
]


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=200)))
def test_every_item_is_the_same_on_the_other_side(pieces):
    reader = ConsoleReader(max_line=1000)
    items = [item for piece in pieces for item in reader.receive(piece)] + reader.finish()
    lines = [encode(item) for item in items]
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert [decode(json.loads(line)) for line in lines] == items


@pytest.mark.parametrize("line", [{}, {"is": "Path", "item": "/"}, {"is": "ChunkLine"}])
def test_what_is_no_item_is_refused(line):
    with pytest.raises(ValueError, match=r"item|object"):
        decode(line)
