"""The bench while it is watched: its tray, what is plugged in and scanned, and who hears of it."""

import asyncio
import time
from collections.abc import Callable, Mapping

from agent.errors import AgentError
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.board_ledger import AsyncLedger
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.scans import RETRY, Scan, Scans
from agent.provisioning.running.tray import Slot, Tray, key_of


class Bench:
    """A tray whose boards come, run, fail, are tried again and go. Calls `on_scan` with each scan.

    With `scans`, no board begins before its label was scanned; `ledger` knows whose a label is.
    """

    def __init__(
        self,
        tray: Tray,
        scans: Scans | None = None,
        ledger: AsyncLedger | None = None,
        on_scan: Callable[[Scan], None] = lambda _: None,
    ) -> None:
        self.tray = tray
        self.scans = scans
        self.changed = asyncio.Event()
        """Set when there is something to do: a board was scanned, or is to be tried again."""
        self._ledger = ledger
        self._on_scan = on_scan

    def look(self, connected: Mapping[str, tuple[BoardLocation, object]]) -> None:
        """Take note of what is plugged in now, by port, each with a mark that changes with it."""
        came = self.tray.look(connected)
        if self.scans is not None and (told := self.scans.update(came)):
            self._on_scan(told)

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
        """Take a line of the scanner; an empty one is none, and RETRY has the failed ones tried."""
        text = line.strip()
        if not text or self.scans is None:
            return
        is_label = self.scans.is_label(text)
        if is_label and text == RETRY:
            self.retry()
            return
        try:
            holder = None
            if self._ledger is not None and is_label:
                holder = await self._ledger.call(lambda opened: opened.labelled(text))
            scan = self.scans.scan(text, holder)
        except AgentError as error:
            scan = Scan(text, taken=False, words=f"{text} was not taken, scan it again: {error}")
        self._tell(scan)

    def _tell(self, scan: Scan) -> None:
        self._on_scan(scan)
        self.changed.set()
