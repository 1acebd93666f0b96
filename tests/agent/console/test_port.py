"""Which port of a kit is its console."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.profile import KitSettings
from agent.console import port
from agent.console.port import ByteQueue, find_console, own_port, prints_text
from agent.errors import UsageError


@pytest.mark.parametrize(
    ("console_port", "own"),
    [("same", ""), ("none", ""), ("auto", ""), ("/dev/ttyACM1", "/dev/ttyACM1")],
)
async def test_the_console_is_on_a_port_of_its_own_only_where_that_is_known(console_port, own):
    assert await own_port(KitSettings(port="tcp://127.0.0.1:1", console_port=console_port)) == own


async def test_the_at_port_of_a_kit_that_is_named_by_its_serial_number_is_not_its_console(
    monkeypatch: pytest.MonkeyPatch,
):
    async def prints(*_: object) -> bool:
        return True

    monkeypatch.setattr(port, "ports_of", lambda _kit: ["/dev/ttyACM0", "/dev/ttyACM1"])
    monkeypatch.setattr(port, "resolve", lambda _port: ("/dev/ttyACM0", None))
    monkeypatch.setattr(port, "prints_text", prints)
    assert await own_port(KitSettings(port="serial:960012345")) == "/dev/ttyACM1"


@pytest.mark.parametrize("console_port", ["/dev/ttyACM1", "same"])
async def test_a_named_console_is_taken_without_listening(console_port):
    kit = KitSettings(port="tcp://127.0.0.1:1", console_port=console_port)
    notes: list[str] = []
    found = await find_console(kit, notes.append)
    assert found == ("/dev/ttyACM1" if console_port != "same" else kit.port)
    assert notes == []


async def test_a_kit_without_a_console_is_a_usage_error():
    kit = KitSettings(port="tcp://127.0.0.1:1", console_port="none")
    with pytest.raises(UsageError, match="no console"):
        await find_console(kit, pytest.fail)


async def test_a_port_that_cannot_be_opened_prints_nothing_and_says_why():
    notes: list[str] = []
    assert not await prints_text("tcp://127.0.0.1:1", 115200, notes.append)
    (note,) = notes
    assert note.startswith("tcp://127.0.0.1:1: ")


@given(st.lists(st.binary(min_size=1)), st.lists(st.binary(min_size=1)))
def test_a_byte_queue_joins_what_is_at_hand_and_ends_once_all_is_read(first, second):
    async def read() -> list[bytes | None]:
        queue = ByteQueue()
        for piece in first:
            queue.data_received(piece)
        found = [await queue.next()] if first else []
        for piece in second:
            queue.data_received(piece)
        queue.connection_lost(OSError("unplugged"))
        found += [await queue.next()] if second else []
        assert isinstance(queue.reason, OSError)
        return [*found, await queue.next()]

    joined = [b"".join(pieces) for pieces in (first, second) if pieces]
    assert asyncio.run(read()) == [*joined, None]
