"""The views of the page by their addresses, over what is known of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent.daemon.control.socket import ControlSocket
from agent.daemon.snapshot import KitStatus
from agent.page import bench, kit, kits, report
from agent.page.bench_feed import LOOK_S, PERIODS, LedgerFeed, RunningBench
from agent.page.console_feed import ConsoleFeed
from agent.page.feed import AgentFeed
from agent.page.markup import Html, tag
from agent.page.view import Painted, View, live
from agent.provisioning.ledger import Ledger
from agent.tasks import cancel_and_wait

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
    """No view has this address; the message says so."""


class Views:
    """Paints the view of an address; what all browsers show of a kit is painted once."""

    def __init__(self, subject: Subject, feed: AgentFeed, control_socket: ControlSocket) -> None:
        self.about = f"profile {subject.profile}"
        self.control = subject.control
        self.running = subject.running
        self._feed = feed
        self._ledger = LedgerFeed(subject.open_ledger, self.wake, feed.now)
        self._socket = control_socket
        self._painted = Painted()
        self._consoles: dict[str, tuple[ConsoleFeed, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Follow what is shown until cancelled."""
        await asyncio.gather(self._feed.run(), self._ledger.run(), self._look())

    async def _look(self) -> None:
        while self.running is not None:
            self.running.look()
            self.wake()
            await asyncio.sleep(LOOK_S)

    @property
    def home(self) -> str:
        """The address of what is worth seeing first."""
        return "/kits" if self.running is None else "/bench"

    def live(self, path: str) -> tuple[Html, Html]:
        """Return whether what is shown at an address is live, for the header and as a bar."""
        now = self._feed.now()
        if path.startswith("/kits"):
            return live(now, self._feed.lost_at, self._feed.trouble)
        return live(now, self._ledger.lost_at, self._ledger.trouble, local=True)

    @property
    def next_change(self) -> asyncio.Event:
        """Is set when anything changes; another one stands here from then on."""
        return self._feed.next_change

    def wake(self) -> None:
        """Have all who wait for a change look again."""
        self._feed.notify_changed()

    async def close(self) -> None:
        """End what follows consoles."""
        await cancel_and_wait(*(task for _, task in self._consoles.values()))

    def keys(self, path: str) -> Sequence[tuple[str, str]]:
        """Return the keys of a view, for its last line."""
        of = {"/kits": kits.KEYS, "/bench": bench.KEYS, "/report": report.KEYS}
        return of.get(path, kit.KEYS)

    def view(self, path: str, query: Mapping[str, str]) -> View:
        """Return the view of an address. Raises Unknown."""
        if path == "/bench":
            records = self._ledger.records("today")
            now = self._feed.now()
            return bench.bench_view(self.running, records, now, self._painted, control=self.control)
        if path == "/report":
            period = _period(query)
            records = self._ledger.records(period)
            return report.report_view(records, period, self._feed.now(), self._painted)
        name = path.removeprefix("/kits/")
        if path != "/kits" and (name == path or "/" in name):
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
            self._console(opened.name),
            self._feed.now(),
            self._painted,
            match=query.get("match", "")[:_LONGEST_FILTER],
            level=query.get("level", ""),
        )

    def file(self, path: str, query: Mapping[str, str]) -> str | None:
        """Return the file to download at an address, None where that is a view. Raises Unknown."""
        if path == "/report/runs.csv":
            return report.runs_csv(self._ledger.records(_period(query)))
        if not path.startswith("/kits/"):
            return None
        name, _, what = path.removeprefix("/kits/").rpartition("/")
        if what == "signal.csv":
            return kit.signal_csv(self._kit(name))
        if what == "console.txt":
            return "".join(kit.console_text(self._console(self._kit(name).name)))
        return None

    def _kit(self, name: str) -> KitStatus:
        known = self._feed.status.kits if self._feed.status is not None else []
        for each in known:
            if each.name == name:
                return each
        names = ", ".join(each.name for each in known) or "none yet"
        raise Unknown(f"there is no kit {name}; there are: {names}")

    def _console(self, name: str) -> ConsoleFeed:
        """Return the console of a kit, which is followed from the first time on."""
        if name not in self._consoles:
            feed = ConsoleFeed(self._socket, name, self._feed.now, self._feed.notify_changed)
            self._consoles[name] = feed, asyncio.ensure_future(feed.run())
        return self._consoles[name][0]


def _period(query: Mapping[str, str]) -> str:
    period = query.get("period", "today")
    return period if period in PERIODS else "today"


def _no_agent(trouble: str) -> View:
    """Return the view of an agent that was never heard: what to do."""
    shown = tag(
        "div",
        tag("h1", _STARTING),
        tag("p", trouble or "it is asked for its status"),
        tag("p", "Start it: ", tag("code", "cellagent run", class_="command")),
        id="none",
        class_="empty",
    )
    return View(_STARTING, {"none": shown}, {"heading": ["none"]})
