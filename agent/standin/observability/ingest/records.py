"""Adds pushed data to the tables of a project: events, traces, issues, core dumps."""

from collections.abc import Callable

import msgspec
from msgspec import UNSET, UnsetType

from agent.json_value import JSONValue
from agent.standin.core.schema import Schema, check
from agent.standin.observability import tables
from agent.standin.observability.ingest import coredumps
from agent.standin.observability.ingest.elf import linux_signal
from agent.standin.observability.project import SLUG, VERSION, Identity, Project

_REASONS = {
    0x0000: "Unknown",
    0x0001: "User Shutdown",
    0x0002: "User Reset",
    0x0003: "Firmware Update",
    0x0004: "Low Power",
    0x0005: "Debugger Halted",
    0x0006: "Button Reset",
    0x0007: "Power On Reset",
    0x0008: "Software Reset",
    0x0009: "Deep Sleep",
    0x000A: "Pin Reset",
    0x000B: "Self Test",
    0x8000: "Unknown Error",
    0x8001: "Assert",
    0x8002: "Watchdog",
    0x8003: "Brown Out",
    0x8004: "Non-Maskable Interrupt",
    0x8005: "Hardware Watchdog",
    0x8006: "Software Watchdog",
    0x8007: "Clock Failure",
    0x8008: "Kernel Panic",
    0x8009: "Firmware Update Error",
    0x800A: "Out Of Memory",
    0x800B: "Stack Overflow",
    0x800C: "Task Watchdog",
    0x9100: "Bus Fault",
    0x9200: "Memory Fault",
    0x9300: "Usage Fault",
    0x9400: "Hard Fault",
    0x9401: "Lockup",
    0x9402: "Security Violation",
    0x9403: "Parity Error",
    0x9404: "Temperature Error",
    0x9405: "Hardware Error",
}


def reason_name(code: object) -> str:
    """Return the name of a reboot reason; of its class where the exact code is unknown.

    A device may send the name of a custom reason instead of a code.
    """
    if isinstance(code, str) and code:
        return code[:200]
    if not isinstance(code, int):
        return "Unknown"
    return _REASONS.get(code) or _REASONS.get(code & 0xFF00) or f"Reason 0x{code:04x}"


DAY_S = 86_400.0
OLDEST_S = 365 * DAY_S
AHEAD_S = 5 * 60.0


class PushedEvent(msgspec.Struct, kw_only=True):
    """An event with the field names of the events push."""

    type: str
    device_serial: str
    hardware_version: str
    software_type: str = "main"
    software_version: str = ""
    release_version: str = ""
    """Of an older form, without type and version of the software."""
    sdk_version: str | None = None
    build_id: str | None = None
    captured_date: str | None = None
    event_info: dict[str, JSONValue] = msgspec.field(default_factory=dict)
    user_info: dict[str, JSONValue] | UnsetType | None = UNSET
    extra_info: dict[str, JSONValue] | None = msgspec.field(default_factory=dict)


def add_event(project: Project, pushed: PushedEvent, captured_s: float | None) -> None:
    """Add an event; `captured_s` is the device's time."""
    device = Identity(
        pushed.device_serial,
        pushed.hardware_version,
        pushed.software_type,
        pushed.software_version or pushed.release_version,
    )
    project.mark_seen(device)
    now = project.now
    if captured_s is not None and not now - OLDEST_S <= captured_s <= now + AHEAD_S:
        message = "the captured date is out of bounds and was ignored"
        project.log("warning", message, device.device_serial)
        captured_s = None
    event = tables.Event(
        id=project.next_id("events"),
        type=pushed.type,
        device=device.device_serial,
        hardware_version=device.hardware_version,
        software_type=device.software_type,
        software_version=device.software_version,
        release=device.release,
        sdk_version=pushed.sdk_version,
        build_id=pushed.build_id,
        created=now,
        received=now,
        captured=now if captured_s is None else captured_s,
        event_info=pushed.event_info,
        user_info=pushed.extra_info if pushed.user_info is UNSET else pushed.user_info,
    )
    project.table(tables.EVENTS).put(str(event.id), event)
    if event.type == "trace":
        reason = event.event_info.get("reason")
        _add_trace(project, device, event.event_info, reason, event.captured, source="event")


def add_coredump(
    project: Project,
    data: bytes,
    fallback_serial: str | None,
    *,
    identity: Identity | None = None,
    count: Callable[[str], None] = lambda _serial: None,
) -> None:
    """Add a core dump and its trace. Raises BadCoredump.

    A dump of the SDK names its device. With `identity` it is a core of Linux, which does not: its
    reason is the signal that ended the process. `count` is called with the serial of the device
    before anything is stored; what it raises refuses the dump.
    """
    info: dict[str, JSONValue] = {}
    reason: int | str | None = None
    if identity is not None:
        reason = linux_signal(data)
    else:
        dump = coredumps.parse_coredump(data)
        info, reason = _describe(dump), dump.reason
        identity = Identity(
            dump.device_serial or fallback_serial or "",
            dump.hardware_version or "unknown",
            dump.software_type or "main",
            dump.software_version or "0.0.0",
        )
        if not identity.device_serial:
            raise coredumps.BadCoredump("neither the dump nor the request names the device")
        refuse_bad(identity.device_serial, SLUG, "device_serial", coredumps.BadCoredump)
        refuse_bad(identity.hardware_version, VERSION, "hardware_version", coredumps.BadCoredump)
    count(identity.device_serial)
    project.mark_seen(identity)
    number = _add_trace(project, identity, info, reason, project.now, source="coredump")
    stored = tables.StoredCoredump(
        id=number,
        trace=number,
        device=identity.device_serial,
        data=data,
        size=len(data),
        created=project.now,
    )
    project.table(tables.COREDUMPS).put(str(number), stored)


def _describe(dump: coredumps.Coredump) -> dict[str, JSONValue]:
    return {
        "reason": dump.reason,
        "build_id": dump.build_id,
        "machine": dump.machine,
        "truncated": dump.truncated,
        "regions": [
            {"address": address, "size_bytes": size} for address, size in dump.regions[:1000]
        ],
    }


def _add_trace(
    project: Project,
    device: Identity,
    info: dict[str, JSONValue],
    reason: JSONValue,
    captured: float,
    *,
    source: str,
) -> int:
    """Add a trace to the issue of its reason and address; return its number."""
    title = reason_name(reason)
    address = info.get("pc")
    where = f" at 0x{address:08x}" if isinstance(address, int) else ""
    signature = f"{title}{where} in {device.software_type}"
    number, now = project.next_id("traces"), project.now
    issues = project.table(tables.ISSUES)
    issue = next((one for one in issues.values() if one.signature == signature), None)
    if issue is None:
        issue = tables.Issue(
            id=project.next_id("issues"),
            title=title + where,
            signature=signature,
            created=now,
            first_seen=now,
            last_seen=now,
            first_release=device.release,
            last_release=device.release,
            last_trace=number,
        )
    if device.device_serial not in issue.devices:
        issue.devices.append(device.device_serial)
    issue.traces += 1
    issue.last_seen, issue.last_release, issue.last_trace = now, device.release, number
    issues.put(str(issue.id), issue)
    trace = tables.Trace(
        id=number,
        device=device.device_serial,
        hardware_version=device.hardware_version,
        software_type=device.software_type,
        software_version=device.software_version,
        release=device.release,
        captured=captured,
        created=now,
        reason=title,
        reason_code=None if isinstance(reason, bool) or not isinstance(reason, int) else reason,
        source=source,
        issue=issue.id,
        trace_info=info,
    )
    project.table(tables.TRACES).put(str(number), trace)
    return number


def refuse_bad(value: object, rule: Schema, name: str, error: type[ValueError]) -> None:
    """Raise `error` if a value does not match the schema of its identifier."""
    if check(value, rule):
        raise error(f"{name} {str(value)[:40]!r} is not a valid identifier")
