"""The event loop of a command, where no name server answers."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from agent.cli.framework.command import run


def test_names_that_nobody_resolves_hold_up_neither_the_work_nor_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, ended = threading.Event(), threading.Event()
    held_up: list[bool] = []

    def silent(*_: object) -> list[object]:
        asked.set()
        held_up.append(not ended.wait(10))
        return []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        waiting = [asyncio.ensure_future(loop.getaddrinfo("cloud.invalid", 1)) for _ in range(64)]
        await asyncio.to_thread(asked.wait, 10)
        for each in waiting:
            each.cancel()

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    run(work())
    before = list(held_up)
    ended.set()
    assert before == []


def test_a_name_leads_to_its_addresses_and_one_that_there_is_not_to_an_error() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo("127.0.0.1", 9, type=socket.SOCK_STREAM)
        assert [entry[4] for entry in found] == [("127.0.0.1", 9)]
        with pytest.raises(OSError, match=r"\S"):
            await loop.getaddrinfo("none.invalid", 9, flags=socket.AI_NUMERICHOST)

    run(work())
