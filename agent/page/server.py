"""The server of the page: addresses, the stream of changes, and how it listens.

It runs in the event loop of the caller, and reads what it shows over the control socket as any
other program would: `run --page` and `cellagent page` are the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from agent.config.profile import PageSettings
from agent.config.urls import host_and_port, is_loopback
from agent.daemon.control.socket import control_socket_of
from agent.errors import ConfigError, RefusedByRule, UsageError
from agent.files.paths import named_path
from agent.listening import BoundedListener
from agent.page.access import Guard, Links, signing_key
from agent.page.difference import Seen
from agent.page.feed import AgentFeed
from agent.page.markup import tag
from agent.page.view import Surroundings, View, plain_page, whole_page
from agent.page.views import Subject, Unknown, Views
from agent.page.words import command
from agent.tasks import cancel_and_wait, wait_for_event

if TYPE_CHECKING:
    from agent.page.bench_feed import RunningBench

PUSH_S = 0.1
"""The shortest time between two differences for one browser."""
CLOCK_S = 5.0
"""The longest: a page that is live shows that it is."""
_ACCEPTED_AT_ONCE = 16
_STOP_S = 1
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2; of its own uvicorn had, up to a version, the broken ones alone."""
Word = Annotated[str, msgspec.Meta(max_length=256)]
_TYPES = {".css": "text/css", ".csv": "text/csv", ".js": "text/javascript", ".svg": "image/svg+xml"}


class ScanAct(msgspec.Struct, forbid_unknown_fields=True):
    """A line of the scan field."""

    line: Word

    async def do(self, running: RunningBench) -> None:
        """Give it to the bench."""
        await running.scan(self.line)


class OrderAct(msgspec.Struct, forbid_unknown_fields=True):
    """Who is at work, and on which lot."""

    operator: Word
    lot: Word

    async def do(self, running: RunningBench) -> None:
        """Have it recorded with each run from now on."""
        running.set_order(self.operator, self.lot)


_ACTS: dict[str, type[ScanAct | OrderAct]] = {"/bench/scan": ScanAct, "/bench/order": OrderAct}
_LONGEST_ACT = 4096  # bytes


async def _bounded(request: Request) -> bytes:
    """Return what was sent, not much more than _LONGEST_ACT bytes of it."""
    sent = b""
    async for chunk in request.stream():
        sent += chunk
        if len(sent) > _LONGEST_ACT:
            break
    return sent[:_LONGEST_ACT]


@dataclass(frozen=True, slots=True)
class ServedPage:
    """A page that is served: where, and how one gets in."""

    url: str
    links: Links
    end: Callable[[], None]
    """Ends every stream."""
    control: bool = False

    def link(self) -> str:
        """Return a link that works once, for a minute."""
        act = f"#act={self.links.act_token()}" if self.control else ""
        return f"{self.url}/?token={self.links.new()}{act}"


@contextlib.asynccontextmanager
async def serving(
    settings: PageSettings, state_dir: Path, subject: Subject, chosen_by: str
) -> AsyncIterator[ServedPage]:
    """Serve the page of a profile's agent and bench until the block ends.

    `chosen_by` is the option, or the command, that names another address. Raises UsageError where
    this one cannot be listened on, RefusedByRule, ConfigError.
    """
    host, port = host_and_port(settings.listen, "page.listen")
    names = _certificate_names(settings)
    if not names and not is_loopback(host):
        raise RefusedByRule(
            f"page.listen: {host} is reached from other machines, and nothing is encrypted",
            hint="listen on 127.0.0.1, or `cellagent config set page.certificate_file FILE`",
        )
    require_certificate(settings)
    listening = _listen(host, port, chosen_by)
    with contextlib.closing(listening):
        port = listening.getsockname()[1]
        scheme = "https" if names else "http"
        hosts = [_host_header(name, port) for name in (*names, *_own_names(host))]
        control_socket = control_socket_of(state_dir, subject.profile)
        feed = AgentFeed(control_socket)
        links = Links(signing_key(state_dir / "page.key"))
        views = Views(subject, feed, control_socket)
        page = _Page(views)
        app = Guard(page.app(), links, hosts, scheme, page.refused)
        server = _Server(_config(app, settings))
        works = [
            asyncio.ensure_future(views.run()),
            asyncio.ensure_future(server.serve(sockets=[listening])),
        ]
        try:
            yield ServedPage(f"{scheme}://{hosts[0]}", links, page.end, subject.control)
        finally:
            page.end()
            server.should_exit = True
            try:
                await views.close()
                await asyncio.wait(works[1:], timeout=2 * _STOP_S)
            finally:
                # Also where this is cancelled: its socket is closed, and the number another file's.
                for each in getattr(server, "servers", ()):
                    each.close()
                await cancel_and_wait(*works)


class _Page:
    """The addresses of the page."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._ended = False

    def app(self) -> Starlette:
        """Return the application."""
        routes = [
            Route("/", self._home),
            Route("/events", self._events),
            Route("/static/{name}", _static),
            *(Route(path, self._act, methods=["POST"]) for path in _ACTS),
            Route("/{path:path}", self._show),
        ]
        return Starlette(routes=routes)

    def end(self) -> None:
        """End every stream."""
        self._ended = True
        self._views.wake()

    def refused(self) -> Response:
        """Return the page for a browser without a cookie."""
        again = "The page is shown to who opened a link. One works once, for a minute; a new one:"
        return HTMLResponse(
            plain_page(
                "Open a link first",
                tag("p", again),
                tag("p", command("cellagent page")),
                tag("p", "A link was just opened? ", tag("a", "Go on to the page", href="/kits")),
            ),
            401,
        )

    async def _home(self, _request: Request) -> Response:
        return RedirectResponse(self._views.home, 303)

    async def _act(self, request: Request) -> Response:
        """Do what a person asks for; what became of it is shown by the stream."""
        running = self._views.running
        if running is None or not self._views.control:
            return PlainTextResponse("this page acts on nothing\n", 403)
        try:
            asked = msgspec.json.decode(await _bounded(request), type=_ACTS[request.url.path])
        except msgspec.DecodeError as error:
            return PlainTextResponse(f"{error}\n", 400)
        await asked.do(running)
        self._views.wake()
        return Response(status_code=204)

    async def _show(self, request: Request) -> Response:
        # Not the path of its URL, which ends at a ? or # that is part of a kit's name.
        path, query = str(request.scope["path"]), dict(request.query_params)
        try:
            if (file := await self._views.file(path, query)) is not None:
                kind = _TYPES.get(Path(path).suffix, "text/plain")
                kept = {"Content-Disposition": f"attachment; filename*=UTF-8''{_file_name(path)}"}
                return Response(file, media_type=f"{kind}; charset=utf-8", headers=kept)
            view = await self._views.first_view(path, query)
        except Unknown as error:
            kits = tag("p", tag("a", "To the kits", href="/kits"))
            title = "Not here" if error.code == 404 else "Not now"
            return HTMLResponse(plain_page(title, tag("p", str(error)), kits), error.code)
        asked = request.scope["query_string"].decode("ascii", "replace")
        address = quote(path) + (f"?{asked}" if asked else "")
        around = Surroundings(
            address, self._views.about, self._views.control, *self._views.live(path)
        )
        return HTMLResponse(whole_page(view, around, self._views.keys(path)))

    async def _events(self, request: Request) -> Response:
        query = dict(request.query_params)
        path = query.pop("path", "/kits")
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(
            self._stream(path, query), media_type="text/event-stream", headers=headers
        )

    async def _stream(self, path: str, query: dict[str, str]) -> AsyncIterator[bytes]:
        """Yield what changes. Who reads slowly is asked for nothing: the next one is the newest."""
        seen = Seen()
        while not self._ended:
            change = self._views.next_change  # of before the view: no later one is missed
            try:
                view = self._views.view(path, query)
            except Unknown:
                return
            shown, gone = self._views.live(path)
            view = View(
                view.headline, {**view.parts, "live": shown, "gone": gone}, view.lists, view.says
            )  # fmt: skip
            found = seen.difference(view, asyncio.get_running_loop().time())
            yield b"data: " + msgspec.json.encode(found) + b"\n\n"
            await wait_for_event(change, CLOCK_S)
            await asyncio.sleep(PUSH_S)


def _file_name(path: str) -> str:
    """Return the name of a download as RFC 8187 writes it; a kit's file begins with its name."""
    of, _, name = path.lstrip("/").partition("/")[2].rpartition("/")
    return quote(f"{of}-{name}" if of else name, safe="")


async def _static(request: Request) -> Response:
    # What is there is compared with the name: one that is asked for makes no path.
    there = {file.name: file for file in (files("agent.page") / "static").iterdir()}
    file = there.get(request.path_params["name"])
    if file is None or (kind := _TYPES.get(Path(file.name).suffix)) is None:
        return Response("not here\n", 404)
    return Response(file.read_bytes(), media_type=f"{kind}; charset=utf-8")


class _Server(uvicorn.Server):
    """A server that leaves the signals to the program around it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: Guard, settings: PageSettings) -> uvicorn.Config:
    certificate = named_path(settings.certificate_file) if settings.certificate_file else None
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",  # its own words of start and end say nothing that ours do not
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        backlog=_ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=_STOP_S,
        ssl_certfile=certificate,
        ssl_ciphers=_CIPHERS,
    )
    config.load()
    if config.ssl is not None:  # the system's settings may allow what is broken
        config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
    return config


def _listen(host: str, port: int, chosen_by: str) -> socket.socket:
    """Return a listening socket. Raises UsageError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # IPPROTO_TCP is explicit: without it asyncio does not take an accepted connection for TCP.
    listening = BoundedListener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if sys.platform != "win32":  # elsewhere it would let two programs have one port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise UsageError(
            f"the page cannot be served at {host}:{port}: {error.strerror}",
            hint=f"`{chosen_by} 127.0.0.1:0` takes a free port",
        ) from error
    return listening


def _own_names(host: str) -> list[str]:
    """Return the names by which a loopback address is called."""
    return [host, "localhost"] if is_loopback(host) and host != "localhost" else [host]


def _host_header(name: str, port: int) -> str:
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def require_certificate(settings: PageSettings) -> None:
    """Raise ConfigError unless the certificate of the settings, if any, can be used."""
    if not settings.certificate_file:
        return
    _certificate_names(settings)
    try:
        path = named_path(settings.certificate_file)
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path)
    except OSError as error:  # of TLS, too
        raise ConfigError(
            f"page.certificate_file: {settings.certificate_file} cannot be used: {error}",
            hint="it holds the certificate, its chain and its key, in PEM",
        ) from error


def _certificate_names(settings: PageSettings) -> list[str]:
    """Return the names in the certificate of the settings, none without one. Raises ConfigError."""
    if not settings.certificate_file:
        return []
    from cryptography import x509

    path = named_path(settings.certificate_file)
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound) as error:
        raise ConfigError(
            f"page.certificate_file: {path} is no certificate with names in it: {error}"
        ) from error
    found = [
        *(name for name in names.get_values_for_type(x509.DNSName) if "*" not in name),
        *map(str, names.get_values_for_type(x509.IPAddress)),
    ]
    if not found:
        raise ConfigError(
            f"page.certificate_file: {path} names no host",
            hint="use one that has the name of this host itself: one with a * is of many hosts",
        )
    return found
