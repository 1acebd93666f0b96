"""Why a port cannot be opened: the process that holds it, the group that may open it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from at.ports.holders import ANOTHER, holder_of
from at.protocol.errors import PortBusy, PortError, PortForbidden, PortNotFound


def opening_error(name: str, device: str, error: Exception) -> PortError:
    """Return the PortError for the error that opening `device` raised."""
    code = getattr(error, "errno", None)
    shown = name if name == device else f"{name} ({device})"
    if code in {errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK} or "exclusively lock" in str(error):
        holder = holder_of(device)
        return PortBusy(
            f"{shown} is in use by {holder}",
            hint="close that program" if "ModemManager" not in holder else _modem_manager_hint(),
            holder=holder,
        )
    if code in {errno.EACCES, errno.EPERM} or "PermissionError" in str(error):
        group = group_of(device)
        if os.name == "nt":
            # Windows says "access denied" for a port that another program has open.
            return PortBusy(f"{shown} is in use or forbidden", holder=ANOTHER)
        return PortForbidden(
            f"no permission to open {shown}",
            hint=f"join the group that may: `sudo usermod -aG {group} $USER`, then log in again"
            if group
            else "ask the administrator for access",
            group=group,
        )
    if code in {errno.ENOENT, errno.ENODEV, errno.ENXIO} or "FileNotFoundError" in str(error):
        return PortNotFound(
            f"there is no port {shown}", hint="is it plugged in? `cellagent ports` lists them"
        )
    return PortError(f"{shown} cannot be opened: {error}")


def group_of(device: str) -> str:
    """Return the name of the group that owns `device`, "" where there is none."""
    try:
        import grp

        return grp.getgrgid(Path(device).stat().st_gid).gr_name
    except (ImportError, OSError, KeyError):
        return ""


def _modem_manager_hint() -> str:
    return "`sudo systemctl stop ModemManager`, or the udev rule of `cellagent run --print-udev`"
