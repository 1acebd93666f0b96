"""The outbox: one file, one connection, one thread that writes; callers wait for the sync."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from typing import TYPE_CHECKING, TypeVar

from agent.clock_steps import ClockSteps, since_boot
from agent.config.private import make_private_folder
from agent.errors import AgentError
from agent.observability.outbox.items import OutboxHeld
from agent.observability.outbox.schema import open_file
from agent.observability.outbox.store import Store
from agent.observability.outbox.writer import Work, Writer, settle
from at.process_lock import HeldByAnother, ProcessLock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from agent.config.profile import Outbox as Limits
    from agent.observability.outbox.items import NewItem, Receipt

T = TypeVar("T")

FILE = "outbox.sqlite"


class Outbox:
    """What waits for delivery, in `folder` (made 0700; its files are 0600).

    `put` and `aput` return once their items are on disk, synced. Raises OutboxHeld while another
    process has the folder, AgentError when it cannot be written. A damaged file is set aside and
    salvaged; `salvaged` then says how many items were read from it, else it is None.
    """

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.time,
        since_boot: Callable[[], float] = since_boot,
    ) -> None:
        self.path = folder / FILE
        self._clock = clock
        self._since_boot = since_boot
        self._steps = ClockSteps(clock(), since_boot())
        try:
            make_private_folder(folder)
            self._lock = ProcessLock(folder / f"{FILE}.lock")
        except HeldByAnother as held:
            raise OutboxHeld(
                f"the outbox in {folder} is {held}",
                hint="it is the running agent's: ask it with `cellagent status`, or stop it first",
            ) from held
        except OSError as exc:
            raise AgentError(f"{folder}: {exc.strerror}") from exc
        try:
            connection, salvaged = open_file(self.path, clock())
            store = Store(connection, self.path, limits)
        except (sqlite3.Error, OSError) as exc:
            self._lock.release()
            raise AgentError(f"{self.path} cannot be opened: {exc}") from exc
        self.salvaged = None if salvaged < 0 else salvaged
        self._writer = Writer(connection, store)
        self._gathered: list[Work] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        if self.salvaged is not None:
            counts = {"damaged_files": 1, "salvaged": self.salvaged}
            self.hand_in(lambda store: store.count(counts))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish what was handed in, and let another process have the folder."""
        self._writer.close()
        self._lock.release()

    def limit_to(self, limits: Limits) -> None:
        """Keep to other limits from the next item on."""
        self.hand_in(lambda store: store.limit_to(limits))

    def put(self, items: Sequence[NewItem]) -> Receipt:
        """Take `items`, all or none; wait for the sync. Raises OutboxFull, AgentError."""
        now = self._now()
        return self.do(lambda store: store.take(items, now))

    async def aput(self, items: Sequence[NewItem]) -> Receipt:
        """Do as `put` without holding up the event loop."""
        now = self._now()
        return await self.ado(lambda store: store.take(items, now))

    def _now(self) -> float:
        """Return the time; after the clock was set, what came before is as old as it is."""
        now = self._clock()
        if step_s := self._steps.stepped(now, self._since_boot()):
            self.hand_in(lambda store: store.clock_was_set(step_s))
        return now

    def do(self, action: Callable[[Store], T]) -> T:
        """Run `action` in a transaction; return its result once that is on disk."""
        work = Work(action)
        self._writer.hand_in([work])
        work.landed.acquire()
        if work.error is not None:
            raise work.error
        result: T = work.result
        return result

    def hand_in(self, action: Callable[[Store], object]) -> None:
        """Have `action` done without waiting for it; `close` still does.

        Called in an event loop, it comes after what was given to `ado` there before it.
        """
        self._hand_over()
        self._writer.hand_in([Work(action)])

    async def ado(self, action: Callable[[Store], T]) -> T:
        """Do as `do` without holding up the event loop.

        A caller that is cancelled learns nothing; the work is done all the same.
        """
        loop = asyncio.get_running_loop()
        work = Work(action, loop)
        assert work.future is not None
        if self._loop is not None and self._loop.is_closed():
            self._hand_over()  # what an earlier loop left behind when it ended
        if not self._gathered:
            self._loop = loop
            loop.call_soon(self._hand_over)
        elif self._loop is not loop:
            raise AgentError("the outbox is used by two event loops at the same time")
        self._gathered.append(work)
        result: T = await work.future
        return result

    def _hand_over(self) -> None:
        """Hand in what the tasks of one turn of the loop have gathered, as one."""
        works, self._gathered = self._gathered, []
        if not works:
            return
        try:
            self._writer.hand_in(works)
        except AgentError as error:
            for work in works:
                work.error = error
            settle(works)
