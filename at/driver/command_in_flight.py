"""The command in flight: its answer, told from another's that came twice, and how it fails."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from msgspec import Struct

from at.protocol.line.answer_or_notice import NOTICES_ONLY, Owner
from at.protocol.line.doubled_answers import (
    AWAIT_S,
    RecentAnswers,
    expects_line,
    is_ok_alone,
    tells_more,
)
from at.protocol.line.exchange import Exchange
from at.protocol.line.items import Answer, Item, NoticeLine, Unknown


class Probe(Struct):
    """A question of the link's own, and which answer is the one to it."""

    command: str
    owner: Owner
    accept: Callable[[Answer], bool]
    others: bool = False
    """Whether another answer came meanwhile."""


class CommandInFlight:
    """At most one command, and who waits for its answer; `machine` classifies what comes.

    `on_item` gets what belongs to no command; `on_doubt` is called where an answer may be
    another's; `on_other` where the answer to a probe is not the one to it.
    """

    def __init__(
        self,
        machine: Exchange,
        on_item: Callable[[Item], None],
        on_doubt: Callable[[], None],
        on_other: Callable[[asyncio.Future[Answer]], None],
    ) -> None:
        self.payload: bytes | None = None
        """To be sent when the modem prompts for it."""
        self._machine = machine
        self._on_item = on_item
        self._on_doubt = on_doubt
        self._on_other = on_other
        self._recent = RecentAnswers()
        self._held: Answer | None = None  # another may follow
        self._waiter: asyncio.Future[Answer] | None = None
        self._probe: Probe | None = None

    def begin(
        self,
        waiter: asyncio.Future[Answer],
        *,
        payload: bytes | None = None,
        probe: Probe | None = None,
    ) -> None:
        """Give `waiter` the answer to the command that is sent next."""
        self._waiter = waiter
        self.payload = payload
        self._probe = probe
        self._held = None

    def end(self) -> None:
        """Wait for no answer any more."""
        self._waiter = self.payload = self._probe = None

    def take(self, answer: Answer) -> None:
        """Give an answer to who waits for it, if it is the one to the command."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            if self._probe is None:
                self._take(answer, waiter)
            else:
                self._take_probed(answer, waiter, self._probe)

    def fail(self, error: Exception) -> None:
        """Raise an error to who waits."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def restart(self, error: Exception) -> None:
        """Raise an error to who waits, unless an answer came: a kit told to restart says OK."""
        if self._held is None or self._probe is not None:
            self.fail(error)
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(self._held)

    def pass_on(self, item: Item) -> None:
        """Give on what is no command's; what may be of an answer is known if it comes again."""
        if type(item) is Unknown:
            self._recent.add_stray(item.text, asyncio.get_running_loop().time())
        elif type(item) is NoticeLine and item.name not in NOTICES_ONLY:
            self._recent.add_named(item.line, asyncio.get_running_loop().time())
        self._on_item(item)

    def disown(self) -> None:
        """Drop the command; the lines of its answer so far are nobody's."""
        for item in self._machine.disown():
            self.pass_on(item)

    def abandon(self) -> None:
        """Drop the command and an unfinished line."""
        for item in self._machine.abandon():
            self.pass_on(item)

    def _take_probed(self, answer: Answer, waiter: asyncio.Future[Answer], probe: Probe) -> None:
        """Give an answer to the link's own question, if it is the one to it."""
        now = waiter.get_loop().time()
        if self._held is None and self._recent.has_name_of(answer, now):
            self._hold(answer, waiter)
            self._machine.await_another(answer)
            return
        self._recent.add(answer, now)
        if not self._accept(answer, waiter, probe):
            self._machine.await_another(answer)

    def _accept(self, answer: Answer, waiter: asyncio.Future[Answer], probe: Probe) -> bool:
        """Give an answer if it is the one to the probe; return whether it is."""
        if accepted := probe.accept(answer):
            waiter.set_result(answer)
        else:
            probe.others = True
            self._on_other(waiter)
        return accepted

    def _take(self, answer: Answer, waiter: asyncio.Future[Answer]) -> None:
        """Give an answer to the command in flight, unless it may be another's that came twice."""
        bare_ok = is_ok_alone(answer)
        needs_line = bare_ok and self._machine.owner.needs_line()
        second = self._held is not None
        expects = needs_line or (bare_ok and (second or expects_line(answer.command or "")))
        now = waiter.get_loop().time()
        is_copy = self._recent.may_be_copy(answer, now, expects_line=expects)
        self._recent.add(replace(answer, command=None) if is_copy else answer, now)
        if second:
            self._recent.come_twice = True
        if is_copy:
            if not (needs_line and self._recent.come_twice):
                self._hold(answer, waiter)
            self._machine.await_another(answer)
            return
        if expects:
            self._on_doubt()  # it may be another command's OK, sent twice
        waiter.set_result(answer)

    def _hold(self, answer: Answer, waiter: asyncio.Future[Answer]) -> None:
        """Hold an answer back that may be a copy; of two, the one that tells more."""
        if self._held is None:
            waiter.get_loop().call_later(AWAIT_S, self._give_held, waiter)
        if self._held is None or tells_more(answer, self._held):
            self._held = answer

    def _give_held(self, waiter: asyncio.Future[Answer]) -> None:
        """Give the answer that was held back, if no other came."""
        if self._held is None or waiter.done():
            return
        if self._probe is not None:
            self._accept(self._held, waiter, self._probe)
            return
        self._recent.waited_in_vain(self._held)
        self.disown()
        self._on_doubt()
        waiter.set_result(self._held)
