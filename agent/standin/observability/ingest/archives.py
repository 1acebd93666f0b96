"""The archive (MAR) that a Linux device uploads: a zip of entries, each with its manifest. Pure.

An entry is a folder with `manifest.json` and at most one attachment, which may be compressed. What
is wrong with one entry is told, and the others are read.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from agent.standin.core import schema
from agent.standin.core.schema import parse_datetime
from agent.standin.observability.ingest.intake import refuse_bad, take_coredump, take_event
from agent.standin.observability.project import SLUG, VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.standin.observability.project import Project, Record


MAX_ENTRIES = 1000
MAX_EXPANDED_BYTES = 256 * 1024 * 1024
"""Of all entries together, attachments unpacked."""
_MAX_MANIFEST_BYTES = 1024 * 1024
_MANIFEST = "manifest.json"
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)
"""What reading a zip of somebody else's may raise."""


class BadArchive(ValueError):
    """The bytes are no archive, or an entry of it is broken."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: what it is, of which device, when it was collected, and its attachment."""

    kind: str
    device: dict[str, Any]
    collected_unix_s: float | None
    metadata: dict[str, Any]
    attachment: bytes | None


def read_archive(data: bytes) -> tuple[list[Entry], list[str]]:
    """Return the entries that can be read, and what is wrong with the others.

    Raises BadArchive where the whole is no zip, or too much.
    """
    entries: list[Entry] = []
    problems: list[str] = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            manifests = [name for name in archive.namelist() if _is_manifest(name)]
            if len(manifests) > MAX_ENTRIES:
                raise BadArchive(f"{len(manifests)} entries; {MAX_ENTRIES} at most")
            left = MAX_EXPANDED_BYTES
            for name in manifests:
                try:
                    entry = _entry(archive, PurePosixPath(name), left)
                except BadArchive as error:
                    problems.append(f"{PurePosixPath(name).parent}: {error}")
                    continue
                left -= len(entry.attachment or b"")
                entries.append(entry)
    except _BROKEN as error:
        raise BadArchive(f"it is no archive that can be read: {error}") from error
    if not manifests:
        raise BadArchive("it has no entry with a manifest")
    return entries, problems


def _is_manifest(name: str) -> bool:
    path = PurePosixPath(name)
    return path.name == _MANIFEST and len(path.parts) > 1


def _entry(archive: zipfile.ZipFile, path: PurePosixPath, limit: int) -> Entry:
    try:
        manifest = schema.decode(_member(archive, str(path), _MAX_MANIFEST_BYTES))
    except schema.BadJSON as error:
        raise BadArchive(f"its manifest is no JSON: {error}") from error
    if not isinstance(manifest, dict):
        raise BadArchive("its manifest is no JSON object")
    kind, device = manifest.get("type"), manifest.get("device")
    metadata, collected = manifest.get("metadata", {}), manifest.get("collection_time", {})
    if not isinstance(kind, str) or not all(
        isinstance(part, dict) for part in (device, metadata, collected)
    ):
        raise BadArchive("its manifest lacks type, device or metadata")
    stamp = collected.get("timestamp")
    return Entry(
        kind,
        dict(device or {}),
        parse_datetime(stamp) if isinstance(stamp, str) else None,
        metadata,
        _attachment(archive, path.parent, metadata, limit),
    )


def _attachment(
    archive: zipfile.ZipFile, folder: PurePosixPath, metadata: dict[str, Any], limit: int
) -> bytes | None:
    """Return the file that the metadata names, unpacked."""
    named = [value for key, value in metadata.items() if key.endswith("_file_name")]
    if not named:
        return None
    if not isinstance(named[0], str) or not PurePosixPath(named[0]).name:
        raise BadArchive("its attachment has no name")
    # Devices write the path that the file had on their own disk.
    data = _member(archive, str(folder / PurePosixPath(named[0]).name), limit)
    compression = metadata.get("compression") or "none"
    if compression == "none":
        return data
    if compression not in ("gzip", "zlib"):
        raise BadArchive(f"the compression {str(compression)[:40]!r} is not known")
    # 32 more: zlib looks for either header itself.
    unpacker = zlib.decompressobj(zlib.MAX_WBITS + 32)
    unpacked = unpacker.decompress(data, limit + 1)
    if len(unpacked) > limit:
        raise BadArchive(f"its attachment unpacks to more than {limit} bytes")
    if not unpacker.eof:
        raise BadArchive("its attachment is cut short")
    return unpacked


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    try:
        with archive.open(name) as member:
            data = member.read(limit + 1)
    except KeyError as error:
        raise BadArchive(f"there is no {name}") from error
    if len(data) > limit:
        raise BadArchive(f"{name} has more than {limit} bytes")
    return data


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
        told = schema.decode(line)
    except schema.BadJSON:
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
