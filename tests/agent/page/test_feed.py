"""What the page knows of the agent while that is not heard."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from agent.daemon.control.socket import ControlSocket
from agent.daemon.snapshot import State
from agent.errors import AgentError
from agent.page.feed import AgentFeed
from agent.page.kits import since
from tests.support.page.statuses import NOW, kit, status


def test_an_agent_is_not_heard_since_the_first_trouble_and_the_newest_is_told() -> None:
    times = iter([NOW, NOW + timedelta(minutes=1)])
    feed = AgentFeed(ControlSocket(Path("none.sock")), lambda: next(times))
    for trouble in ("the agent ended", "the agent does not run"):
        feed._lose(AgentError(trouble))
    assert (feed.lost_at, feed.trouble) == (NOW, "the agent does not run")


def test_what_a_kit_does_is_unknown_since_the_agent_is_not_heard() -> None:
    lost_at = NOW + timedelta(days=7)
    feed = AgentFeed(ControlSocket(Path("none.sock")), lambda: lost_at)
    feed.status = status(kit("dock-3", state=State.TROUBLE, since=NOW), kit("left"))
    feed._lose(AgentError("the agent does not run"))
    assert [(one.state, since(one)) for one in feed.status.kits] == [(State.UNKNOWN, lost_at)] * 2
