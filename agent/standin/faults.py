"""Faults on request: which there are, how they are written, and the layer that applies them.

A fault is written `NAME[=ARG][*TIMES][@ROUTE]`. TIMES is how many requests it spoils before it is
over; without it there is no end, but for a burst of server errors. ROUTE is a pattern of paths
(`/v1/devices*`), or a method and one (`POST /api/v0/events`); without it, every path. The control
endpoint is never spoiled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from agent.standin.spoilers import SPOILERS, Spoil

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from agent.standin.state import Cloud

WRONG_CERTIFICATE = "tls-wrong-certificate"
RATE_LIMIT = "rate-limit"

_ELSEWHERE = {
    WRONG_CERTIFICATE: "New connections are TLS, with a certificate of another name.",
    RATE_LIMIT: "Per device: ARG pushes of a kind an hour, or the suggested figures.",
}
_FORM = re.compile(
    r"(?P<name>[a-z0-9-]+)(?:=(?P<argument>.*?))?(?:\*(?P<times>\d{1,6}))?"
    r"(?:@(?P<route>(?:[A-Z]+ )?/.*))?",
    re.DOTALL,
)
_NEVER_SPOILED = "/control"


@dataclass(slots=True)
class Fault:
    """One fault that is switched on. `left` is None where it has no end."""

    text: str
    name: str
    argument: str
    left: int | None
    method: str
    route: str

    def strikes(self, method: str = "", path: str = "") -> bool:
        """Say whether this request, or connection, is to be spoiled, and count it."""
        if self.left == 0 or self.method not in {"", method}:
            return False
        if self.route and not fnmatchcase(path, self.route):
            return False
        if self.left is not None:
            self.left -= 1
        return True


def parse(text: str) -> Fault:
    """Read a fault as it is written. Raises ValueError, which names what there is."""
    found = _FORM.fullmatch(text)
    name = found["name"] if found else text
    if found is None or (name not in SPOILERS and name not in _ELSEWHERE):
        raise ValueError(f"no fault is named {name!r}; there are {', '.join(describe())}")
    if name in _ELSEWHERE and found["route"]:
        raise ValueError(f"{name} strikes whatever the route")
    if name == RATE_LIMIT and found["times"]:
        raise ValueError(f"{name} has no end of its own: [] ends it")
    argument = found["argument"] or ""
    spoiler = SPOILERS.get(name)
    if spoiler is not None:
        argument = argument or spoiler.default
        try:
            spoiler.check(argument)
        except ValueError as error:
            raise ValueError(f"{name} does not take {argument!r}: {error}") from error
    times = int(found["times"]) if found["times"] else spoiler.times if spoiler else None
    method, _, route = (found["route"] or "").rpartition(" ")
    return Fault(text, name, argument, times, method, route)


def install(cloud: Cloud, specifications: Sequence[str]) -> None:
    """Replace the faults by these. Raises ValueError on one that is not known or malformed."""
    faults = [parse(text) for text in specifications]
    if any(fault.name == RATE_LIMIT for fault in (*faults, *_faults(cloud))):
        _limit([fault.argument for fault in faults if fault.name == RATE_LIMIT], cloud)
    cloud.rooms["faults"] = faults


def active(cloud: Cloud) -> list[str]:
    """Return the faults that are not over yet, as they were written."""
    return [fault.text for fault in _faults(cloud) if fault.left != 0]


def describe() -> dict[str, str]:
    """Return what `--fault help` prints: name -> one line."""
    return {name: one.help for name, one in SPOILERS.items()} | _ELSEWHERE


def wrong_certificate(cloud: Cloud) -> bool:
    """Say whether new connections are to be TLS with a certificate of another name."""
    return any(fault.name == WRONG_CERTIFICATE and fault.left != 0 for fault in _faults(cloud))


def meets_wrong_certificate(cloud: Cloud) -> bool:
    """Say so of a connection that was just made, and count it."""
    return any(fault.name == WRONG_CERTIFICATE and fault.strikes() for fault in _faults(cloud))


class FaultLayer:
    """An ASGI layer between the guard and the routes, which spoils what a fault strikes."""

    def __init__(self, app: ASGIApp, cloud: Cloud) -> None:
        self._app = app
        self._cloud = cloud

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, spoiled where a fault says so."""
        faults = _faults(self._cloud)
        app = self._app
        if faults and scope["path"] != _NEVER_SPOILED:
            for fault in reversed(faults):
                spoiler = SPOILERS.get(fault.name)
                if spoiler is not None and fault.strikes(scope["method"], scope["path"]):
                    app = Spoil(spoiler.spoil, fault.argument, app, self._cloud)
        await app(scope, receive, send)


def _faults(cloud: Cloud) -> list[Fault]:
    found: list[Fault] = cloud.rooms.get("faults", [])
    return found


def _limit(arguments: list[str], cloud: Cloud) -> None:
    from agent.standin.observability.limits import HOUR_S, SUGGESTED, limits

    allowed = {}
    for argument in arguments:
        if argument and not argument.isdecimal():
            raise ValueError(f"{RATE_LIMIT} takes a number, not {argument!r}")
        allowed = {
            kind: (int(argument), HOUR_S) if argument else figure
            for kind, figure in SUGGESTED.items()
        }
    limits(cloud).allowed = allowed
