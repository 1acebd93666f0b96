"""Answers that no well-behaved server gives, made in this process and read as from a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from agent.http import HttpTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._content), 65536):
            yield self._content[start : start + 65536]


def answering_transport(
    answer: Callable[[httpx.Request], httpx.Response], *, proxy: str = ""
) -> HttpTransport:
    """Return a transport on which `answer` answers every request."""

    async def unread(request: httpx.Request) -> httpx.Response:
        made = answer(request)
        return httpx.Response(
            made.status_code, headers=made.headers, stream=_Pieces(made.read()), request=request
        )

    return HttpTransport(transport=httpx.MockTransport(unread), proxy=proxy)
