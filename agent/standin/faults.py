"""Faults on request: which there are, how they are written, and the layer that applies them.

A fault is written `NAME[=ARG][*TIMES][@ROUTE]`. TIMES is how many requests it spoils before it is
over; without it there is no end, but for a burst of server errors. ROUTE is a pattern of paths
(`/v1/devices*`), or a method and one (`POST /api/v0/events`); without it, every path. The control
endpoint is never spoiled.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
from dataclasses import dataclass
from email.utils import formatdate
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

from starlette.responses import Response, StreamingResponse

from agent.standin.core.dispatch import drain
from agent.standin.core.errors import JSON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from agent.standin.state import Cloud


_PIECES = 20
_LONGEST_S = 3600.0
_GONE_S = 5.0
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no time: close() sends RST


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way through a fault."""

    argument: str
    app: ASGIApp
    cloud: Cloud
    scope: Scope
    receive: Receive
    send: Send

    async def through(self, send: Send | None = None) -> None:
        """Let the routes answer."""
        await self.app(self.scope, self.receive, send or self.send)

    async def answer(self, response: Response) -> None:
        """Answer in place of the routes; what the client still sends is read first."""
        await drain(self.receive)
        await response(self.scope, self.receive, self.send)


Spoiling: TypeAlias = "Callable[[Call], Awaitable[None]]"


@dataclass(frozen=True, slots=True)
class Spoiler:
    """One kind of fault."""

    spoil: Spoiling
    help: str
    default: str = ""
    times: int | None = None
    check: Callable[[str], object] = str


class Spoil:
    """The ASGI application that a fault makes of the one below it."""

    __slots__ = ("_app", "_argument", "_cloud", "_spoil")

    def __init__(self, spoil: Spoiling, argument: str, app: ASGIApp, cloud: Cloud) -> None:
        self._spoil = spoil
        self._argument = argument
        self._app = app
        self._cloud = cloud

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._spoil(Call(self._argument, self._app, self._cloud, scope, receive, send))


@dataclass(slots=True)
class _Kept:
    """An answer of the routes, held back."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def head(self, length: int | None) -> list[tuple[bytes, bytes]]:
        """Return the headers with another Content-Length, or the one that is true."""
        rest = [(name, value) for name, value in self.headers if name != b"content-length"]
        size = len(self.body) if length is None else length
        return [*rest, (b"content-length", str(size).encode())]


async def _latency(call: Call) -> None:
    await asyncio.sleep(float(call.argument))
    await call.through()


async def _slow_body(call: Call) -> None:
    kept = await _keep(call)
    start = {"type": "http.response.start", "status": kept.status, "headers": kept.head(None)}
    await call.send(start)
    size = max(1, -(-len(kept.body) // _PIECES))
    for at in range(0, len(kept.body), size):
        await asyncio.sleep(float(call.argument) / _PIECES)
        piece = kept.body[at : at + size]
        await call.send({"type": "http.response.body", "body": piece, "more_body": True})
    await call.send({"type": "http.response.body", "body": b"", "more_body": False})


async def _cut_body(call: Call) -> None:
    kept = await _keep(call)
    await _raw(call, kept, kept.body[: len(kept.body) // 2], len(kept.body))


async def _wrong_length(call: Call) -> None:
    kept = await _keep(call)
    await _raw(call, kept, kept.body, max(0, len(kept.body) + int(call.argument)))


async def _too_many(call: Call) -> None:
    headers = {}
    kind, _, amount = call.argument.partition(":")
    if kind == "date":
        headers["Retry-After"] = formatdate(
            call.cloud.clock.time() + float(amount or 1), usegmt=True
        )
    elif kind != "none":
        headers["Retry-After"] = call.argument
    await call.answer(_error(call, 429, "too many requests", headers))


async def _server_error(call: Call) -> None:
    await call.answer(_error(call, int(call.argument), "the service is not well", {}))


async def _html_error(call: Call) -> None:
    page = "<!doctype html><title>Bad gateway</title><h1>Bad gateway</h1>"
    await call.answer(Response(page, int(call.argument), media_type="text/html"))


async def _array_error(call: Call) -> None:
    await call.answer(JSON(["something", {"is": ["wrong"]}, 7, None], int(call.argument)))


async def _huge_json(call: Call) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"data":["'
        for _ in range(int(call.argument)):
            yield b"x" * (1024 * 1024)
        yield b'"]}'

    await call.answer(StreamingResponse(pieces(), media_type="application/json"))


async def _deep_json(call: Call) -> None:
    depth = int(call.argument)
    await call.answer(Response(b"[" * depth + b"]" * depth, media_type="application/json"))


async def _redirect(call: Call) -> None:
    place = call.argument.rstrip("/") + call.scope["path"]
    query = call.scope["query_string"].decode("latin-1")
    headers = {"Location": f"{place}?{query}" if query else place}
    await call.answer(Response(status_code=307, headers=headers))


async def _reset(call: Call) -> None:
    if call.argument == "after":
        await _keep(call)  # it was done, and nobody is told
    else:
        await drain(call.receive)
    transport = _transport(call)
    open_socket: socket.socket | None = transport.get_extra_info("socket")
    if open_socket is not None:
        with contextlib.suppress(OSError):
            open_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()
    await _gone(call)


async def _keep(call: Call) -> _Kept:
    kept = _Kept(500, [], b"")

    async def hold(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            kept.status, kept.headers = message["status"], list(message.get("headers", []))
        else:
            kept.body += message.get("body", b"")

    await call.through(hold)
    return kept


async def _raw(call: Call, kept: _Kept, body: bytes, length: int) -> None:
    """Write an answer that no HTTP library would, then close the connection."""
    lines = [f"HTTP/1.1 {kept.status} -".encode()]
    lines += [name + b": " + value for name, value in kept.head(length)]
    transport = _transport(call)
    transport.write(b"\r\n".join([*lines, b"connection: close", b"", b""]) + body)
    transport.close()
    await _gone(call)


def _transport(call: Call) -> asyncio.Transport:
    # uvicorn hands out a bound method of its request cycle, which knows the connection.
    found = getattr(getattr(call.send, "__self__", None), "transport", None)
    if found is None:
        raise ConnectionResetError("this fault needs a socket below the application")
    transport: asyncio.Transport = found
    return transport


async def _gone(call: Call) -> None:
    """Wait until the server knows that the connection is gone: else it would answer 500."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GONE_S):
            while (await call.receive())["type"] != "http.disconnect":
                pass


def _error(call: Call, status: int, message: str, headers: dict[str, str]) -> Response:
    from agent.standin.core.hosts import refusal

    refused = refusal(call.scope["path"], status, message)
    refused.headers.update(headers)
    return refused.response()


def _seconds(text: str) -> None:
    if not 0 <= float(text) <= _LONGEST_S:
        raise ValueError(f"0 to {_LONGEST_S:g} seconds")


def _number(low: int, high: int) -> Callable[[str], None]:
    def check(text: str) -> None:
        if not low <= int(text) <= high:
            raise ValueError(f"a number from {low} to {high}")

    return check


def _header(text: str) -> None:
    if any(not 32 <= ord(character) < 127 for character in text):
        raise ValueError("a header holds printable ASCII")
    if text.startswith("date:"):
        float(text.removeprefix("date:"))


def _moment(text: str) -> None:
    if text not in {"before", "after"}:
        raise ValueError("before or after the request was carried out")


_STATUS = _number(400, 599)

SPOILERS = {
    "latency": Spoiler(_latency, "Wait ARG seconds before each answer.", "1", check=_seconds),
    "slow-body": Spoiler(_slow_body, "Dribble a body over ARG seconds.", "5", check=_seconds),
    "cut-body": Spoiler(_cut_body, "Close in the middle of a body."),
    "wrong-length": Spoiler(
        _wrong_length, "Announce ARG bytes more than there are; fewer if negative.", "10",
        check=_number(-10**9, 10**9),
    ),
    "too-many-requests": Spoiler(
        _too_many, "429; Retry-After is ARG as it stands, `date:SECONDS`, or `none`.", "1",
        check=_header,
    ),
    "server-error": Spoiler(
        _server_error, "A burst of status ARG (503): three, or *TIMES.", "503", times=3,
        check=_STATUS,
    ),
    "html-error": Spoiler(_html_error, "Status ARG (502) with a page.", "502", check=_STATUS),
    "array-error": Spoiler(
        _array_error, "Status ARG (400) with a JSON array.", "400", check=_STATUS
    ),
    "huge-json": Spoiler(
        _huge_json, "A JSON answer of ARG MiB.", "100", check=_number(1, 10_000)
    ),
    "deep-json": Spoiler(
        _deep_json, "A JSON answer nested ARG deep.", "100000", check=_number(1, 10**7)
    ),
    "redirect": Spoiler(
        _redirect, "307 to the same path at the URL ARG.", "http://elsewhere.invalid",
        check=_header,
    ),
    "connection-reset": Spoiler(
        _reset, "Reset the connection `before` or `after` the request was carried out.", "before",
        check=_moment,
    ),
}  # fmt: skip


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
    from agent.standin.observability.rate_limits import HOUR_S, SUGGESTED, limits

    allowed = {}
    for argument in arguments:
        if argument and not argument.isdecimal():
            raise ValueError(f"{RATE_LIMIT} takes a number, not {argument!r}")
        allowed = {
            kind: (int(argument), HOUR_S) if argument else figure
            for kind, figure in SUGGESTED.items()
        }
    limits(cloud).allowed = allowed
