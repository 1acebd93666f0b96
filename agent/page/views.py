"""The views of the page by their addresses, over what is known of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from agent.daemon.control.socket import ControlSocket
from agent.daemon.snapshot import KitStatus
from agent.page import kit, kits
from agent.page.console_feed import ConsoleFeed
from agent.page.feed import AgentFeed
from agent.page.markup import tag
from agent.page.view import Painted, View
from agent.tasks import cancel_and_wait

_LONGEST_FILTER = 200  # characters
_STARTING = "No agent is heard"


class Unknown(Exception):
    """No view has this address; the message says so."""


class Views:
    """Paints the view of an address; what all browsers show of a kit is painted once."""

    def __init__(self, feed: AgentFeed, control_socket: ControlSocket, profile: str) -> None:
        self.about = f"profile {profile}"
        self._feed = feed
        self._socket = control_socket
        self._painted = Painted()
        self._consoles: dict[str, tuple[ConsoleFeed, asyncio.Task[None]]] = {}

    def now(self) -> datetime:
        """Return the time."""
        return self._feed.now()

    @property
    def lost_at(self) -> datetime | None:
        """Since when what is shown is not live; None while it is."""
        return self._feed.lost_at

    @property
    def trouble(self) -> str:
        """Why it is not live."""
        return self._feed.trouble

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
        return kits.KEYS if path == "/kits" else kit.KEYS

    def view(self, path: str, query: Mapping[str, str]) -> View:
        """Return the view of an address. Raises Unknown."""
        name = path.removeprefix("/kits/")
        if path != "/kits" and (name == path or "/" in name):
            raise Unknown(f"there is no page {path}")
        status = self._feed.status
        if status is None:
            return _no_agent(self._feed.trouble)
        if path == "/kits":
            chosen = query.get("state", ""), query.get("density", "")
            return kits.kits_view(
                status, self.now(), self._painted, state=chosen[0], density=chosen[1]
            )
        opened = self._kit(name)
        return kit.kit_view(
            opened,
            self._console(opened.name),
            self.now(),
            self._painted,
            match=query.get("match", "")[:_LONGEST_FILTER],
            level=query.get("level", ""),
        )

    def file(self, path: str) -> str | None:
        """Return the file to download at an address, None where that is a view. Raises Unknown."""
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
            feed = ConsoleFeed(self._socket, name, self.now, self._feed.notify_changed)
            self._consoles[name] = feed, asyncio.ensure_future(feed.run())
        return self._consoles[name][0]


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
