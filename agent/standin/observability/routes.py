"""The routes of the observability half, by host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.routing import Route

    from agent.standin.app import Host
    from agent.standin.state import Cloud


def routes(cloud: Cloud) -> dict[Host, list[Route]]:  # noqa: ARG001 - none are built yet
    """Return the routes of this half."""
    return {}
