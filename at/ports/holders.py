"""Why a port cannot be opened, and which process holds it.

The holder is found in /proc; where that hides it, in ModemManager's list.
"""

import errno
import os
import re
import sys
import threading
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path, PurePath

from at.protocol.errors import PortBusy, PortError, PortForbidden, PortNotFound

ANOTHER = "another user's process"
_PID = re.compile(r"\(PID (\d+)\)")


def opening_error(name: str, device: str, error: Exception) -> PortError:
    """Return the PortError for the error that opening `device` raised."""
    code = getattr(error, "errno", None)
    shown = name if name == device else f"{name} ({device})"
    if code in {errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK} or "exclusively lock" in str(error):
        holder = holder_of(device)
        return PortBusy(f"{shown} is in use by {holder}", hint=_way_out(holder), holder=holder)
    if code in {errno.EACCES, errno.EPERM} or "PermissionError" in str(error):
        if sys.platform == "win32":
            # Windows says "access denied" for a port that another program has open.
            return PortBusy(f"{shown} is in use or forbidden", holder=ANOTHER)
        group = group_of(device)
        return PortForbidden(
            f"no permission to open {shown}", hint=_way_in(device, group), group=group
        )
    if code in {errno.ENOENT, errno.ENODEV, errno.ENXIO} or "FileNotFoundError" in str(error):
        # What pyserial calls socket:// or rfc2217:// is a port of the network, too.
        _, url, address = name.partition("://")
        if not url and re.fullmatch(r"[^/\s:]+:\d+", name):
            address = name
        near = [f"tcp://{address}"] if address else get_close_matches(name, _like(name), 1, 0.8)
        hint = f"did you mean {near[0]!r}?" if near else "is it plugged in?"
        return PortNotFound(
            f"there is no port {shown}", hint=f"{hint} `cellagent ports` lists them"
        )
    # Where the driver asks for the speed, its error has the number in words alone.
    if code == errno.ENOTTY or f"({errno.ENOTTY}, " in str(error):
        hint = f"did you mean {f'replay:{name}'!r}? " if Path(device).is_file() else ""
        return PortError(f"{shown} is no serial port", hint=f"{hint}`cellagent ports` lists them")
    why = os.strerror(code) if code else error  # pyserial's own text has it twice
    return PortError(f"{shown} cannot be opened: {why}", hint="`cellagent ports` lists them")


_OF_A_KIND = re.compile(r"(/dev/tty(?:ACM|USB|AMA|S)|COM)\d+")


def _like(name: str) -> list[str]:
    """Return the names of ports that may have been meant: of its own kind where that is one."""
    from at.ports.usb import system_ports

    kind = _OF_A_KIND.fullmatch(name)
    names = ["virtual:", *(port.device for port in system_ports())]
    return [each for each in names if kind is None or each.startswith(kind[1])]


_SERIAL_GROUPS = ("dialout", "uucp", "plugdev")  # Debian and Fedora; Arch; older Debian
_ADMINISTRATORS = {"root", "wheel", "sudo", "admin", "adm", "disk", "kmem", "mem", "shadow"}
_READ_AND_WRITE = 0o060


def group_of(device: str) -> str:
    """Return the group whose members may open `device`, "" where none may.

    A group of administrators counts as none: nobody should join it for the sake of a port.
    """
    if sys.platform == "win32":
        return ""
    import grp

    try:
        status = Path(device).stat()
        group = grp.getgrgid(status.st_gid).gr_name
    except (OSError, KeyError):
        return ""
    may = status.st_mode & _READ_AND_WRITE == _READ_AND_WRITE
    return group if may and group not in _ADMINISTRATORS else ""


def _way_in(device: str, group: str) -> str:
    """Return what helps a user who may not open `device`, which members of `group` may open."""
    if sys.platform == "win32" or not group:
        return _udev_hint(device)
    import grp
    import pwd

    entry = grp.getgrnam(group)
    if entry.gr_gid in {os.getegid(), *os.getgroups()}:
        return (
            f"you are in its group, {group}, already: a container, an access list or a security "
            "module keeps you out; give the port to the container, or ask who set that up"
        )
    try:
        user = pwd.getpwuid(os.geteuid())
    except KeyError:
        return (
            f"this user has no name here, as in a container: start that with `--group-add {group}`"
        )
    if user.pw_name in entry.gr_mem or user.pw_gid == entry.gr_gid:
        return f"you joined its group, {group}, after you logged in: log out and in again"
    return f"join the group that may: `sudo usermod -aG {group} $USER`, then log in again"


def _udev_hint(device: str) -> str:
    if sys.platform == "win32":
        return ""
    import grp

    known = {entry.gr_name for entry in grp.getgrall()}
    group = next((name for name in _SERIAL_GROUPS if name in known), _SERIAL_GROUPS[0])
    rule = f'KERNEL=="{PurePath(device).name}", GROUP="{group}", MODE="0660"'
    return (
        "only administrators may open it; a udev rule gives it to a group that you may join: "
        f"`echo '{rule}' | sudo tee /etc/udev/rules.d/61-serial-port.rules && "
        "sudo udevadm control --reload && sudo udevadm trigger && "
        f"sudo usermod -aG {group} $USER`, then log in again"
    )


def _way_out(holder: str) -> str:
    """Return what frees a port that somebody has, to be pasted where that is safe."""
    if "ModemManager" in holder:
        return (
            "`sudo systemctl stop ModemManager`, or the udev rule of `cellagent run --print-udev`"
        )
    process = _PID.search(holder)
    if process is None:
        return "close that program"
    if process[1] == str(os.getpid()):
        return "the port was opened under another of its names: name it once"
    # It may be a station, whose run of a tray has more ports than this one.
    return f"wait until it is done, or close that program: `kill {process[1]}` ends all its work"


def holder_of(device: str, proc: Path = Path("/proc")) -> str:
    """Return the process that has `device` open: "NAME (PID n)", or "another user's process".

    Where /proc does not show it, ModemManager is asked for its list.
    """
    if sys.platform == "win32":
        return ANOTHER
    try:
        device_number = Path(device).stat().st_rdev
    except OSError:
        return ANOTHER
    hidden = ""
    for process in proc.glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            held = _has_open(process, device_number)
        except OSError:
            if _process_name(process) == "ModemManager":
                hidden = process.name
            continue
        if held and not _is_far_end(process, device_number):
            return shown_process(process)
    with suppress(OSError):
        if _has_open(proc / "self", device_number):
            return f"this program (PID {os.getpid()})"
    return _modem_manager(device, hidden) if hidden else ANOTHER


def shown_process(process: Path) -> str:
    """Return "NAME (PID n)" of a process by its folder in /proc."""
    return f"{_process_name(process)} (PID {process.name})"


def _has_open(process: Path, device_number: int) -> bool:
    """Return whether a process has a device open. Raises OSError where that is hidden."""
    return any(_is_device(handle, device_number) for handle in (process / "fd").iterdir())


def _is_device(handle: Path, device_number: int) -> bool:
    try:
        return sys.platform != "win32" and handle.stat().st_rdev == device_number
    except OSError:
        return False


_PSEUDO_TERMINALS = range(136, 144)  # major numbers: Linux, Documentation/admin-guide/devices.txt


def _is_far_end(process: Path, terminal: int) -> bool:
    """Return whether a process is the far end of a pseudo-terminal, such as a virtual modem."""
    if sys.platform == "win32" or os.major(terminal) not in _PSEUDO_TERMINALS:
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


_SERVICE = "org.freedesktop.ModemManager1"
_ROOT = "/org/freedesktop/ModemManager1"
_MODEM = f"{_SERVICE}.Modem"
_OBJECTS = "a{oa{sa{sv}}}"
_ANSWER_S = 1.0


def _modem_manager(device: str, pid: str) -> str:
    """Return ModemManager as the holder if its own list has the port: its files are hidden."""
    held = modem_manager_holds(device)
    if held is None:
        return f"ModemManager, perhaps (PID {pid})"
    return f"ModemManager (PID {pid})" if held else ANOTHER


def modem_manager_holds(device: str) -> bool | None:
    """Return whether ModemManager holds `device` as a modem's port; None where it does not answer.

    Waits a second at most. Never starts a ModemManager that does not run.
    """
    import asyncio  # a command that only locks a file starts without it

    answers: list[frozenset[str]] = []

    def work() -> None:
        names = asyncio.run(_port_names())
        if names is not None:
            answers.append(names)

    # In its own thread: the caller is an event loop that opens a port.
    thread = threading.Thread(target=work, name="modem-manager", daemon=True)
    thread.start()
    thread.join(2 * _ANSWER_S)
    return PurePath(device).name in answers[0] if answers else None


async def _port_names() -> frozenset[str] | None:
    import asyncio

    try:
        from dbus_fast import BusType, Message, MessageFlag, MessageType
        from dbus_fast.aio import MessageBus
        from dbus_fast.errors import DBusFastError
    except ImportError:  # the driver can be used without D-Bus
        return None
    call = Message(
        destination=_SERVICE,
        path=_ROOT,
        interface="org.freedesktop.DBus.ObjectManager",
        member="GetManagedObjects",
        flags=MessageFlag.NO_AUTOSTART,
    )
    try:
        async with asyncio.timeout(_ANSWER_S):
            bus = MessageBus(bus_type=BusType.SYSTEM)
            try:
                await bus.connect()
                reply = await bus.call(call)
            finally:
                bus.disconnect()
    except (OSError, EOFError, TimeoutError, DBusFastError):
        return None
    if reply.message_type is not MessageType.METHOD_RETURN or reply.signature != _OBJECTS:
        return None
    names: set[str] = set()
    for interfaces in reply.body[0].values():
        modem = {key: value.value for key, value in interfaces.get(_MODEM, {}).items()}
        names.update(str(port[0]) for port in modem.get("Ports", ()))
        names.update(filter(None, [str(modem.get("PrimaryPort", ""))]))
    return frozenset(names)
