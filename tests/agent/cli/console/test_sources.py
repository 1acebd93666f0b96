"""Where the console is read from: a port, and the lines that are sent to the kit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from agent.cli.console import sources
from agent.cli.console.sources import PortSource, TypedLines
from agent.cli.console.window import ConsoleWindow
from agent.config.profile import KitSettings
from agent.console.line_classifier import ConsoleItem
from agent.console.log_line import LogLine
from agent.console.port import Heard
from agent.tasks import first_of
from agent.wiring.forwarding import StoreThenShow
from at.protocol.errors import PortError
from tests.support.modem.byte_arrivals import LAST, until_the_last


async def test_each_line_is_sent_once_over_however_many_connections() -> None:
    lines = TypedLines(["one", "two", "three"])
    first: list[str] = []
    second: list[str] = []

    def breaks_at_two(line: str) -> None:
        if line == "two":
            raise ConnectionResetError
        first.append(line)

    for send in (breaks_at_two, second.append, first.append):
        async with lines.sent_to(send):
            await asyncio.sleep(0)
    assert (first, second) == (["one"], ["two", "three"])


async def handle_nothing(items: Sequence[ConsoleItem]) -> None:
    assert not items


async def test_a_port_that_was_never_there_is_an_error_and_not_waited_for(
    capfd: pytest.CaptureFixture[str],
) -> None:
    window = ConsoleWindow(True, None, "")
    kit = KitSettings(console_port="/dev/pts/999999")
    source = PortSource(kit, window, handle_nothing, TypedLines([]))
    with pytest.raises(PortError):
        await asyncio.wait_for(source.run(), 30)
    await source.finish()
    window.show_summary(source.counts)
    window.close()
    summary = json.loads(capfd.readouterr().out)["summary"]
    assert set(summary.values()) == {0}


async def test_a_console_behind_tcp_that_hangs_up_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sources, "_RETRY_S", 0.0)
    came_back = asyncio.Event()
    connected = 0

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connected
        connected += 1
        if connected == 2:
            came_back.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        window = ConsoleWindow(False, None, "")
        source = PortSource(KitSettings(console_port=port), window, handle_nothing, TypedLines([]))
        reading = asyncio.create_task(source.run())
        waiting = asyncio.create_task(came_back.wait())
        await asyncio.wait({reading, waiting}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        for task in (reading, waiting):
            task.cancel()
        await asyncio.gather(reading, waiting, return_exceptions=True)
        window.close()
    assert came_back.is_set()
    assert f"{port} went away; waiting for it to come back" in capfd.readouterr().err


async def test_what_was_received_before_the_end_is_handled_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    come = until_the_last(monkeypatch, "agent.console.port")
    handled: list[ConsoleItem] = []
    stores, is_stored = asyncio.Event(), asyncio.Event()

    async def store(items: Sequence[ConsoleItem]) -> None:
        stores.set()
        await is_stored.wait()
        handled.extend(items)

    def show(_: Sequence[ConsoleItem]) -> None:
        pass

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"one\r\n")
        await stores.wait()
        writer.write(b"two\r\n" + LAST)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        window, way = ConsoleWindow(False, None, ""), StoreThenShow([store])
        source = PortSource(
            KitSettings(console_port=port),
            window,
            lambda items: way.handle(items, show),
            TypedLines([]),
        )
        reading = asyncio.create_task(source.run())
        await come.wait()
        reading.cancel()
        is_stored.set()
        await asyncio.wait([reading])
        window.close()
    lines = [item.line for item in handled if isinstance(item, LogLine)]
    assert lines == ["one", "two", "the last of it"]


@pytest.mark.contract("O3.4")
async def test_what_was_printed_while_the_console_was_looked_for_is_handled_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def find(*_: object) -> Heard:
        return Heard(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}", b"one\r\ntw")

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"o\r\nthree\r\n")
        await is_read.wait()
        writer.close()

    async def handle(items: Sequence[ConsoleItem]) -> None:
        lines.extend(item.line for item in items if isinstance(item, LogLine))
        if "three" in lines:
            is_read.set()

    monkeypatch.setattr("agent.console.port.find_console", find)
    lines: list[str] = []
    is_read = asyncio.Event()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        window = ConsoleWindow(False, None, "")
        source = PortSource(KitSettings(), window, handle, TypedLines([]))
        await asyncio.wait_for(first_of(source.run(), is_read.wait()), 30)
        window.close()
    assert lines == ["one", "two", "three"]
