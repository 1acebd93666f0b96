"""Fault injection: how faults are written, which are switched on, and the layer that applies them.

A fault is written `NAME[=ARG][*TIMES][@ROUTE]`. TIMES is how many requests it applies to before it
ends; without it there is no end, except for a burst of server errors. ROUTE is a pattern of paths
(`/v1/devices*`), or a method and a pattern (`POST /api/v0/events`); without it, every path. No
fault applies to the control endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from starlette.types import ASGIApp, Receive, Scope, Send

from agent.standin.core.responses import MakeRefused
from agent.standin.fault_kinds import FAULTS, FaultKind, FaultyRequest
from agent.standin.state import Cloud

WRONG_CERTIFICATE = "tls-wrong-certificate"
RATE_LIMIT = "rate-limit"
# These are applied where connections are made and where devices push, not by the layer below.
_APPLIED_ELSEWHERE = {
    WRONG_CERTIFICATE: "New connections are TLS, with a certificate of another name.",
    RATE_LIMIT: "Per device: ARG pushes of a kind an hour, or the suggested figures.",
}
_EXEMPT_PATH = "/control"
_FORM = re.compile(
    r"(?P<name>[a-z0-9-]+)(?:=(?P<argument>.*?))?(?:\*(?P<times>\d{1,6}))?"
    r"(?:@(?P<route>(?:[A-Z]+ )?/.*))?",
    re.DOTALL,
)


@dataclass(slots=True)
class Fault:
    """One fault that is switched on. `left` is None where it has no end."""

    text: str
    name: str
    argument: str
    left: int | None
    method: str
    route: str

    def triggers(self, method: str = "", path: str = "") -> bool:
        """Return whether it applies to this request, or connection; if so, count it."""
        if self.left == 0 or self.method not in {"", method}:
            return False
        if self.route and not fnmatchcase(path, self.route):
            return False
        if self.left is not None:
            self.left -= 1
        return True


def parse(text: str) -> Fault:
    """Return the fault that `text` describes. Raises ValueError, which names the known faults."""
    match = _FORM.fullmatch(text)
    name = match["name"] if match else text
    if match is None or (name not in FAULTS and name not in _APPLIED_ELSEWHERE):
        raise ValueError(f"no fault is named {name!r}; there are {', '.join(known_faults())}")
    if name in _APPLIED_ELSEWHERE and match["route"]:
        raise ValueError(f"{name} applies whatever the route")
    if name == RATE_LIMIT and match["times"]:
        raise ValueError(f"{name} has no end of its own: [] ends it")
    argument = match["argument"] or ""
    if name == RATE_LIMIT and argument and not argument.isdecimal():
        raise ValueError(f"{name} takes a number, not {argument!r}")
    kind = FAULTS.get(name)
    if kind is not None:
        argument = argument or kind.default
        try:
            kind.check(argument)
        except ValueError as error:
            raise ValueError(f"{name} does not take {argument!r}: {error}") from error
    times = int(match["times"]) if match["times"] else kind.times if kind else None
    method, _, route = (match["route"] or "").rpartition(" ")
    return Fault(text, name, argument, times, method, route)


def set_faults(cloud: Cloud, specifications: Sequence[str]) -> None:
    """Replace all faults by these. Raises ValueError if one is unknown or malformed."""
    cloud.transient["faults"] = [parse(text) for text in specifications]


def active_faults(cloud: Cloud) -> list[str]:
    """Return the faults that have not ended, as they were written."""
    return [fault.text for fault in _faults(cloud) if fault.left != 0]


def known_faults() -> dict[str, str]:
    """Return the names of all faults with a line on each, as `--fault help` prints them."""
    return {name: kind.help for name, kind in FAULTS.items()} | _APPLIED_ELSEWHERE


def has_wrong_certificate(cloud: Cloud) -> bool:
    """Return whether new connections are TLS with a certificate of another name."""
    return any(fault.name == WRONG_CERTIFICATE and fault.left != 0 for fault in _faults(cloud))


def triggers_wrong_certificate(cloud: Cloud) -> bool:
    """Return whether the connection that was just made gets that certificate, and count it."""
    return any(fault.name == WRONG_CERTIFICATE and fault.triggers() for fault in _faults(cloud))


def rate_limit(cloud: Cloud) -> str | None:
    """Return the argument of the last `rate-limit` fault, None where there is none.

    It is a decimal number of pushes an hour, or "" for the suggested figures.
    """
    arguments = [fault.argument for fault in _faults(cloud) if fault.name == RATE_LIMIT]
    return arguments[-1] if arguments else None


def _faults(cloud: Cloud) -> list[Fault]:
    faults: list[Fault] = cloud.transient.get("faults", [])
    return faults


class FaultLayer:
    """An ASGI layer between the guard and the routes, which applies the faults.

    `refuse` makes an error in the format of the half that a path belongs to.
    """

    def __init__(self, app: ASGIApp, cloud: Cloud, refuse: MakeRefused) -> None:
        self._app = app
        self._cloud = cloud
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with the faults that it triggers: the first one is outermost."""
        app = self._app
        if scope["path"] != _EXEMPT_PATH:
            for fault in reversed(_faults(self._cloud)):
                kind = FAULTS.get(fault.name)
                if kind is not None and fault.triggers(scope["method"], scope["path"]):
                    app = self._faulty(app, kind, fault.argument)
        await app(scope, receive, send)

    def _faulty(self, app: ASGIApp, kind: FaultKind, argument: str) -> ASGIApp:
        """Return `app` with a fault applied to what it answers."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            request = FaultyRequest(argument, app, self._cloud, self._refuse, scope, receive, send)
            await kind.effect(request)

        return answer
