"""The kinds of fault, with their effects on an answer and the arguments that they take."""

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate

from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
class Argument:
    """What a kind of fault takes as ARG: in words, how it is checked, and the one by default."""

    words: str
    accepts: Callable[[str], bool]
    default: str


Effect = Callable[[FaultyRequest], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault: its effect on an answer, and the argument that it takes, None for none.

    `effect` None is applied elsewhere. `times` is how many requests it applies to where none is
    written, None for no end.
    """

    effect: Effect | None
    help: str
    argument: Argument | None = None
    times: int | None = None


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

    async def store(message: Message) -> None:
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


def _number(low: int, high: int, what: str, default: str) -> Argument:
    def accepts(text: str) -> bool:
        return bool(_WHOLE.fullmatch(text)) and low <= int(text) <= high

    return Argument(f"{what}, {low} to {high}", accepts, default)


def _seconds(default: str) -> Argument:
    def accepts(text: str) -> bool:
        return bool(_DECIMAL.fullmatch(text)) and float(text) <= _LONGEST_S

    return Argument(f"seconds, 0 to {_LONGEST_S:g}", accepts, default)


def _status(default: str) -> Argument:
    return _number(400, 599, "a status", default)


def _header(words: str, default: str) -> Argument:
    def accepts(text: str) -> bool:
        form, _, amount = text.partition(":")
        if form == "date" and not _WHOLE.fullmatch(amount):
            return False
        return all(32 <= ord(character) < 127 for character in text)

    return Argument(words, accepts, default)


_WHOLE = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?|\.[0-9]{1,9}", re.ASCII)

WRONG_CERTIFICATE = "tls-wrong-certificate"
RATE_LIMIT = "rate-limit"
FAULTS = {
    "latency": FaultKind(_latency, "Wait ARG seconds before each answer.", _seconds("1")),
    "slow-body": FaultKind(_slow_body, "Dribble a body over ARG seconds.", _seconds("5")),
    "cut-body": FaultKind(_cut_body, "Close in the middle of a body."),
    "wrong-length": FaultKind(
        _wrong_length, "Announce ARG bytes more than there are; fewer if negative.",
        _number(-(10**8), 10**8, "bytes", "10"),
    ),
    "too-many-requests": FaultKind(
        _too_many_requests, "429; Retry-After is ARG as it stands, `date:SECONDS`, or `none`.",
        _header("printable ASCII, such as 30, date:30 or none", "1"),
    ),
    "server-error": FaultKind(
        _server_error, "A burst of status ARG (503): three, or *TIMES.", _status("503"), times=3
    ),
    "html-error": FaultKind(_html_error, "Status ARG (502) with a page.", _status("502")),
    "array-error": FaultKind(
        _array_error, "Status ARG (400) with a JSON array.", _status("400")
    ),
    "huge-json": FaultKind(
        _huge_json, "A JSON answer of ARG MiB.", _number(1, 10_000, "MiB", "100")
    ),
    "deep-json": FaultKind(
        _deep_json, "A JSON answer nested ARG deep.", _number(1, 10**7, "a depth", "100000")
    ),
    "redirect": FaultKind(
        _redirect, "307 to the same path at the URL ARG.",
        _header("a URL in printable ASCII", "http://elsewhere.invalid"),
    ),
    "connection-reset": FaultKind(
        _connection_reset,
        "Reset the connection `before` or `after` the request was carried out.",
        Argument("before or after", {"before", "after"}.__contains__, "before"),
    ),
    # Applied where connections are made (`serve`).
    WRONG_CERTIFICATE: FaultKind(
        None, "New connections are TLS, with a certificate of another name."
    ),
    # Applied where devices push (`observability.rate_limits`).
    RATE_LIMIT: FaultKind(
        None, "Per device: ARG pushes of a kind an hour, or the suggested figures.",
        _number(0, 10**8, "pushes an hour", ""),
    ),
}  # fmt: skip
