"""A cable between a bench and a kit that outlives it: pulled, or put on another kit unseen.

The bench opens `link`. What it types goes to the kit's own terminal, and back; the kit stays
powered whatever happens to the cable.
"""

import asyncio
import contextlib
import os
import re
import threading
import tty
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from at.virtual.server.pty import PtyServer

T = TypeVar("T")
_FINAL = re.compile(rb"(?:OK|ERROR[^\r\n]*)\r\n")
PATIENCE_S = 90


class Cable:
    """Works on `loop`, in a thread of its own; its methods may be called from any other."""

    def __init__(self, loop: asyncio.AbstractEventLoop, link: Path, kit: Path) -> None:
        self.link = link
        self._loop = loop
        self._near: PtyServer | None = None
        self._far = -1
        self._bytes_left = -1  # below 0: nothing is to happen
        self._awaited: tuple[bytes, ...] = ()  # commands
        self._unanswered = b""
        self._next = kit
        self._do(self._plug, kit)

    def swap(self, kit: Path) -> None:
        """Put another kit at its far end; the bench sees no hang-up."""
        self._do(self._reach, kit)

    def pull(self) -> None:
        """Pull it out of the host: the terminal is gone."""
        self._do(self._pull)

    def plug(self, kit: Path) -> None:
        """Put it in again, with this kit at its far end."""
        self._do(self._plug, kit)

    def pull_after(self, size: int) -> None:
        """Pull it once the bench has typed `size` more bytes: those still arrive, no other."""
        self._do(self._arm, size)

    def swap_behind(self, commands: tuple[bytes, ...], kit: Path) -> None:
        """Put another kit on it once this one has answered such commands, one after another."""
        self._do(self._wait_for, commands, kit)

    def _do(self, work: Callable[..., T], *arguments: object) -> T:
        async def call() -> T:
            return work(*arguments)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(PATIENCE_S)

    def _arm(self, size: int) -> None:
        self._bytes_left = size

    def _wait_for(self, commands: tuple[bytes, ...], kit: Path) -> None:
        self._awaited, self._next = commands, kit

    def _plug(self, kit: Path) -> None:
        self._bytes_left, self._awaited = -1, ()
        self._near = PtyServer(self.link, self._typed)
        self._reach(kit)

    def _reach(self, kit: Path) -> None:
        self._let_go()
        self._far = os.open(kit, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self._far)
        self._loop.add_reader(self._far, self._answered)

    def _pull(self) -> None:
        self._let_go()
        near, self._near = self._near, None
        if near is not None:
            near.close()

    def _let_go(self) -> None:
        far, self._far = self._far, -1
        if far >= 0:
            self._loop.remove_reader(far)
            os.close(far)

    def _typed(self, data: bytes) -> None:
        last = 0 <= self._bytes_left <= len(data)
        if last:
            data = data[: self._bytes_left]
        elif self._bytes_left > 0:
            self._bytes_left -= len(data)
        self._unanswered += data
        with contextlib.suppress(OSError):
            os.write(self._far, data)
        if last:
            self._pull()

    def _answered(self) -> None:
        try:
            data = os.read(self._far, 65536)
        except OSError:  # the kit was switched off; the terminal of a cable hangs up with it
            self._pull()
            return
        if self._near is not None:
            self._near.send(data)
        if _FINAL.search(data):
            command, self._unanswered = self._unanswered, b""
            if self._awaited and self._awaited[0] in command:
                self._awaited = self._awaited[1:]
                if not self._awaited:
                    self._reach(self._next)


@contextlib.contextmanager
def cables() -> Iterator[Callable[[Path, Path], Cable]]:
    """Yield what makes cables, by their link and kit; all are pulled in the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    made: list[Cable] = []

    def make(link: Path, kit: Path) -> Cable:
        made.append(Cable(loop, link, kit))
        return made[-1]

    try:
        yield make
    finally:
        for cable in made:
            cable.pull()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()
