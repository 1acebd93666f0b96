"""Wi-Fi through NetworkManager over D-Bus: a fresh scan where the system allows one."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.location.access_points import AccessPoint, channel_of, rssi_of_percentage
from agent.location.wifi.scanner import ANOTHER_SOURCE, WifiScan, WifiUnavailable

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

NAME = "org.freedesktop.NetworkManager"
_ROOT = "/org/freedesktop/NetworkManager"
_WIRELESS = f"{NAME}.Device.Wireless"
_BUS = "org.freedesktop.DBus"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_INVALID = f"{_BUS}.Error.InvalidSignature"
_TYPE_WIFI = 2
_OF_ACCESS_POINT = {
    "HwAddress": "s", "Strength": "y", "Ssid": "ay", "Frequency": "u", "LastSeen": "i"
}  # fmt: skip
"""What is read of an access point, with its type as the interface has it."""
_WITHOUT_IT = f"`cellagent config set location.wifi iw` asks without it; {ANOTHER_SOURCE}"
_REFUSALS = (f"{NAME}.Device.NotAllowed", f"{_WIRELESS}.NotAllowed")


@dataclass(frozen=True, slots=True)
class NetworkManager:
    """NetworkManager on the system bus (its address as D-Bus itself finds it)."""

    async def scan(self, deadline_s: float) -> WifiScan:
        """Request a fresh scan of each Wi-Fi device, wait for it, and list its access points."""
        try:
            async with asyncio.timeout(deadline_s + 5), _connection() as bus:
                return await _scan(bus, deadline_s)
        except TimeoutError as error:
            raise WifiUnavailable(
                f"NetworkManager gave no answer in {deadline_s + 5:g} s", hint=_WITHOUT_IT
            ) from error


async def _scan(bus: MessageBus, deadline_s: float) -> WifiScan:
    devices = [
        path
        for path in await _call(bus, _ROOT, NAME, "GetDevices", answer="ao")
        if await _get(bus, path, f"{NAME}.Device", "DeviceType", "u") == _TYPE_WIFI
    ]
    if not devices:
        raise WifiUnavailable(
            "NetworkManager knows no Wi-Fi device on this host", hint=ANOTHER_SOURCE
        )
    points: list[AccessPoint] = []
    notes: list[str] = []
    for device in devices:
        note = await _refresh(bus, device, deadline_s)
        if note:
            notes.append(note)
        paths = await _call(bus, device, _WIRELESS, "GetAllAccessPoints", answer="ao")
        for path in paths:
            with contextlib.suppress(_Refused):  # it went out of range while the list was read
                points.append(await _access_point(bus, path))
    return WifiScan("networkmanager", tuple(points), tuple(notes))


async def _refresh(bus: MessageBus, device: str, deadline_s: float) -> str:
    """Request a scan and wait for its end; return a note for a person where there was none."""
    before = await _last_scan_ms(bus, device)
    changed = asyncio.Event()

    def on_message(message: Message) -> None:
        if message.member == "PropertiesChanged" and message.path == device:
            changed.set()

    rule = f"type='signal',interface='{_PROPERTIES}',path='{device}'"
    await _bus_call(bus, "AddMatch", rule)
    bus.add_message_handler(on_message)
    try:
        await _call(bus, device, _WIRELESS, "RequestScan", "a{sv}", {})
        async with asyncio.timeout(deadline_s):
            while await _last_scan_ms(bus, device) == before:
                await changed.wait()
                changed.clear()
    except _Refused as refused:
        if refused.error not in _REFUSALS:
            raise WifiUnavailable(f"NetworkManager refused a scan: {refused}") from refused
        return f"the system refuses scans that come too often: {_age_text(before)}"
    except TimeoutError:
        return f"no fresh scan within {deadline_s:g} s: {_age_text(before)}"
    finally:
        bus.remove_message_handler(on_message)
        await _bus_call(bus, "RemoveMatch", rule)
    return ""


def _age_text(last_scan_ms: int) -> str:
    if last_scan_ms < 0:
        return "this is its list so far"
    return f"this is its list of {max(0.0, _boot_time_s() - last_scan_ms / 1000):.0f} s ago"


async def _last_scan_ms(bus: MessageBus, device: str) -> int:
    """Return when the device last scanned, in ms of the boot-time clock; -1 for never.

    NetworkManager before 1.12 does not say; then a scan ends with the deadline.
    """
    with contextlib.suppress(_Refused):
        return int(await _get(bus, device, _WIRELESS, "LastScan", "x"))
    return -1


async def _access_point(bus: MessageBus, path: str) -> AccessPoint:
    asked = f"{NAME}.AccessPoint"
    fields = await _call(bus, path, _PROPERTIES, "GetAll", "s", asked, answer="a{sv}")
    values = {
        name: fields[name].value
        for name, kind in _OF_ACCESS_POINT.items()
        if name in fields and fields[name].signature == kind
    }
    seen_s, frequency = int(values.get("LastSeen", -1)), int(values.get("Frequency", 0))
    return AccessPoint(
        bssid=str(values.get("HwAddress", "")),
        rssi_dbm=rssi_of_percentage(int(values.get("Strength", 0))),
        ssid=bytes(values.get("Ssid", b"")),
        channel=channel_of(frequency),
        frequency_mhz=frequency or None,
        age_s=max(0.0, _boot_time_s() - seen_s) if seen_s >= 0 else None,
    )


def _boot_time_s() -> float:
    if sys.platform != "linux":  # where there is no NetworkManager
        return time.monotonic()
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class _Refused(Exception):
    """D-Bus answered with an error; `error` is its name."""

    def __init__(self, error: str, text: str) -> None:
        super().__init__(f"{text} ({error})")
        self.error = error


def _why(error: Exception) -> str:
    """Return what else is to say than that the socket of the bus is not there."""
    return "" if isinstance(error, FileNotFoundError) else f" that answers ({error})"


@asynccontextmanager
async def _connection() -> AsyncIterator[MessageBus]:
    try:
        from dbus_fast import BusType
        from dbus_fast.aio import MessageBus
        from dbus_fast.errors import DBusFastError
    except ImportError as error:
        raise WifiUnavailable(
            "NetworkManager is reached with dbus-fast, which is installed on Linux only",
            hint=f"on Linux `pip install dbus-fast`; elsewhere {ANOTHER_SOURCE}",
        ) from error

    try:
        bus = MessageBus(bus_type=BusType.SYSTEM)
        await bus.connect()
    except (OSError, DBusFastError, EOFError) as error:
        raise WifiUnavailable(
            f"NetworkManager cannot be asked, as this host has no D-Bus system bus{_why(error)}",
            hint=_WITHOUT_IT,
        ) from error
    try:
        yield bus
    except _Refused as refused:
        raise WifiUnavailable(f"NetworkManager does not answer: {refused}") from refused
    except (OSError, DBusFastError, EOFError) as error:
        raise WifiUnavailable(
            f"the D-Bus system bus went away: {error}", hint=_WITHOUT_IT
        ) from error
    finally:
        bus.disconnect()


async def _get(bus: MessageBus, path: str, interface: str, name: str, kind: str) -> Any:
    variant = await _call(bus, path, _PROPERTIES, "Get", "ss", interface, name, answer="v")
    if variant.signature != kind:
        raise _Refused(_INVALID, f"{name} is of type {variant.signature}, not {kind}")
    return variant.value


async def _bus_call(bus: MessageBus, member: str, rule: str) -> None:
    await _call(bus, "/org/freedesktop/DBus", _BUS, member, "s", rule, to=_BUS)


async def _call(
    bus: MessageBus,
    path: str,
    interface: str,
    member: str,
    signature: str = "",
    *body: object,
    to: str = NAME,
    answer: str = "",
) -> Any:
    """Return the one value of an answer, whose type is `answer`. Raises _Refused."""
    from dbus_fast import Message, MessageType

    message = Message(
        destination=to,
        path=path,
        interface=interface,
        member=member,
        signature=signature,
        body=list(body),
    )
    reply = await bus.call(message)
    if reply.message_type is MessageType.ERROR:
        raise _Refused(reply.error_name or "", str(reply.body[0]) if reply.body else "")
    if reply.signature != answer:
        raise _Refused(_INVALID, f"{member} is answered as {reply.signature!r}, not {answer!r}")
    return reply.body[0] if reply.body else None
