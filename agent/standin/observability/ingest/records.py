"""Adds pushed data to the tables of a project: events, traces, issues, core dumps."""

from __future__ import annotations

from typing import Any

from agent.standin.core.schema import check
from agent.standin.observability.ingest.coredumps import BadCoredump, Coredump, parse_coredump
from agent.standin.observability.project import (
    IDENTITY_FIELDS,
    SLUG,
    VERSION,
    Project,
    Record,
    is_semver,
)

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


def add_event(project: Project, event: dict[str, Any], captured_s: float | None) -> Record:
    """Add an event with the field names of the events push; `captured_s` is the device's time."""
    serial = event["device_serial"]
    hardware = event["hardware_version"]
    version = event.get("software_version") or event.get("release_version", "")
    kind = event.get("software_type", "main")
    project.mark_seen(serial, hardware, kind, version)
    now = project.now
    if captured_s is not None and not now - OLDEST_S <= captured_s <= now + AHEAD_S:
        project.log("warning", "the captured date is out of bounds and was ignored", serial)
        captured_s = None
    number = project.next_id("events")
    record: Record = {
        "id": number,
        "type": event["type"],
        "device": serial,
        "hardware_version": hardware,
        "software_type": kind,
        "software_version": version,
        "release": version if is_semver(version) else None,
        "sdk_version": event.get("sdk_version"),
        "build_id": event.get("build_id"),
        "created": now,
        "received": now,
        "captured": now if captured_s is None else captured_s,
        "event_info": event.get("event_info", {}),
        "user_info": event.get("user_info", event.get("extra_info", {})),
    }
    project.table("events").put(str(number), record)
    if event["type"] == "trace":
        _add_trace(project, record, record["event_info"].get("reason"), source="event")
    return record


def add_coredump(
    project: Project,
    data: bytes,
    fallback_serial: str | None,
    *,
    identity: dict[str, str] | None = None,
) -> Record:
    """Add a core dump and its trace; return the trace. Raises BadCoredump.

    A dump of the SDK names its device. With `identity` (the four fields of a device) the bytes are
    not parsed, because an ELF core does not name its device.
    """
    info: dict[str, Any] = {}
    reason = None
    if identity is None:
        dump = parse_coredump(data)
        info, reason = _describe(dump), dump.reason
        identity = {
            "device_serial": dump.device_serial or fallback_serial or "",
            "hardware_version": dump.hardware_version or "unknown",
            "software_type": dump.software_type or "main",
            "software_version": dump.software_version or "0.0.0",
        }
        if not identity["device_serial"]:
            raise BadCoredump("neither the dump nor the request names the device")
        refuse_bad(identity["device_serial"], SLUG, "device_serial", BadCoredump)
        refuse_bad(identity["hardware_version"], VERSION, "hardware_version", BadCoredump)
    serial, hardware, kind, version = (identity[name] for name in IDENTITY_FIELDS)
    project.mark_seen(serial, hardware, kind, version)
    record: Record = {
        "device": serial,
        "hardware_version": hardware,
        "software_type": kind,
        "software_version": version,
        "release": version if is_semver(version) else None,
        "captured": project.now,
        "event_info": info,
    }
    trace = _add_trace(project, record, reason, source="coredump")
    stored = {"id": trace["id"], "trace": trace["id"], "device": serial, "data": data}
    stored |= {"size": len(data), "created": project.now}
    project.table("coredumps").put(str(trace["id"]), stored)
    return trace


def _describe(dump: Coredump) -> dict[str, Any]:
    return {
        "reason": dump.reason,
        "build_id": dump.build_id,
        "machine": dump.machine,
        "truncated": dump.truncated,
        "regions": [
            {"address": address, "size_bytes": size} for address, size in dump.regions[:1000]
        ],
    }


def _add_trace(project: Project, record: Record, reason: Any, *, source: str) -> Record:
    """Add a trace to the issue of its reason and address; create the issue if there is none."""
    title = reason_name(reason)
    address = record["event_info"].get("pc")
    where = f" at 0x{address:08x}" if isinstance(address, int) else ""
    signature = f"{title}{where} in {record['software_type']}"
    now = project.now
    issues = project.table("issues")
    issue = next((one for one in issues.values() if one["signature"] == signature), None)
    if issue is None:
        number = project.next_id("issues")
        issue = {
            "id": number,
            "status": "open",
            "title": title + where,
            "signature": signature,
            "created": now,
            "first_seen": now,
            "first_release": record["release"],
            "devices": [],
            "traces": 0,
        }
    number = project.next_id("traces")
    trace: Record = {
        **{key: record[key] for key in ("device", "hardware_version", "software_type")},
        **{key: record[key] for key in ("software_version", "release", "captured")},
        "id": number,
        "created": now,
        "reason": title,
        "reason_code": reason if isinstance(reason, int) else None,
        "source": source,
        "issue": issue["id"],
        "trace_info": record["event_info"],
    }
    devices = issue["devices"]
    if record["device"] not in devices:
        devices = [*devices, record["device"]]
    issues.put(
        str(issue["id"]),
        {
            **issue,
            "devices": devices,
            "traces": issue["traces"] + 1,
            "last_seen": now,
            "last_release": record["release"],
            "last_trace": number,
        },
    )
    project.table("traces").put(str(number), trace)
    return trace


def refuse_bad(value: Any, rule: dict[str, Any], name: str, error: type[ValueError]) -> None:
    """Raise `error` if a value does not match the schema of its identifier."""
    if check(value, rule):
        raise error(f"{name} {str(value)[:40]!r} is not a valid identifier")
