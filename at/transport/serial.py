"""Opens a serial port for this process alone."""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from functools import partial

import serial

from at.ports.holders import opening_error
from at.ports.usb import Listing, resolve, system_ports

_LOOK_S = 0.005


def termios_error() -> type[Exception]:
    """Return what modem-line and buffer calls raise besides OSError."""
    if sys.platform == "win32":
        return OSError
    import termios

    return termios.error


class PortHandle(serial.Serial):
    """A serial port that keeps bytes received before it was opened: a boot banner, a notice."""

    fd: int | None

    def _reset_input_buffer(self) -> None:
        """Keep the bytes: pyserial's open() would throw them away."""


def open_handle(
    name: str,
    *,
    baud: int,
    rtscts: bool | None,
    timeout: float = 0,
    listing: Listing = system_ports,
) -> PortHandle:
    """Open a port for this process alone. Raises PortNotFound, PortBusy, PortForbidden.

    flock keeps out other programs that ask (pyserial, picocom), TIOCEXCL those that do not.
    """
    device, flow = resolve(name, rtscts, listing)
    handle = PortHandle()
    handle.port = device
    handle.baudrate = baud
    handle.rtscts = flow
    handle.timeout = timeout
    handle.write_timeout = timeout
    if sys.platform != "win32":
        handle.exclusive = True
    try:
        handle.open()
        if sys.platform != "win32":
            import fcntl
            import termios

            fcntl.ioctl(handle.fileno(), termios.TIOCEXCL)
    except (OSError, ValueError, termios_error()) as error:
        handle.close()
        raise opening_error(name, device, error) from error
    return handle


class NamedPort:
    """A port of this system by its name, and how it is to be opened."""

    def __init__(
        self,
        name: str,
        *,
        baud: int = 115200,
        rtscts: bool | None = None,
        listing: Listing = system_ports,
    ) -> None:
        self.name = name
        self._handle: PortHandle | None = None
        self._open_handle = partial(open_handle, name, baud=baud, rtscts=rtscts, listing=listing)


def release_handle(handle: PortHandle) -> None:
    """Release both locks, also of a process that was forked meanwhile; the port may be gone."""
    if sys.platform != "win32" and handle.is_open:
        import fcntl
        import termios

        fcntl.flock(handle.fileno(), fcntl.LOCK_UN)
        with contextlib.suppress(OSError, termios.error):  # an unplugged port excludes nobody
            fcntl.ioctl(handle.fileno(), termios.TIOCNXCL)


async def wait_until_sent(handle: PortHandle, waits: Callable[[], bool], seconds: float) -> None:
    """Wait until nothing `waits` to be written, and the driver has sent all; `seconds` at most."""
    with contextlib.suppress(TimeoutError, OSError, termios_error()):
        async with asyncio.timeout(seconds):
            while waits() or handle.out_waiting:  # noqa: ASYNC110 - a driver tells nobody
                await asyncio.sleep(_LOOK_S)


def drop_unsent(handle: PortHandle) -> None:
    """Drop what the driver has not sent: to close the port would wait for a stuck far end."""
    with contextlib.suppress(OSError, termios_error()):
        # Of a terminal, what the far end has still to read would go as well.
        if handle.out_waiting:
            handle.reset_output_buffer()
