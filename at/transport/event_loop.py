"""A serial port that is read and written on the event loop."""

import asyncio
import contextlib
import errno
import os
from typing import Any

import serial_asyncio

from at.protocol.errors import LinkLost
from at.transport.base import Receiver
from at.transport.connection import Connection
from at.transport.serial import NamedPort, drop_unsent, release_handle, wait_until_sent

_CLOSE_S = 0.5
_READ_BYTES = 4096  # what a terminal holds; more would be allocated for nothing
# A flood: this many reads in a row, each within _RAPID_S of the one before, and nothing written
# for _REPLY_S. A wake-up then costs more than the few bytes it brings: the port is polled every
# _POLL_S, 1 kB at 1 Mbaud, until it is empty. A write ends the polling at once, for its reply.
_RAPID_READS = 4
_RAPID_S = 0.004
_REPLY_S = 0.1
_POLL_S = 0.008


class SerialTransport(NamedPort):
    """A serial port on the event loop."""

    _protocol: Connection | None = None
    _port: "_Port"

    async def open(self, receiver: Receiver) -> None:
        """Open the port; push the bytes that wait and those that arrive. Raises PortError."""
        self._handle = self._open_handle()
        self._protocol = Connection(receiver)
        self._port = _Port(asyncio.get_running_loop(), self._protocol, self._handle)

    def write(self, data: bytes) -> None:
        """Write at once what the driver takes; the rest when it has room. Raises LinkLost."""
        handle, protocol = self._handle, self._protocol
        if handle is None or protocol is None or protocol.closed.is_set():
            raise LinkLost(f"{self.name} is closed")
        assert handle.fd is not None
        self._port.expect_reply()
        if self._port.is_empty():
            # pyserial-asyncio would wait a turn of the loop before its first try.
            try:
                taken = os.write(handle.fd, data)
            except (BlockingIOError, InterruptedError):
                taken = 0
            except OSError as error:
                self._port._abort(error)  # the receiver is told, as of an end that is read
                return
            if taken == len(data):
                return
            data = data[taken:]
        self._port.write(data)

    async def drain(self) -> None:
        """Wait until most of what was written has left for the driver. Raises LinkLost."""
        protocol = self._protocol
        if protocol is not None:
            await protocol.writable.wait()
        if protocol is None or protocol.closed.is_set():
            raise LinkLost(f"{self.name} is closed")

    async def close(self) -> None:
        """Write what waits, and close; within half a second or so if the far end does not read."""
        handle, self._handle = self._handle, None
        protocol, self._protocol = self._protocol, None
        if handle is None or protocol is None:
            return
        release_handle(handle)
        try:
            if not protocol.closed.is_set():
                await wait_until_sent(handle, lambda: not self._port.is_empty(), _CLOSE_S)
        finally:
            self._port.abort()  # of a close that is cancelled as well: no later one has the port
        await protocol.closed.wait()


class _Port(serial_asyncio.SerialTransport):  # type: ignore[misc]
    """pyserial-asyncio's transport, with four differences.

    It reports its end once, and for each way in which a port can be lost; it does not wait for the
    far end on the loop's thread (tcdrain); and it reads all available bytes with one call.
    """

    _serial: Any
    _loop: asyncio.AbstractEventLoop
    _over = False
    _read_at = _written_at = 0.0  # on the loop's clock
    _rapid = 0  # reads in a row
    _polling: asyncio.TimerHandle | None = None

    def is_empty(self) -> bool:
        """Return whether no bytes wait to be written."""
        return not self._write_buffer

    def expect_reply(self) -> None:
        """Stop polling: something is written, and its reply is to be read at once."""
        self._written_at = self._loop.time()
        if self._polling is not None:
            self._stop_polling()

    def _read_ready(self) -> None:
        data = self._fetch()
        if data is None:
            return
        if not data:
            self._abort(OSError("the far end hung up"))
            return
        now = self._loop.time()
        self._rapid = self._rapid + 1 if now - self._read_at < _RAPID_S else 0
        self._read_at = now
        if self._rapid >= _RAPID_READS and now - self._written_at > _REPLY_S and not self._over:
            self._remove_reader()
            self._polling = self._loop.call_later(_POLL_S, self._poll)

    def _poll(self) -> None:
        if self._over or self._serial is None:
            return
        if self._fetch():
            if self._polling is not None and not self._over:  # nothing was written meanwhile
                self._polling = self._loop.call_later(_POLL_S, self._poll)
        elif self._polling is not None:
            self._stop_polling()  # only the reader tells an idle far end from one that hung up

    def _stop_polling(self) -> None:
        timer, self._polling = self._polling, None
        self._rapid = 0
        if timer is not None:
            timer.cancel()
        if not self._over and self._serial is not None:
            self._ensure_reader()

    def _fetch(self) -> bytes | None:
        """Deliver the available bytes and return them: b"" for none or the end, None on error."""
        try:
            data = os.read(self._serial.fd, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            self._abort(error)
            return None
        if data:
            self._protocol.data_received(data)
        return data

    def _write_ready(self) -> None:
        try:
            super()._write_ready()
        except (OSError, AttributeError) as error:
            self._abort(error if isinstance(error, OSError) else None)

    def _fatal_error(self, exc: Exception, message: str = "") -> None:
        del message
        self._abort(exc)

    def _abort(self, exc: Exception | None) -> None:
        if self._serial is not None and not self._over:
            self._over = True
            gone = isinstance(exc, OSError) and exc.errno == errno.EIO  # a terminal's word for it
            super()._abort(OSError("the far end hung up") if gone else exc)

    def _call_connection_lost(self, exc: Exception | None) -> None:
        if self._serial is None:
            return
        self._over = True
        port, self._serial = self._serial, None
        drop_unsent(port)
        with contextlib.suppress(OSError):
            port.close()
        self._write_buffer.clear()
        self._protocol.connection_lost(exc)
