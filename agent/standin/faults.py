"""Fault injection: the kinds of fault with their effects, how faults are written and switched on.

A fault is written `NAME[=ARG][*TIMES][@ROUTE]`. TIMES is how many requests it applies to before it
ends; without it there is no end, except for a burst of server errors. ROUTE is a pattern of paths
(`/v1/devices*`), or a method and a pattern (`POST /api/v0/events`); without it, every path.

A layer between the guard and the routes applies them: the effect of a kind spoils the answer of the
routes, or answers in their place. No fault applies to the control endpoint.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from fnmatch import fnmatchcase
from typing import Any

from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.standin.core.dispatch import drain
from agent.standin.core.responses import JSON, MakeRefused
from agent.standin.state import Cloud


@dataclass(frozen=True, slots=True)
class FaultyRequest:
    """One request that a fault applies to."""

    argument: str
    app: ASGIApp
    cloud: Cloud
    refuse: MakeRefused
    scope: Scope
    receive: Receive
    send: Send

    async def pass_on(self, send: Send | None = None) -> None:
        """Have the routes answer, through `send` where it is given."""
        await self.app(self.scope, self.receive, send or self.send)

    async def answer(self, response: Response) -> None:
        """Answer in place of the routes; what the client still sends is read first."""
        await drain(self.receive)
        await response(self.scope, self.receive, self.send)

    async def answer_error(
        self, status: int, message: str, headers: dict[str, str] | None = None
    ) -> None:
        """Answer with an error of the half that the path belongs to."""
        refused = self.refuse(self.scope["path"], status, message)
        refused.headers.update(headers or {})
        await self.answer(refused.response())


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault: its effect on an answer, and the argument that it takes.

    `times` is how many requests it applies to where none is written, None for no end. `check`
    raises ValueError on an argument that is not taken.
    """

    effect: Callable[[FaultyRequest], Awaitable[None]]
    help: str
    default: str = ""
    times: int | None = None
    check: Callable[[str], object] = str


_PIECES = 20  # of a slow body
_LONGEST_S = 3600.0  # that an argument in seconds may be
_DISCONNECT_S = 5.0  # to wait until the server notices a closed connection
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no time: close() sends RST


async def _latency(request: FaultyRequest) -> None:
    await asyncio.sleep(float(request.argument))
    await request.pass_on()


async def _slow_body(request: FaultyRequest) -> None:
    answer = await _buffer(request)
    head = answer.headers_for(len(answer.body))
    await request.send({"type": "http.response.start", "status": answer.status, "headers": head})
    size = max(1, -(-len(answer.body) // _PIECES))
    for at in range(0, len(answer.body), size):
        await asyncio.sleep(float(request.argument) / _PIECES)
        piece = answer.body[at : at + size]
        await request.send({"type": "http.response.body", "body": piece, "more_body": True})
    await request.send({"type": "http.response.body", "body": b"", "more_body": False})


async def _cut_body(request: FaultyRequest) -> None:
    answer = await _buffer(request)
    await _write_raw(request, answer, answer.body[: len(answer.body) // 2], len(answer.body))


async def _wrong_length(request: FaultyRequest) -> None:
    answer = await _buffer(request)
    length = max(0, len(answer.body) + int(request.argument))
    await _write_raw(request, answer, answer.body, length)


async def _too_many_requests(request: FaultyRequest) -> None:
    headers = {}
    form, _, amount = request.argument.partition(":")
    if form == "date":
        at = request.cloud.clock.time() + float(amount or 1)
        headers["Retry-After"] = formatdate(at, usegmt=True)
    elif form != "none":
        headers["Retry-After"] = request.argument
    await request.answer_error(429, "too many requests", headers)


async def _server_error(request: FaultyRequest) -> None:
    await request.answer_error(int(request.argument), "the service is not well")


async def _html_error(request: FaultyRequest) -> None:
    page = "<!doctype html><title>Bad gateway</title><h1>Bad gateway</h1>"
    await request.answer(Response(page, int(request.argument), media_type="text/html"))


async def _array_error(request: FaultyRequest) -> None:
    value = ["something", {"is": ["wrong"]}, 7, None]
    await request.answer(JSON(value, int(request.argument)))


async def _huge_json(request: FaultyRequest) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"data":["'
        for _ in range(int(request.argument)):
            yield b"x" * (1024 * 1024)
        yield b'"]}'

    await request.answer(StreamingResponse(pieces(), media_type="application/json"))


async def _deep_json(request: FaultyRequest) -> None:
    depth = int(request.argument)
    await request.answer(Response(b"[" * depth + b"]" * depth, media_type="application/json"))


async def _redirect(request: FaultyRequest) -> None:
    url = request.argument.rstrip("/") + request.scope["path"]
    query = request.scope["query_string"].decode("latin-1")
    headers = {"Location": f"{url}?{query}" if query else url}
    await request.answer(Response(status_code=307, headers=headers))


async def _connection_reset(request: FaultyRequest) -> None:
    if request.argument == "after":
        await _buffer(request)  # carried out, and not answered
    else:
        await drain(request.receive)
    transport = _transport(request)
    open_socket: socket.socket | None = transport.get_extra_info("socket")
    if open_socket is not None:
        with contextlib.suppress(OSError):
            open_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()
    await _until_disconnected(request)


@dataclass(slots=True)
class _BufferedAnswer:
    """An answer of the routes that was not sent."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def headers_for(self, length: int) -> list[tuple[bytes, bytes]]:
        """Return the headers with this Content-Length in place of their own."""
        others = [(name, value) for name, value in self.headers if name != b"content-length"]
        return [*others, (b"content-length", str(length).encode())]


async def _buffer(request: FaultyRequest) -> _BufferedAnswer:
    """Have the routes answer, and return their answer instead of sending it."""
    answer = _BufferedAnswer(500, [], b"")

    async def store(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status, answer.headers = message["status"], list(message.get("headers", []))
        else:
            answer.body += message.get("body", b"")

    await request.pass_on(store)
    return answer


async def _write_raw(
    request: FaultyRequest, answer: _BufferedAnswer, body: bytes, length: int
) -> None:
    """Write an answer that no HTTP library would, then close the connection."""
    lines = [f"HTTP/1.1 {answer.status} -".encode()]
    lines += [name + b": " + value for name, value in answer.headers_for(length)]
    transport = _transport(request)
    transport.write(b"\r\n".join([*lines, b"connection: close", b"", b""]) + body)
    transport.close()
    await _until_disconnected(request)


def _transport(request: FaultyRequest) -> asyncio.Transport:
    # uvicorn hands out a bound method of its request cycle, which knows the connection.
    transport: asyncio.Transport | None = getattr(
        getattr(request.send, "__self__", None), "transport", None
    )
    if transport is None:
        raise ConnectionResetError("this fault needs a socket below the application")
    return transport


async def _until_disconnected(request: FaultyRequest) -> None:
    """Wait until the server knows that the connection is closed: else it would answer 500."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DISCONNECT_S):
            while (await request.receive())["type"] != "http.disconnect":
                pass


def _check_seconds(text: str) -> None:
    if not 0 <= float(text) <= _LONGEST_S:
        raise ValueError(f"0 to {_LONGEST_S:g} seconds")


def _number(low: int, high: int) -> Callable[[str], None]:
    def check(text: str) -> None:
        if not low <= int(text) <= high:
            raise ValueError(f"a number from {low} to {high}")

    return check


def _check_header(text: str) -> None:
    if any(not 32 <= ord(character) < 127 for character in text):
        raise ValueError("a header holds printable ASCII")
    if text.startswith("date:"):
        float(text.removeprefix("date:"))


def _check_before_or_after(text: str) -> None:
    if text not in {"before", "after"}:
        raise ValueError("before or after the request was carried out")


_STATUS = _number(400, 599)

FAULTS = {
    "latency": FaultKind(
        _latency, "Wait ARG seconds before each answer.", "1", check=_check_seconds
    ),
    "slow-body": FaultKind(
        _slow_body, "Dribble a body over ARG seconds.", "5", check=_check_seconds
    ),
    "cut-body": FaultKind(_cut_body, "Close in the middle of a body."),
    "wrong-length": FaultKind(
        _wrong_length, "Announce ARG bytes more than there are; fewer if negative.", "10",
        check=_number(-10**9, 10**9),
    ),
    "too-many-requests": FaultKind(
        _too_many_requests, "429; Retry-After is ARG as it stands, `date:SECONDS`, or `none`.",
        "1", check=_check_header,
    ),
    "server-error": FaultKind(
        _server_error, "A burst of status ARG (503): three, or *TIMES.", "503", times=3,
        check=_STATUS,
    ),
    "html-error": FaultKind(_html_error, "Status ARG (502) with a page.", "502", check=_STATUS),
    "array-error": FaultKind(
        _array_error, "Status ARG (400) with a JSON array.", "400", check=_STATUS
    ),
    "huge-json": FaultKind(
        _huge_json, "A JSON answer of ARG MiB.", "100", check=_number(1, 10_000)
    ),
    "deep-json": FaultKind(
        _deep_json, "A JSON answer nested ARG deep.", "100000", check=_number(1, 10**7)
    ),
    "redirect": FaultKind(
        _redirect, "307 to the same path at the URL ARG.", "http://elsewhere.invalid",
        check=_check_header,
    ),
    "connection-reset": FaultKind(
        _connection_reset,
        "Reset the connection `before` or `after` the request was carried out.", "before",
        check=_check_before_or_after,
    ),
}  # fmt: skip


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
