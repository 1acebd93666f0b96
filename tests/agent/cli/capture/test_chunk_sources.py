"""The chunks of console text, of lines of JSON and of stored chunks."""

from __future__ import annotations

import json

import pytest

from agent.cli.capture.chunk_sources import STORED
from agent.observability.ingest.chunk_codec import encode
from tests.support.commands.command_line import with_bytes
from tests.support.dumps.sdk_bytes import EXAMPLE_MESSAGE, exported


def capture(*arguments: str, stdin: bytes = b"") -> tuple[int, list[dict[str, object]], str]:
    return with_bytes("capture", *arguments, stdin=stdin)


@pytest.mark.parametrize("form", ["console", "json"])
def test_messages_are_read_from_console_text_and_from_chunk_lines(form):
    text = exported(EXAMPLE_MESSAGE)
    if form == "json":
        _, lines, _ = capture("chunks", "-", stdin=text)
        text = "\n".join(map(json.dumps, lines)).encode()
    code, (message, summary), _ = capture("messages", "-", stdin=text)
    assert code == 0
    assert message["message"] == EXAMPLE_MESSAGE.hex()
    assert message["kind"] == "event"
    assert message["decoded"]["event_info"] == {"metrics": {"chunk_test_success": 1}}
    assert summary == {"summary": {"messages": 1, "damaged": 0, "damaged_lines": 0}}


def test_chunks_that_do_not_add_up_are_reported():
    code, (damaged, summary), _ = capture(
        "messages", "-", stdin=exported(EXAMPLE_MESSAGE, 30)[:100]
    )
    assert code == 0
    assert "received" in damaged["damaged"]
    assert summary["summary"]["damaged"] == 1


def test_a_stored_chunk_that_is_cut_off_is_told_by_its_place():
    (chunk,) = encode(EXAMPLE_MESSAGE, 100)
    stored = STORED + len(chunk).to_bytes(4, "big") + chunk
    _, (message, summary), said = capture("messages", "-", stdin=stored + stored[:-1])
    assert message["message"] == EXAMPLE_MESSAGE.hex()
    assert summary["summary"] == {"messages": 1, "damaged": 0, "damaged_lines": 1}
    assert f"the stored chunk at byte {len(stored)} does not add up" in said
