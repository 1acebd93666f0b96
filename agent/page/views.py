"""The views of the page by their addresses, over what is known of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from agent.page import kits
from agent.page.feed import AgentFeed
from agent.page.markup import Html, tag
from agent.page.view import Painted, View

_STARTING = "No agent is heard"


class Unknown(Exception):
    """No view has this address; the message says so."""


class Views:
    """Paints the view of an address; for all browsers that show it once for each change."""

    def __init__(self, feed: AgentFeed, profile: str) -> None:
        self.about = f"profile {profile}"
        self._feed = feed
        self._painted = Painted()

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

    def next_change(self, _path: str) -> asyncio.Event:
        """Return the event that is set when the view of an address changes."""
        return self._feed.next_change

    def wake(self) -> None:
        """Have all who wait for a change look again."""
        self._feed.next_change.set()

    def keys(self, path: str) -> Sequence[tuple[str, str]]:
        """Return the keys of a view, for its last line."""
        return kits.KEYS if path == "/kits" else ()

    async def view(self, path: str, query: Mapping[str, str]) -> View:
        """Return the view of an address. Raises Unknown."""
        status = self._feed.status
        if path == "/kits" or path.startswith("/kits/"):
            if status is None:
                return _no_agent(self._feed.trouble)
            if path == "/kits":
                chosen = query.get("state", ""), query.get("density", "")
                return kits.kits_view(
                    status, self.now(), self._painted, state=chosen[0], density=chosen[1]
                )
        raise Unknown(f"there is no page {path}")


def _no_agent(trouble: str) -> View:
    """Return the view of an agent that was never heard: what to do."""
    shown = tag(
        "div",
        tag("h1", _STARTING),
        tag("p", trouble or "it is asked for its status"),
        tag("p", "Start it: ", tag("code", "cellagent run", class_="command")),
        tag("p", "The boards of the bench are shown all the same: ", _bench_link()),
        id="none",
        class_="empty",
    )
    return View(_STARTING, {"none": shown}, {"heading": ["none"]})


def _bench_link() -> Html:
    return tag("a", "Bench", href="/bench")
