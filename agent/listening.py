"""A listening socket whose connections leave descriptors for the rest of the process."""

import socket
from contextlib import suppress
from typing import Any

MOST_CONNECTIONS = 128


class BoundedListener(socket.socket):
    """Of more than MOST_CONNECTIONS connections the oldest ends.

    A connection that says nothing, or is amid its TLS handshake, holds a descriptor as well: with
    the last of them the program could open no kit and answer nobody.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._accepted: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, as `socket.accept` does."""
        connection, address = super().accept()
        self._accepted = [*(each for each in self._accepted if each.fileno() >= 0), connection]
        while len(self._accepted) > MOST_CONNECTIONS:
            with suppress(OSError):  # its reader is told of the end, and closes it
                self._accepted.pop(0).shutdown(socket.SHUT_RDWR)
        return connection, address
