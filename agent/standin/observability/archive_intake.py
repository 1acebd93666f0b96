"""What an uploaded archive holds, stored where it is then listed: events, logs, core dumps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.standin import json_body
from agent.standin.observability.archives import BadArchive, Entry, read_archive
from agent.standin.observability.intake import refuse_bad, take_coredump, take_event
from agent.standin.observability.slugs import SLUG, VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.standin.observability.project import Project, Record

_IDENTITY = {
    "device_serial": SLUG,
    "hardware_version": VERSION,
    "software_type": VERSION,
    "software_version": VERSION,
}
_MAX_LINES = 10_000


def take_archive(project: Project, data: bytes, serial: str | None) -> list[dict[str, str]]:
    """Store what an archive holds; return type and device of each entry that could be read.

    What is wrong goes to the processing log, under `serial`.
    """
    taken = []
    try:
        entries, problems = read_archive(data)
    except BadArchive as error:
        entries, problems = [], [str(error)]
    for entry in entries:
        try:
            device = _device(entry)
            project.saw(*device.values())
            _TAKE.get(entry.kind, _only_named)(project, entry, device)
        except BadArchive as error:
            problems.append(f"{entry.kind[:40]}: {error}")
            continue
        taken.append({"type": entry.kind, "device_serial": device["device_serial"]})
    for problem in problems:
        project.log("error", f"archive: {problem}", serial)
    return taken


def _device(entry: Entry) -> dict[str, str]:
    for name, rule in _IDENTITY.items():
        refuse_bad(entry.device.get(name), rule, name, BadArchive)
    return {name: entry.device[name] for name in _IDENTITY}


def _coredump(project: Project, entry: Entry, device: dict[str, str]) -> None:
    if not entry.attachment:
        raise BadArchive("the core is missing")
    take_coredump(project, entry.attachment, device["device_serial"], identity=device)


def _reboot(project: Project, entry: Entry, device: dict[str, str]) -> None:
    reason = entry.metadata.get("reason")
    if isinstance(reason, dict):  # one of the device's own
        reason = reason.get("name")
    if isinstance(reason, bool) or not isinstance(reason, int | str):
        raise BadArchive("the reason of the reboot is missing")
    _event(project, entry, device, "trace", {"reason": reason})


def _metrics(project: Project, entry: Entry, device: dict[str, str]) -> None:
    metrics = entry.metadata.get("metrics")
    if not isinstance(metrics, dict):
        raise BadArchive("the metrics are missing")
    names = ("duration_ms", "report_type")
    more = {name: entry.metadata[name] for name in names if name in entry.metadata}
    _event(project, entry, device, "heartbeat", {**more, "metrics": metrics})


def _logs(project: Project, entry: Entry, device: dict[str, str]) -> None:
    lines = (entry.attachment or b"").splitlines()[:_MAX_LINES]
    _event(project, entry, device, "log", {"lines": [_line(line) for line in lines]})


def _line(line: bytes) -> dict[str, Any]:
    """Return one line of a journal: JSON with `ts` and `data`, or else the text as it is."""
    try:
        told = json_body.decode(line)
    except json_body.BadJSON:
        told = None
    if not isinstance(told, dict):
        return {"level": "unknown", "text": line.decode("utf-8", "replace")}
    data = told.get("data")
    fields = data if isinstance(data, dict) else told
    text = fields.get("MESSAGE", line.decode("utf-8", "replace"))
    stamp = {"timestamp": told["ts"]} if "ts" in told else {}
    return {**stamp, "level": str(told.get("level", "unknown")).lower(), "text": str(text)}


def _configured(project: Project, entry: Entry, device: dict[str, str]) -> None:
    revision = entry.metadata.get("revision")
    if isinstance(revision, bool) or not isinstance(revision, int):
        raise BadArchive("the revision of the configuration is missing")
    table = project.table("devices")
    record: Record = table.get(device["device_serial"])
    table.put(device["device_serial"], {**record, "config_revision": revision})


def _only_named(_project: Project, _entry: Entry, _device: dict[str, str]) -> None:
    """Attributes, recordings and what is new: listed with the file, and not taken apart."""


def _event(
    project: Project, entry: Entry, device: dict[str, str], kind: str, info: dict[str, Any]
) -> None:
    take_event(project, {**device, "type": kind, "event_info": info}, entry.collected_unix_s)


_TAKE: dict[str, Callable[[Project, Entry, dict[str, str]], None]] = {
    "elf-coredump": _coredump,
    "linux-reboot": _reboot,
    "linux-metric-report": _metrics,
    "linux-heartbeat": _metrics,
    "linux-logs": _logs,
    "device-config": _configured,
}
