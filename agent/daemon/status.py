"""How everything is: one entry a concern; the same trouble told once, and its end told once."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from agent.daemon.own_events import Happened

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.daemon.own_events import Happening

_log = logging.getLogger(__name__)

# A port that was lost is not there any more: one trouble.
_GONE = {"link-lost", "port-not-found"}
_NUMBER = re.compile(r"\d+(\.\d+)?")


class State(StrEnum):
    """How a concern is doing."""

    STARTING = "starting"
    WELL = "well"
    WAITING = "waiting"
    """For something that another concern tells about: the link, the end of a hold."""
    TROUBLE = "trouble"
    OFF = "off"


class Concern:
    """One thing that the agent looks after. `kit` is "" for what is common to all kits."""

    def __init__(self, board: Board, name: str, kit: str = "") -> None:
        self.name = name
        self.kit = kit
        self.state = State.STARTING
        self.trouble = ""
        """What stands in the way; also why it is off or what it waits for."""
        self.hint = ""
        self.failures = 0
        """Tries in a row that failed."""
        self.since = board.clock()
        """Unix time of the last change of state."""
        self.facts: dict[str, Any] = {}
        """What is known, for `status`: names and JSON values."""
        self.wake = asyncio.Event()
        """Ends a wait before the next try."""
        self._board = board
        self._kind = ""

    @property
    def is_gone(self) -> bool:
        """Tell whether its port was lost and has not been found again."""
        return self.state is State.TROUBLE and self._kind in _GONE

    def failed(self, error: BaseException) -> bool:
        """Note a failure; tell it, and return True, if it is another than the one that is known."""
        text, hint = str(error) or repr(error), str(getattr(error, "hint", ""))
        kind = str(getattr(error, "kind", ""))
        self.failures += 1
        known = self.state is State.TROUBLE and (
            _alike(text, self.trouble) or {kind, self._kind} <= _GONE
        )
        self._kind = kind
        if not known:
            self._become(State.TROUBLE, text, hint)
            self.tell(logging.WARNING, f"{text}; try: {hint}" if hint else text)
        return not known

    def well(self) -> None:
        """Note that it works; tell it if it did not."""
        if self.state is State.TROUBLE:
            took, tries = self._board.clock() - self.since, self.failures
            again = "" if tries == 1 else f", after {tries} tries"
            self.tell(logging.INFO, f"works again after {_duration(took)}{again}")
        self.failures = 0
        self._become(State.WELL, "", "")

    def waits(self, what: str) -> None:
        """Note that it can do nothing until something else is well; that is told elsewhere."""
        if self.state is not State.TROUBLE:
            self._become(State.WAITING, what, "")

    def off(self, reason: str, hint: str = "") -> None:
        """Note that it does nothing, and why."""
        told = self.state is State.OFF and self.trouble == reason
        self._become(State.OFF, reason, hint)
        if not told:
            self.tell(logging.INFO, f"off: {reason}")

    def learn(self, **facts: Any) -> None:
        """Note facts for `status`; None takes one away."""
        for name, value in facts.items():
            if value is None:
                self.facts.pop(name, None)
            else:
                self.facts[name] = value
        self._board.change()

    def tell(self, level: int, text: str) -> None:
        """Log a line about this concern."""
        _log.log(level, "%s", text, extra={"kit": self.kit, "concern": self.name})

    def happened(
        self, what: Happening, detail: str, *, at: datetime | None = None, key: str = ""
    ) -> None:
        """Tell whoever listens that something happened, `at` a time (aware) or now."""
        when = datetime.fromtimestamp(self._board.clock(), UTC) if at is None else at
        self._board.happened(self.kit, Happened(what, when, detail, key))

    def snapshot(self) -> dict[str, Any]:
        """Return the entry of `status --json`."""
        return {
            "concern": self.name,
            "state": self.state.value,
            "trouble": self.trouble or None,
            "try": self.hint or None,
            "failures": self.failures,
            "since": round(self.since, 3),
            **self.facts,
        }

    def _become(self, state: State, trouble: str, hint: str) -> None:
        if (state, trouble) == (self.state, self.trouble):
            return
        if state is not self.state:
            self.since = self._board.clock()
        self.state, self.trouble, self.hint = state, trouble, hint
        self._board.change()


class Board:
    """All concerns, in the order in which they came."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.concerns: list[Concern] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._listeners: dict[str, Callable[[Happened], None]] = {}

    def concern(self, name: str, kit: str = "") -> Concern:
        """Return a new concern."""
        made = Concern(self, name, kit)
        self.concerns.append(made)
        self.change()
        return made

    def forget(self, kit: str) -> None:
        """Take the concerns of a kit away, and who listens for it."""
        self.concerns = [concern for concern in self.concerns if concern.kit != kit]
        self._listeners.pop(kit, None)
        self.change()

    def listen(self, kit: str, listener: Callable[[Happened], None]) -> None:
        """Have `listener` told what happens to a kit."""
        self._listeners[kit] = listener

    def happened(self, kit: str, happened: Happened) -> None:
        """Tell what happened to a kit; "" is what happened to the agent, and so to every kit."""
        for name, listener in list(self._listeners.items()):
            if kit in {"", name}:
                listener(happened)

    def change(self) -> None:
        """Wake who watches."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def changed(self) -> None:
        """Wait for the next change."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter


def _alike(one: str, other: str) -> bool:
    """Tell whether two messages differ in numbers alone: seconds, tries, ports of a connection."""
    return one == other or _NUMBER.sub("#", one) == _NUMBER.sub("#", other)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
