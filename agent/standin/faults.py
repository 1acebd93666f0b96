"""Faults on request: the layer that spoils answers. None are built in yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from agent.standin.state import Cloud


class FaultLayer:
    """An ASGI layer between the guard and the routes."""

    def __init__(self, app: ASGIApp, cloud: Cloud) -> None:
        self._app = app
        self._cloud = cloud

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, spoiled where a fault says so."""
        await self._app(scope, receive, send)


def install(cloud: Cloud, specifications: Sequence[str]) -> None:
    """Replace the faults by these, each written NAME[=ARG]. Raises ValueError on an unknown one."""
    if specifications:
        raise ValueError(f"no fault is named {specifications[0]!r}")
    cloud.rooms["faults"] = []


def active(cloud: Cloud) -> list[str]:
    """Return the faults that are switched on, as they were written."""
    return list(cloud.rooms.get("faults", []))


def describe() -> dict[str, str]:
    """Return what `--fault help` prints: name -> one line."""
    return {}
