"""The event loop of a command: a name that nobody resolves holds up neither work nor end."""

import asyncio
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

if sys.platform == "win32":
    _UsualLoop = asyncio.ProactorEventLoop
else:
    _UsualLoop = asyncio.SelectorEventLoop


class CommandLoop(_UsualLoop):
    """The usual loop, but for names: each is resolved in a thread that nobody waits for.

    Without a name server the system tries for ten seconds or longer, which nothing breaks off. The
    usual loop's few threads are then all taken, and it ends only after the last of them.
    """

    async def getaddrinfo(
        self,
        host: bytes | str | None,
        port: bytes | str | int | None,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002 - the name in asyncio
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        """Return what `socket.getaddrinfo` does. Raises OSError, UnicodeError."""
        found: asyncio.Future[Any] = self.create_future()

        def settle(result: Callable[[], None]) -> None:
            if not found.done():
                result()

        def resolve() -> None:
            try:
                entries = socket.getaddrinfo(host, port, family, type, proto, flags)
                result = partial(found.set_result, entries)
            except Exception as error:  # noqa: BLE001 - whoever asked gets it
                result = partial(found.set_exception, error)
            with suppress(RuntimeError):  # the loop has ended
                self.call_soon_threadsafe(settle, result)

        threading.Thread(target=resolve, daemon=True).start()
        return await found
