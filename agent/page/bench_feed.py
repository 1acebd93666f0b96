"""What the page knows of the bench: the tray of a run in this process, and the ledger's report."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta

from msgspec.structs import replace

from agent.errors import AgentError
from agent.provisioning.ledger import Ledger, RunRecord
from agent.provisioning.ledger.listing import Listing, RecordFilter
from agent.provisioning.report import Report, report
from agent.provisioning.running.bench import Bench
from agent.provisioning.running.board_run import Station
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.tray import SlotState

_READ_S = 5.0
_SHARE = 20
"""A ledger is read for at most one part of so many of the time, however large it is."""
_RUNS = 100
PERIODS = {"today": 0, "week": 6, "all": None}
"""A period of the report -> the days before today that belong to it, None for all there are."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningBench:
    """The run of this process: its tray, who is at work, and what became of the newest scan.

    `failures` counts the boards that failed and the scans that were not taken; `alarm` tells the
    newest of them. With `quiet` the page makes no sound until it is asked to.
    """

    bench: Bench
    station: Station
    quiet: bool = False
    failures: int = 0
    alarm: str = ""
    _outcomes: dict[str, Outcome | None] = field(default_factory=dict)
    _scans: int = 0

    def look(self) -> None:
        """Take note of the boards that failed since the last look."""
        for slot in self.bench.tray.slots.values():
            is_new = self._outcomes.get(slot.key) is not slot.outcome
            self._outcomes[slot.key] = slot.outcome
            if is_new and slot.outcome is not None and slot.state is SlotState.FAIL:
                self._fail(f"{slot.name} {slot.outcome.outcome}: {slot.outcome.reason}")
        if self.bench.scanned != self._scans:
            self._scans = self.bench.scanned
            if (scan := self.bench.last_scan) is not None and not scan.taken:
                self._fail(scan.words)

    def _fail(self, words: str) -> None:
        self.failures += 1
        self.alarm = words

    async def scan(self, line: str) -> None:
        """Take a line of the page's scan field, as of a scanner at the terminal."""
        await self.bench.scan(line)
        scan = self.bench.last_scan
        _log.info("page: %r scanned: %s", line, scan.words if scan is not None else "nothing")

    def set_order(self, operator: str, lot: str) -> None:
        """Set what is recorded with each run that begins from now on."""
        self.station.order = replace(self.station.order, operator=operator, lot=lot)
        _log.info("page: operator %r, lot %r", operator, lot)


@dataclass(frozen=True, slots=True)
class Records:
    """What a ledger holds of a period: its report by the hour, and the newest runs."""

    made: Report
    runs: Sequence[RunRecord]


@dataclass
class LedgerFeed:
    """Reads a ledger while somebody looks at what it holds; `open_ledger` opens it to be read."""

    open_ledger: Callable[[], Ledger]
    on_change: Callable[[], None]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __post_init__(self) -> None:
        self.lost_at: datetime | None = None
        """Since when it cannot be read; None while it can."""
        self.trouble = ""
        """Why it cannot be read."""
        self._found: dict[str, Records] = {}
        self._wanted: set[str] = set()
        self._asked = asyncio.Event()

    def records(self, period: str) -> Records | None:
        """Return what is known of a period, and have it read again; None: not read yet."""
        self._wanted.add(period)
        self._asked.set()
        return self._found.get(period)

    async def run(self) -> None:
        """Read what is asked for, until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._asked.wait()
            self._asked.clear()
            wanted, self._wanted = self._wanted, set()
            began = clock()
            for period in wanted:
                try:
                    found = await asyncio.to_thread(self._read, period)
                except AgentError as error:
                    self._lose(str(error))
                else:
                    self._take(period, found)
            await asyncio.sleep(max(_READ_S, _SHARE * (clock() - began)))

    def _read(self, period: str) -> Records:
        since = self._since(period)
        with closing(self.open_ledger()) as ledger:
            runs = Listing(ledger, RunRecord, RecordFilter(since=since)).newest(_RUNS)
            known = self._found.get(period)
            if known is not None and known.made.since == since and known.runs == runs:
                return known
            every = Listing(ledger, RunRecord, RecordFilter()).every()
            return Records(report(every, since=since, by="hour"), runs)

    def _since(self, period: str) -> datetime | None:
        days = PERIODS[period]
        if days is None:
            return None
        first = self.now().astimezone().date() - timedelta(days)
        # The zone is looked up for that day: the clocks may have been changed since.
        return datetime.combine(first, time()).astimezone()

    def _take(self, period: str, found: Records) -> None:
        if self.lost_at is not None or self._found.get(period) is not found:
            self._found[period], self.lost_at, self.trouble = found, None, ""
            self.on_change()

    def _lose(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.lost_at, self.trouble = self.lost_at or self.now(), trouble
            self.on_change()
