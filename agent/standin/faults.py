"""Fault injection: which faults are switched on, and the layer that applies them.

How a fault is written is read by `agent.standin.fault_grammar`; `agent.standin.fault_kinds` has the
kinds. The layer stands between the guard and the routes: the effect of a kind spoils the answer of
the routes, or answers in their place. No fault applies to the control endpoint.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from starlette.types import ASGIApp, Receive, Scope, Send

from agent.standin import fault_kinds
from agent.standin.core.responses import MakeRefused
from agent.standin.fault_grammar import FaultMistake, read_parts
from agent.standin.state import Cloud

CONTROL_PATH = "/control"


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
    """Return the fault that `text` describes. Raises FaultMistake, which shows a right one."""
    parts = read_parts(text)
    kinds = fault_kinds.FAULTS
    kind = kinds.get(parts.name)
    if kind is None:
        near = difflib.get_close_matches(parts.name, kinds, n=1, cutoff=0.0)[0]
        problem = f"no fault has the NAME {parts.name!r}; the nearest is {near}"
        raise FaultMistake(text, problem, _example(near, kinds[near]))
    example = _example(parts.name, kind)
    argument = kind.argument.default if kind.argument else ""
    if parts.argument is not None:
        if kind.argument is None:
            problem = f"{parts.name} takes no ARG, yet has {parts.argument!r}"
            raise FaultMistake(text, problem, example)
        if not kind.argument.accepts(parts.argument):
            problem = f"ARG is {kind.argument.words}; not {parts.argument!r}"
            raise FaultMistake(text, problem, example)
        argument = parts.argument
    if parts.route and kind.effect is None:
        raise FaultMistake(text, f"{parts.name} takes no ROUTE: it applies to all", example)
    if parts.times is not None and parts.name == fault_kinds.RATE_LIMIT:
        raise FaultMistake(text, f"{parts.name} takes no TIMES: it has no end", example)
    times = kind.times if parts.times is None else parts.times
    return Fault(text, parts.name, argument, times, parts.method, parts.route)


def _example(name: str, kind: fault_kinds.FaultKind) -> str:
    """Return a right fault of a kind."""
    return f"{name}={kind.argument.default}" if kind.argument and kind.argument.default else name


def set_faults(cloud: Cloud, specifications: Sequence[str]) -> None:
    """Replace all faults by these. Raises ValueError if one is unknown or malformed."""
    _faults(cloud)[:] = [parse(text) for text in specifications]


def active_faults(cloud: Cloud) -> list[str]:
    """Return the faults that have not ended, as they were written."""
    return [fault.text for fault in _faults(cloud) if fault.left != 0]


def has_wrong_certificate(cloud: Cloud) -> bool:
    """Return whether new connections are TLS with a certificate of another name."""
    return any(
        fault.name == fault_kinds.WRONG_CERTIFICATE and fault.left != 0 for fault in _faults(cloud)
    )


def triggers_wrong_certificate(cloud: Cloud) -> bool:
    """Return whether the connection that was just made gets that certificate, and count it."""
    return any(
        fault.name == fault_kinds.WRONG_CERTIFICATE and fault.triggers() for fault in _faults(cloud)
    )


def rate_limit(cloud: Cloud) -> str | None:
    """Return the argument of the last `rate-limit` fault, None where there is none.

    It is a decimal number of pushes an hour, or "" for the suggested figures.
    """
    arguments = [fault.argument for fault in _faults(cloud) if fault.name == fault_kinds.RATE_LIMIT]
    return arguments[-1] if arguments else None


class _Faults(list[Fault]):
    """The faults that are switched on."""


def _faults(cloud: Cloud) -> _Faults:
    return cloud.transient(_Faults, _Faults)


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
        if scope["path"] != CONTROL_PATH:
            for fault in reversed(_faults(self._cloud)):
                effect = fault_kinds.FAULTS[fault.name].effect
                if effect is not None and fault.triggers(scope["method"], scope["path"]):
                    app = self._faulty(app, effect, fault.argument)
        await app(scope, receive, send)

    def _faulty(self, app: ASGIApp, effect: fault_kinds.Effect, argument: str) -> ASGIApp:
        """Return `app` with a fault applied to what it answers."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await effect(
                fault_kinds.FaultyRequest(
                    argument, app, self._cloud, self._refuse, scope, receive, send
                )
            )

        return answer
