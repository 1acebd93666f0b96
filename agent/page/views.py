"""The views of the page by their addresses, over what is known of the agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import TYPE_CHECKING

from agent.daemon.control.socket import ControlSocket
from agent.daemon.snapshot import KitStatus, LinkStatus
from agent.page import charts, kit, kits, timeline
from agent.page.feed import AgentFeed
from agent.page.markup import Html, tag
from agent.page.moment_feed import MomentFeed
from agent.page.view import Painted, View, live
from agent.page.words import command
from agent.tasks import cancel_and_wait

if TYPE_CHECKING:
    from agent.page.bench_feed import LedgerFeed, RunningBench
    from agent.provisioning.ledger import Ledger

_LOOK_S = 0.5  # between two looks at a tray
_KNOWN_S = 1.0  # the longest that a first paint waits for what it shows
_FILES = frozenset({"signal.csv", "signal.svg", "recording.txt", "console.txt"})
_FILE_S = 60.0  # the longest that a file does: nothing on it would say what it lacks
_KEYS = {
    "/kits": kits.KEYS,
    "/bench": (("F2", "scan field"), ("m", "sound on, off")),
    "/report": (),
}
_LONGEST_FILTER = 200  # characters
_STARTING = "No agent is heard"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a page is about: a profile, the ledger of its bench, and the run that shows it, if any.

    With `control` who has opened a link may scan, and say who is at work.
    """

    profile: str
    open_ledger: Callable[[], Ledger]
    running: RunningBench | None = None
    control: bool = False


class Unknown(Exception):
    """No view has this address, or a file cannot be made now (503); the message says so."""

    def __init__(self, says: str, code: int = 404) -> None:
        super().__init__(says)
        self.code = code


class Views:
    """Paints the view of an address; what all browsers show of a kit is painted once."""

    def __init__(self, subject: Subject, feed: AgentFeed, control_socket: ControlSocket) -> None:
        self.about = f"profile {subject.profile}"
        self.control = subject.control
        self.running = subject.running
        self._feed = feed
        self._open_ledger = subject.open_ledger
        self._ledger: LedgerFeed | None = None
        self._reading: asyncio.Task[None] | None = None
        self._socket = control_socket
        self._painted = Painted()
        self._shown_at: tuple[asyncio.Event, int] | None = None
        self._shown: dict[tuple[object, ...], View] = {}
        self._followed: dict[str, tuple[MomentFeed, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Follow what is shown until cancelled."""
        await asyncio.gather(self._feed.run(), self._look())

    async def _look(self) -> None:
        while self.running is not None:
            self.running.look()
            self.wake()
            await asyncio.sleep(_LOOK_S)

    @property
    def home(self) -> str:
        """The address of what is worth seeing first."""
        return "/kits" if self.running is None else "/bench"

    def live(self, path: str) -> tuple[Html, Html]:
        """Return whether what is shown at an address is live, for the header and as a bar."""
        now = self._feed.now()
        if path.startswith("/kits"):
            return live(now, self._feed.lost_at, self._feed.trouble)
        ledger = self._ledger_feed()
        return live(now, ledger.lost_at, ledger.trouble, local=True)

    @property
    def next_change(self) -> asyncio.Event:
        """Is set when anything changes; another one stands here from then on."""
        return self._feed.next_change

    def wake(self) -> None:
        """Have all who wait for a change look again."""
        self._feed.notify_changed()

    async def close(self) -> None:
        """End what follows kits."""
        reading = [] if self._reading is None else [self._reading]
        await cancel_and_wait(*(task for _, task in self._followed.values()), *reading)

    def keys(self, path: str) -> Sequence[tuple[str, str]]:
        """Return the keys of a view, for its last line."""
        return _KEYS.get(path, kit.KEYS)

    async def first_view(self, path: str, query: Mapping[str, str]) -> View:
        """Return the view of an address once what it shows is known, or after _KNOWN_S.

        Raises Unknown.
        """
        await self._until_known(path, query, _KNOWN_S)
        return self.view(path, query)

    async def _until_known(self, path: str, query: Mapping[str, str], timeout_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while True:
                    change = self.next_change  # of before the look: no later one is missed
                    if self._is_known(path, query):
                        break
                    await change.wait()

    def _is_known(self, path: str, query: Mapping[str, str]) -> bool:
        if path in {"/bench", "/report"}:
            ledger = self._ledger_feed()
            return bool(ledger.records(_period(query)) or ledger.trouble)
        if self._feed.status is None:
            return bool(self._feed.trouble)
        if not path.startswith("/kits/"):
            return True
        moments = self._moments(self._kit(path.removeprefix("/kits/")).name)
        return moments.is_heard or bool(moments.trouble)

    def view(self, path: str, query: Mapping[str, str]) -> View:
        """Return the view of an address. Raises Unknown."""
        # Who looks at the same address at the same time is shown the same one.
        moment = self.next_change, int(self._feed.now().timestamp())
        if moment != self._shown_at:
            self._shown_at = moment
            self._shown.clear()
        address = path, *sorted(query.items())
        if address not in self._shown:
            self._shown[address] = self._view(path, query)
        return self._shown[address]

    def _view(self, path: str, query: Mapping[str, str]) -> View:
        if path in {"/bench", "/report"}:
            return self._of_bench(path, query)
        name = path.removeprefix("/kits/")
        if path != "/kits" and name == path:
            raise Unknown(f"there is no page {path}")
        status = self._feed.status
        if status is None:
            return _no_agent(self._feed.trouble)
        if path == "/kits":
            chosen = query.get("state", ""), query.get("density", "")
            return kits.kits_view(
                status, self._feed.now(), self._painted, state=chosen[0], density=chosen[1]
            )
        opened = self._kit(name)
        return kit.kit_view(
            opened,
            self._moments(opened.name),
            self._feed.now(),
            self._painted,
            match=query.get("match", "")[:_LONGEST_FILTER],
            level=query.get("level", ""),
            at=_time(query.get("at", "")),
        )

    async def file(self, path: str, query: Mapping[str, str]) -> str | None:
        """Return the file to download at an address, None where that is a view. Raises Unknown."""
        if path == "/report/runs.csv":
            return await self._runs_file(query)
        name, _, what = path.removeprefix("/kits/").rpartition("/")
        if not path.startswith("/kits/") or what not in _FILES:
            return None
        return await self._kit_file(name, what, query)

    async def _runs_file(self, query: Mapping[str, str]) -> str:
        from agent.page.report import runs_csv

        await self._until_known("/report", query, _FILE_S)
        ledger = self._ledger_feed()
        if (records := ledger.records(_period(query))) is None:
            raise Unknown(ledger.trouble or "the ledger is still being read", 503)
        return runs_csv(records)

    async def _kit_file(self, name: str, what: str, query: Mapping[str, str]) -> str:
        await self._until_known(f"/kits/{name}", query, _FILE_S)
        if self._feed.status is None:
            raise Unknown(self._feed.trouble or _STARTING, 503)
        opened = self._kit(name)
        moments = self._moments(name)
        if not moments.is_heard:
            raise Unknown(moments.trouble or f"what {name} does is not heard yet", 503)
        match what:
            case "signal.csv":
                return kit.signal_csv(opened)
            case "signal.svg":
                return charts.signal_file(opened.concern(LinkStatus).history, self._feed.now())
            case "recording.txt":
                return timeline.recording(opened, moments.recent, *_stretch(query))
            case _:
                return "".join(kit.console_text(moments))

    def _of_bench(self, path: str, query: Mapping[str, str]) -> View:
        from agent.page import bench, report

        period = _period(query) if path == "/report" else "today"
        records, now = self._ledger_feed().records(period), self._feed.now()
        if path == "/report":
            return report.report_view(records, period, now, self._painted)
        return bench.bench_view(self.running, records, now, self._painted, control=self.control)

    def _ledger_feed(self) -> LedgerFeed:
        """Return what reads the ledger; an agent whose page shows kits alone does without it."""
        if self._ledger is None:
            from agent.page.bench_feed import LedgerFeed

            self._ledger = LedgerFeed(self._open_ledger, self.wake, self._feed.now)
            self._reading = asyncio.ensure_future(self._ledger.run())
        return self._ledger

    def _kit(self, name: str) -> KitStatus:
        known = self._feed.status.kits if self._feed.status is not None else []
        for each in known:
            if each.name == name:
                return each
        names = ", ".join(each.name for each in known) or "none yet"
        raise Unknown(f"there is no kit {name}; there are: {names}")

    def _moments(self, name: str) -> MomentFeed:
        """Return what happens to a kit, which is followed from the first time on."""
        if name not in self._followed:
            feed = MomentFeed(self._socket, name, self._feed.notify_changed)
            self._followed[name] = feed, asyncio.ensure_future(feed.run())
        return self._followed[name][0]


def _time(text: str) -> datetime | None:
    """Return a time of an address, in UTC where it names no zone; None where it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if not MINYEAR < found.year < MAXYEAR:  # nothing can be added to it, in any zone
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _stretch(query: Mapping[str, str]) -> Iterator[datetime | None]:
    """Yield the ends of a recording; None for one that is not named. Raises Unknown."""
    for name in ("from", "to"):
        text = query.get(name, "")
        if (time := _time(text)) is None and text:
            raise Unknown(f"{name}={text}: write a time as 2026-11-28T10:00:00Z")
        yield time


def _period(query: Mapping[str, str]) -> str:
    from agent.page.bench_feed import PERIODS

    period = query.get("period", "today")
    return period if period in PERIODS else "today"


def _no_agent(trouble: str) -> View:
    """Return the view of an agent that was never heard: what to do."""
    shown = tag(
        "div",
        tag("h1", _STARTING),
        tag("p", trouble or "it is asked for its status"),
        tag("p", "Start it: ", command("cellagent run")),
        id="none",
        class_="empty",
    )
    return View(_STARTING, {"none": shown}, {"heading": ["none"]})
