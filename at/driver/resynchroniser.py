"""Getting a link in step again: what is sent to the modem, and the time for that."""

import asyncio
import math
from collections.abc import Awaitable, Callable

from at.driver.command_in_flight import Probe
from at.protocol.dialect import Dialect, Terminator
from at.protocol.line.answer_or_notice import Owner, command_name
from at.protocol.line.items import Answer
from at.protocol.line.resynchronisation import (
    ABORT_S,
    ATTEMPTS,
    PROBE_S,
    WAYS_OUT,
    OutstandingCommands,
    abort_sequences,
)

Ask = Callable[[Probe, bytes, float], Awaitable[Answer | None]]

GRACE_S = 3.0
"""How much longer than its time a command may take whose link is out of step, but answers."""
_LEAST = 0.1  # of the usual time


class Deadline:
    """Ends in `timeout_s`; a final result that comes until then puts it off by GRACE_S, once."""

    def __init__(self, timeout_s: float = math.inf) -> None:
        self.timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + timeout_s
        self._heard = False

    def hear(self) -> None:
        """Note a final result: a modem that gives any is worth waiting for."""
        if not self._heard:
            self._heard = True
            self._at += GRACE_S

    def left_s(self) -> float:
        """Return the seconds that are left, 0 once it is over."""
        return max(self._at - self._loop.time(), 0.0)

    def share_s(self, usual_s: float, *, hurry: bool = False) -> float:
        """Return the seconds that an answer gets: its usual ones, as far as they are left.

        `hurry`: if nothing was heard and little time is left, only half of it is for this answer.
        """
        left_s = self.left_s()
        part = min(max(left_s / 2, _LEAST), 1.0) if hurry and not self._heard else 1.0
        return min(usual_s * part, left_s)


class Resynchroniser:
    """Gets a modem in step: what is left to do for it, from one attempt to the next."""

    def __init__(self) -> None:
        self.outstanding = OutstandingCommands()
        self.aborts = 0
        """Attempts to end what the modem holds, since a final result came."""
        self.may_hold = False
        """Half a command, an open quote, a data mode: since the last probe."""

    @property
    def hurries(self) -> bool:
        """Whether a mute modem has yet to get each abort sequence: none may take all its time."""
        return self.may_hold and self.aborts <= WAYS_OUT

    def forget(self) -> None:
        """Forget what came before: nothing of it is left."""
        self.outstanding.clear()
        self.may_hold = False

    async def run(
        self,
        ask: Ask,
        dialect: Dialect,
        terminator: Terminator,
        deadline: Deadline,
        *,
        data_mode: Callable[[], bool],
        no_probe: bool,
    ) -> bool:
        """Abort what the modem holds, then probe it; return whether it is in step.

        `ask(probe, data, seconds)` writes, and returns the answer if any. `data_mode`: whether it
        takes data now; `no_probe`: it answers no probe command.
        """
        others = False
        for _ in range(ATTEMPTS):
            # A modem that answers holds no half-typed line: a probe is enough.
            if not others:
                attempt, self.aborts = self.aborts % ATTEMPTS, self.aborts + 1
                self.may_hold |= attempt > 0  # it opens a quote if none is open
                for sequence in abort_sequences(
                    attempt, terminator, dialect, data_mode=data_mode()
                ):
                    await ask(_question("AT"), sequence, ABORT_S)
            probe = _question(self.outstanding.choose_probe(), self.outstanding.settled_by)
            end = terminator.wire
            if no_probe:
                in_step = await _silence(ask, b"AT" + end)
            else:
                # After its answer no older one can follow.
                self.outstanding.add(probe.command)
                data = dialect.typed(probe.command).encode() + end
                in_step = await ask(probe, data, PROBE_S) is not None
            if in_step:
                self.forget()
                return True
            others = probe.others
            if not deadline.left_s():
                break
        return False


async def _silence(ask: Ask, data: bytes) -> bool:
    """Send AT. Return whether its answer came, and nothing after it."""
    if await ask(_question("AT"), data, PROBE_S) is None:
        return False
    return await ask(_question("AT"), b"", PROBE_S) is None


def _question(command: str, accept: Callable[[Answer], bool] = lambda _answer: True) -> Probe:
    return Probe(command, Owner(command_name(command), bare=False), accept)
