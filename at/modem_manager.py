"""What ModemManager says of the ports that it holds: asked on the system bus, when it runs.

Source: the D-Bus reference of ModemManager, interface org.freedesktop.ModemManager1.Modem.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import PurePath

NAME = "org.freedesktop.ModemManager1"
_ROOT = "/org/freedesktop/ModemManager1"
_MODEM = f"{NAME}.Modem"
_PATIENCE_S = 1.0


def lists(device: str) -> bool | None:
    """Tell whether `device` is a port of a modem that ModemManager holds; None where it is silent.

    Waits a second at most. Never starts a ModemManager that does not run.
    """
    found: list[frozenset[str]] = []

    def work() -> None:
        names = asyncio.run(_port_names())
        if names is not None:
            found.append(names)

    # In a thread of its own: this is asked while an event loop is opening a port.
    thread = threading.Thread(target=work, name="modem-manager", daemon=True)
    thread.start()
    thread.join(2 * _PATIENCE_S)
    return PurePath(device).name in found[0] if found else None


async def _port_names() -> frozenset[str] | None:
    try:
        from dbus_fast import BusType, Message, MessageFlag, MessageType
        from dbus_fast.aio import MessageBus
        from dbus_fast.errors import DBusError
    except ImportError:  # the driver can be used without D-Bus
        return None
    call = Message(
        destination=NAME,
        path=_ROOT,
        interface="org.freedesktop.DBus.ObjectManager",
        member="GetManagedObjects",
        flags=MessageFlag.NO_AUTOSTART,
    )
    try:
        async with asyncio.timeout(_PATIENCE_S):
            bus = MessageBus(bus_type=BusType.SYSTEM)
            try:
                await bus.connect()
                reply = await bus.call(call)
            finally:
                bus.disconnect()
    except (OSError, EOFError, TimeoutError, DBusError):
        return None
    if reply.message_type is not MessageType.METHOD_RETURN:
        return None
    names: set[str] = set()
    for interfaces in reply.body[0].values():
        modem = {key: value.value for key, value in interfaces.get(_MODEM, {}).items()}
        names.update(str(port[0]) for port in modem.get("Ports", ()))
        names.update(filter(None, [str(modem.get("PrimaryPort", ""))]))
    return frozenset(names)
