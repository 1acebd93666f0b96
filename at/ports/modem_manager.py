"""ModemManager, asked on D-Bus which ports it holds as those of a modem."""

from __future__ import annotations

import asyncio
import threading
from pathlib import PurePath

_SERVICE = "org.freedesktop.ModemManager1"
_ROOT = "/org/freedesktop/ModemManager1"
_MODEM = f"{_SERVICE}.Modem"
_ANSWER_S = 1.0


def modem_manager_holds(device: str) -> bool | None:
    """Return whether ModemManager holds `device` as a modem's port; None where it does not answer.

    Waits a second at most. Never starts a ModemManager that does not run.
    """
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
    try:
        from dbus_fast import BusType, Message, MessageFlag, MessageType
        from dbus_fast.aio import MessageBus
        from dbus_fast.errors import DBusError
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
