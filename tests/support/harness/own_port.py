"""A port that nobody else is given while a test waits for a program to listen there."""

import contextlib
import socket
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def own_port() -> Iterator[int]:
    """Give a port of 127.0.0.1 where nobody listens; who binds it by its number gets it.

    A free port that is only looked for may be anybody's a moment later. Linux gives one that is
    bound, and not listened at, to nobody who asks for any port, and lets a server have it, which
    sets SO_REUSEADDR as this does. No other system lets it have it.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        if sys.platform != "linux":
            held.close()
        yield port
