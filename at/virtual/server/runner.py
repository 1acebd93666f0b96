"""Runs a virtual modem on the event loop; its state is stored before a reply is sent."""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from at.virtual.kit import Fetch, Fetched
from at.virtual.modem import Port, VirtualModem
from at.virtual.options import OptionError, VirtualOptions
from at.virtual.server.tcp import is_loopback
from at.virtual.state import SavedState, StateFile

_LARGEST_ANSWER = 16 * 1024 * 1024
_REQUEST_TIMEOUT_S = 30.0
_STATUS = re.compile(rb"\S+ +([0-9]+)")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)", re.IGNORECASE)


async def send(fetch: Fetch) -> Fetched | None:
    """Return the answer of a loopback URL; None after any failure. HTTP/1.0, no redirects."""
    if not _is_fetched(fetch.url):
        return None
    parts = urlsplit(fetch.url)
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    method, headers = "GET", [f"Host: {parts.netloc}", "Connection: close", *fetch.headers]
    if fetch.body is not None:
        method = "POST"
        headers.append(f"Content-Length: {len(fetch.body)}")
    request = "\r\n".join([f"{method} {target} HTTP/1.0", *headers, "", ""])
    try:
        async with asyncio.timeout(_REQUEST_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            try:
                writer.write(request.encode("ascii", "strict") + (fetch.body or b""))
                answer = b""
                while len(answer) < _LARGEST_ANSWER and (piece := await reader.read(65536)):
                    answer += piece
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError):
        return None
    head, blank, body = answer.partition(b"\r\n\r\n")
    status, length = _STATUS.match(head), _LENGTH.search(head)
    if not blank or status is None or (length is not None and int(length[1]) != len(body)):
        return None
    return Fetched(int(status[1]), body)


def _is_fetched(url: str) -> bool:
    """Return whether this is a plain HTTP URL of this machine; no other is asked."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "http" and parts.hostname is not None and is_loopback(parts.hostname)


def make_modem(
    options: VirtualOptions, flash: StateFile | None = None, *, console_apart: bool = False
) -> VirtualModem:
    """Return a modem with the state of its file. Raises PortError, OptionError."""
    saved = None
    if flash is not None:
        options = replace(options, name=str(flash.path.resolve()))  # of a new kit
        saved = flash.load()
        if saved is not None:
            options = _as_stored(options, saved, flash.path)
    options = options.completed()
    if options.provisioning and not _is_fetched(options.provisioning):
        raise OptionError(
            f"no URL of a stand-in on this machine: {options.provisioning!r}",
            hint="`cellagent cloud serve --json` prints it as urls.provisioning",
        )
    if options.provisioning and options.dialect != "serial-modem":
        raise OptionError(
            f"{options.dialect} has no provisioning client",
            hint="`--model nrf9151 --dialect serial-modem` has one",
        )
    return VirtualModem(
        options,
        now=time.monotonic(),
        unix_time=time.time(),
        saved=saved or SavedState.fresh(options),
        console_apart=console_apart,
    )


def _as_stored(options: VirtualOptions, saved: SavedState, file: Path) -> VirtualOptions:
    """Return the options of a kit that was stored; firmware that they name is flashed to it.

    Raises OptionError where they name another kit.
    """
    for name in ("model", "imei", "uuid"):
        requested, stored = getattr(options.completed(), name), getattr(saved, name)
        if getattr(options, name) and requested != stored:
            raise OptionError(
                f"{file} is the state of another kit: its {name} is {stored}, not {requested}",
                hint="give each kit a state file of its own",
            )
    requested = replace(options, model=saved.model).completed()
    if requested.application:
        saved.app_version, saved.dialect = requested.application, requested.dialect
    elif options.firmware:
        saved.firmware = requested.firmware
    return replace(
        options,
        model=saved.model,
        imei=saved.imei,
        uuid=saved.uuid,
        firmware=saved.firmware,
        dialect=options.dialect or saved.dialect,
    )


class ModemRunner:
    """Moves bytes between a modem and its ports when they are due."""

    def __init__(self, modem: VirtualModem, flash: StateFile | None = None) -> None:
        self.modem = modem
        self._flash = flash
        self._senders: dict[Port, Callable[[bytes], None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._requests: set[asyncio.Task[None]] = set()

    def attach(self, port: Port, send: Callable[[bytes], None]) -> None:
        """Call `send` with the bytes that the kit prints on `port`."""
        self._senders[port] = send

    def start(self) -> None:
        """Start; write the state file at once."""
        self.flush()

    def receive(self, data: bytes, port: Port = Port.AT) -> None:
        """Pass bytes that arrived at a port to the kit."""
        self.modem.receive(data, time.monotonic(), port)
        self.flush()

    def crash(self) -> None:
        """Crash the application now."""
        self.have(self.modem.console.crash)

    def have(self, happen: Callable[[], None]) -> None:
        """Have something happen to the kit now, and send what comes of it."""
        self.modem.advance(time.monotonic())
        self.modem.kit.schedule(0.0, happen)
        self._tick()

    def flush(self) -> None:
        """Store changes, send what is due, and set the timer for the next action."""
        if self._flash is not None:
            where = self.modem.kit.position
            self.modem.kit.saved.position = (where.lat, where.lon)
            self._flash.store(self.modem.kit.saved)
        for port in Port:
            data = self.modem.data_to_send(port)
            send = self._senders.get(port)
            if data and send is not None:
                send(data)
        fetches = self.modem.kit.fetches
        while fetches:
            self._start(fetches.pop(0))
        self._set_timer()

    def _start(self, fetch: Fetch) -> None:
        work = self._loop.create_task(self._send(fetch))
        self._requests.add(work)
        work.add_done_callback(self._requests.discard)

    async def _send(self, fetch: Fetch) -> None:
        answer = await send(fetch)
        self.have(lambda: fetch.done(answer))

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.modem.next_at
        if due is not None:
            self._timer = self._loop.call_later(max(0.0, due - time.monotonic()), self._tick)

    def _tick(self) -> None:
        self.modem.advance(time.monotonic())
        self.flush()

    def stop(self) -> None:
        """Stop sending, and cancel requests."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._senders.clear()
        for work in self._requests:
            work.cancel()
