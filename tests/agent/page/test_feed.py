"""What the page knows of the agent while that is not heard."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from agent.daemon.control.socket import ControlSocket
from agent.errors import AgentError
from agent.page.feed import AgentFeed
from tests.support.page.statuses import NOW


def test_an_agent_is_not_heard_since_the_first_trouble_and_the_newest_is_told() -> None:
    times = iter([NOW, NOW + timedelta(minutes=1)])
    feed = AgentFeed(ControlSocket(Path("none.sock")), lambda: next(times))
    for trouble in ("the agent ended", "the agent does not run"):
        feed._lose(AgentError(trouble))
    assert (feed.lost_at, feed.trouble) == (NOW, "the agent does not run")
