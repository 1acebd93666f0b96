"""A serial port read and written by threads, where no event loop can wait for a port."""

import asyncio
import contextlib
import threading
from collections.abc import Callable

import serial

from at.protocol.errors import LinkLost
from at.transport.base import Receiver
from at.transport.serial import (
    NamedPort,
    PortHandle,
    drop_unsent,
    release_handle,
    termios_error,
    wait_until_sent,
)

_WAIT_S = 0.2
_CLOSE_S = 1.0
_ERRORS = (OSError, serial.SerialException, TypeError, termios_error())


class ThreadedSerialTransport(NamedPort):
    """One thread waits for bytes, another writes them; both report to the event loop."""

    _receiver: Receiver | None = None
    _closing = _lost = False
    _loop: asyncio.AbstractEventLoop
    _empty: asyncio.Event

    async def open(self, receiver: Receiver) -> None:
        """Open the port and start the threads. Raises PortError."""
        self._loop = asyncio.get_running_loop()
        self._empty = asyncio.Event()
        self._empty.set()
        self._writing: list[bytes] = []
        self._work = threading.Condition()
        self._handle = self._open_handle(timeout=_WAIT_S)
        self._receiver = receiver
        self._closing = self._lost = False
        self._threads = [
            threading.Thread(target=work, args=(self._handle,), daemon=True)
            for work in (self._read, self._write)
        ]
        for thread in self._threads:
            thread.start()

    def write(self, data: bytes) -> None:
        """Queue bytes for the writing thread. Raises LinkLost once closed."""
        if self._handle is None or self._lost:
            raise LinkLost(f"{self.name} is closed")
        self._empty.clear()
        with self._work:
            self._writing.append(data)
            self._work.notify()

    async def drain(self) -> None:
        """Wait until the port has taken what was written. Raises LinkLost."""
        await self._empty.wait()
        if self._handle is None or self._lost:
            raise LinkLost(f"{self.name} is closed")

    async def close(self) -> None:
        """Write what waits, stop the threads and close, within a bounded time."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        try:
            await wait_until_sent(handle, lambda: not self._empty.is_set(), _CLOSE_S)
        finally:
            # Of a close that is cancelled as well: no later one has the port.
            await asyncio.shield(self._loop.run_in_executor(None, self._end, handle))
            self._report_loss(None)

    def _end(self, handle: PortHandle) -> None:
        """Stop the threads and close; called in another thread."""
        with self._work:
            self._closing = True
            self._work.notify()
        with contextlib.suppress(*_ERRORS):
            handle.cancel_read()
            handle.cancel_write()
        for thread in self._threads:
            thread.join(_CLOSE_S)
        release_handle(handle)
        drop_unsent(handle)
        handle.close()

    def _read(self, handle: PortHandle) -> None:
        try:
            while not self._closing:
                data = handle.read(1)
                if data:
                    data += handle.read(handle.in_waiting)
                    self._report(self._push, data)
        except _ERRORS as error:
            if not self._closing:
                self._report(self._report_loss, error)

    def _write(self, handle: PortHandle) -> None:
        try:
            while True:
                with self._work:
                    self._work.wait_for(lambda: self._writing or self._closing)
                    if self._closing:
                        return
                    data = b"".join(self._writing)
                    self._writing.clear()
                while data and not self._closing:
                    try:
                        data = data[handle.write(data) or 0 :]
                    except serial.SerialTimeoutException:
                        continue  # the far end is slow: close() ends this
                self._report(self._drained)
        except _ERRORS as error:
            if not self._closing:
                self._report(self._report_loss, error)

    def _report(self, call: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended before us
            self._loop.call_soon_threadsafe(call, *arguments)

    def _push(self, data: bytes) -> None:
        if self._receiver is not None:
            self._receiver.data_received(data)

    def _drained(self) -> None:
        if not self._writing:
            self._empty.set()

    def _report_loss(self, reason: Exception | None) -> None:
        receiver, self._receiver = self._receiver, None
        self._lost = True
        self._empty.set()
        if receiver is not None:
            receiver.connection_lost(reason)
