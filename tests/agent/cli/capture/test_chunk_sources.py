"""The chunks of console text, of lines of JSON and of stored chunks."""

from __future__ import annotations

import base64
import json

import pytest

from agent.observability.ingest.chunk_codec import encode
from tests.support.commands.command_line import with_bytes

# The service's published test event.
EVENT = bytes.fromhex(
    "02a702010301076a5445535453455249414c0a6d746573742d736f667477617265096a312e302e302d74657374"
    "066d746573742d686172647761726504a101a1726368756e6b5f746573745f7375636365737301"
)


def capture(*arguments: str, stdin: bytes = b"") -> tuple[int, list[dict[str, object]], str]:
    return with_bytes("capture", *arguments, stdin=stdin)


def exported(message: bytes, mtu: int = 46) -> bytes:
    return b"".join(
        b"[00:00:01.000,000] <inf> mflt: MC:" + base64.b64encode(chunk) + b":\r\n"
        for chunk in encode(message, mtu)
    )


@pytest.mark.parametrize("form", ["console", "json"])
def test_messages_are_read_from_console_text_and_from_chunk_lines(form):
    text = exported(EVENT)
    if form == "json":
        _, lines, _ = capture("chunks", "-", stdin=text)
        text = "\n".join(map(json.dumps, lines)).encode()
    code, (message, summary), _ = capture("messages", "-", stdin=text)
    assert code == 0
    assert message["message"] == EVENT.hex()
    assert message["kind"] == "event"
    assert message["decoded"]["event_info"] == {"metrics": {"chunk_test_success": 1}}
    assert summary == {"summary": {"messages": 1, "damaged": 0, "damaged_lines": 0}}


def test_chunks_that_do_not_add_up_are_reported():
    code, (damaged, summary), _ = capture("messages", "-", stdin=exported(EVENT, 30)[:100])
    assert code == 0
    assert "received" in damaged["damaged"]
    assert summary["summary"]["damaged"] == 1
