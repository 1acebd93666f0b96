"""The process that holds a port, from /proc; where that hides it, as ModemManager's list says."""

from __future__ import annotations

import os
from pathlib import Path

from at.ports.modem_manager import modem_manager_holds

ANOTHER = "another user's process"
_PSEUDO_TERMINALS = range(136, 144)  # major numbers: Linux, Documentation/admin-guide/devices.txt


def holder_of(device: str, proc: Path = Path("/proc")) -> str:
    """Return the process that has `device` open: "NAME (PID n)", or "another user's process".

    Where /proc does not show it, ModemManager is asked for its list.
    """
    try:
        device_number = Path(device).stat().st_rdev
    except OSError:
        return ANOTHER
    hidden = ""
    for process in proc.glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            handles = list((process / "fd").iterdir())
        except OSError:
            if _process_name(process) == "ModemManager":
                hidden = process.name
            continue
        held = any(_is_device(handle, device_number) for handle in handles)
        if held and not _is_far_end(process, device_number):
            return shown_process(process)
    return _own_holder(device_number, proc) or (
        _modem_manager(device, hidden) if hidden else ANOTHER
    )


def shown_process(process: Path) -> str:
    """Return "NAME (PID n)" of a process by its folder in /proc."""
    return f"{_process_name(process)} (PID {process.name})"


def _modem_manager(device: str, pid: str) -> str:
    """Return ModemManager as the holder if its own list has the port: its files are hidden."""
    held = modem_manager_holds(device)
    if held is None:
        return f"ModemManager, perhaps (PID {pid})"
    return f"ModemManager (PID {pid})" if held else ANOTHER


def _own_holder(device_number: int, proc: Path) -> str:
    try:
        handles = list((proc / "self" / "fd").iterdir())
    except OSError:
        return ""
    held = any(_is_device(handle, device_number) for handle in handles)
    return f"this program (PID {os.getpid()})" if held else ""


def _is_device(handle: Path, device_number: int) -> bool:
    try:
        return handle.stat().st_rdev == device_number
    except OSError:
        return False


def _is_far_end(process: Path, terminal: int) -> bool:
    """Return whether a process is the far end of a pseudo-terminal, such as a virtual modem."""
    if os.major(terminal) not in _PSEUDO_TERMINALS:
        return False
    mark = f"tty-index:\t{os.minor(terminal)}\n"
    try:
        return any(mark in info.read_text() for info in (process / "fdinfo").iterdir())
    except OSError:
        return False


def _process_name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "a process"
