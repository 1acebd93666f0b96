"""A console's queue of bytes that tells when the last line that a test sends has come."""

from __future__ import annotations

import asyncio

import pytest

from agent.console.port import ByteQueue

LAST = b"the last of it\r\n"


def until_the_last(monkeypatch: pytest.MonkeyPatch, *places: str) -> asyncio.Event:
    """Return what is set once bytes that end with LAST wait in a `ByteQueue` of these modules."""
    come = asyncio.Event()

    class Arrivals(ByteQueue):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if data.endswith(LAST):
                come.set()

    for place in places:
        monkeypatch.setattr(f"{place}.ByteQueue", Arrivals)
    return come
