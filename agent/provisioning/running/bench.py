"""The bench while it is watched: its tray, what is plugged in and scanned, and who hears of it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.errors import AgentError
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.scans import RETRY, Scan, Scans
from agent.provisioning.running.tray import Slot, SlotEvent, Tray, key_of


@dataclass
class Bench:
    """A tray whose boards come, run, fail, are tried again and go. Calls `on_scan` with each scan.

    With `scans`, no board begins before its label was scanned; `ledger` knows whose a label is.
    `rekeys` is the option that allows another key: then a scan that has a board tried again is
    asked for twice.
    """

    tray: Tray
    scans: Scans | None = None
    ledger: AsyncLedger | None = None
    on_scan: Callable[[Scan], None] = lambda _: None
    rekeys: str = ""

    def __post_init__(self) -> None:
        self.changed = asyncio.Event()
        """Set when there is something to do: a board was scanned, or is to be tried again."""
        self.last_scan: Scan | None = None
        self.scanned = 0
        """How many scans were told."""
        self._doubted = ""

    def look(self, connected: Mapping[str, tuple[BoardLocation, object]]) -> None:
        """Take note of what is plugged in now, by port, each with a mark that changes with it."""
        came = self.tray.look(connected)
        if self.scans is not None and (told := self.scans.update(came)):
            self._tell(told)

    def begin(self, location: BoardLocation) -> None:
        """Take note that the run of a board begins."""
        self.tray.begin(location, time.monotonic())

    def step(self, location: BoardLocation, step: ProvisioningStep) -> None:
        """Take note of the step that a board is at."""
        self.tray.slots[key_of(location)].step = step.value

    def end(self, outcome: Outcome) -> Slot:
        """Take note of how the run of a board ended; return its slot."""
        return self.tray.end(outcome, time.monotonic())

    def retry(self) -> None:
        """Have every board tried again that failed, or that another had."""
        names = ", ".join(slot.name for slot in self.tray.retry())
        words = f"tried again: {names}" if names else "no board failed: none is tried again"
        self._tell(Scan(RETRY, bool(names), words))

    async def scan(self, line: str) -> None:
        """Take a line of the scanner; an empty one is none, and RETRY has the failed ones tried.

        Without `scans` it names a slot that is to be tried again.
        """
        text = line.strip()
        if not text:
            return
        slot = self.tray.named(text)
        failed = slot is not None and slot.state.may_be_tried_again
        doubted, self._doubted = self._doubted, ""
        if self.rekeys and doubted != text and (failed or (slot is None and text == RETRY)):
            self._doubted = text
            words = f"{self.rekeys} allows another key: scan {text} once more to try it again"
            self._tell(Scan(text, taken=False, words=words))
        elif slot is None and text == RETRY:
            self.retry()
        elif self.scans is not None:
            self._tell(await self._scanned(text, self.scans, is_label=slot is None))
        elif slot is not None and failed:
            slot.enter(SlotEvent.RETRY)
            words = f"{slot.name} is tried again"
            self._tell(Scan(text, taken=True, words=words, slot=slot.name))
        else:
            words = f"{text} is no slot of this tray" if slot is None else f"{text} has not failed"
            self._tell(Scan(text, taken=False, words=words))

    async def _scanned(self, text: str, scans: Scans, *, is_label: bool) -> Scan:
        try:
            holder = None
            if self.ledger is not None and is_label:
                holder = await self.ledger.call(lambda opened: opened.labelled(text))
            return scans.scan(text, holder)
        except AgentError as error:
            return Scan(text, taken=False, words=f"{text} was not taken, scan it again: {error}")

    def _tell(self, scan: Scan) -> None:
        self.last_scan = scan
        self.scanned += 1
        self.on_scan(scan)
        self.changed.set()
