"""What a service tells systemd: ready, reloading, stopping, alive (sd_notify, NOTIFY_SOCKET)."""

from __future__ import annotations

import os
import socket
import time


def notify(state: str) -> None:
    """Send `state` ("READY=1") to systemd, if it is there; an "@" stands for an abstract name."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")) or not hasattr(socket, "AF_UNIX"):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as told:
        told.connect("\0" + address[1:] if address[0] == "@" else address)
        told.sendall(state.encode())


def reloading() -> str:
    """Return the state that announces a reload; READY=1 ends it."""
    return f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}"


def watchdog_s() -> float | None:
    """Return how often systemd wants a sign of life, None if it wants none."""
    wanted, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not wanted.isascii() or not wanted.isdigit() or pid not in {"", str(os.getpid())}:
        return None
    return int(wanted) / 1_000_000 or None
