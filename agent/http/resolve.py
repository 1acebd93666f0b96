"""From a name to its addresses, so that they can be looked at before one is connected to."""

from __future__ import annotations

import asyncio
import socket

from agent.errors import Unreachable

_RESOLVE_S = 10.0


async def addresses_of(host: str, port: int) -> list[str]:
    """Return the addresses of a host. Raises Unreachable where the name leads nowhere."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_RESOLVE_S):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError as error:
        raise Unreachable(
            f"the name {host} was not resolved in {_RESOLVE_S:.0f} s", sent=False
        ) from error
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"the name {host} cannot be resolved: {error}", sent=False) from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
