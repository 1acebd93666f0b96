"""The archive (MAR) that a Linux device uploads: a zip of entries, each with its manifest. Pure.

An entry is a folder with `manifest.json` and at most one attachment, which may be compressed.
Errors of one entry are reported, and the other entries are still read.
"""

import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

import msgspec

from agent.json_value import JSONValue
from agent.standin.core import schema, zip_files
from agent.standin.core.zip_files import BadArchive
from agent.standin.observability import tables
from agent.standin.observability.ingest import records
from agent.standin.observability.project import IDENTITY_FIELDS, Identity, Project

MAX_ENTRIES = 1000
MAX_EXPANDED_BYTES = 256 * 1024 * 1024
"""Limit of all entries together, with their attachments unpacked."""
_MAX_MANIFEST_BYTES = 1024 * 1024
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: type, device, time of collection, metadata, attachment."""

    kind: str
    device: dict[str, JSONValue]
    collected_unix_s: float | None
    metadata: dict[str, JSONValue]
    attachment: bytes | None


class _Manifest(msgspec.Struct):
    type: str
    device: dict[str, JSONValue]
    metadata: dict[str, JSONValue] = {}
    collection_time: dict[str, JSONValue] = {}


def read_archive(data: bytes) -> tuple[list[Entry], list[str]]:
    """Return the readable entries, and an error text for each of the others.

    Raises BadArchive if it is not a zip file, or too large.
    """
    entries: list[Entry] = []
    problems: list[str] = []
    with zip_files.opened(data) as archive:
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
    if not manifests:
        raise BadArchive("it has no entry with a manifest")
    return entries, problems


def _is_manifest(name: str) -> bool:
    path = PurePosixPath(name)
    return path.name == _MANIFEST and len(path.parts) > 1


def _entry(archive: zipfile.ZipFile, path: PurePosixPath, limit: int) -> Entry:
    raw = zip_files.member(archive, str(path), _MAX_MANIFEST_BYTES)
    try:
        manifest = msgspec.convert(schema.decode(raw), _Manifest)
    except (schema.BadJSON, msgspec.ValidationError) as error:
        raise BadArchive(f"its manifest: {error}") from error
    stamp = manifest.collection_time.get("timestamp")
    return Entry(
        manifest.type,
        manifest.device,
        schema.parse_datetime(stamp) if isinstance(stamp, str) else None,
        manifest.metadata,
        _attachment(archive, path.parent, manifest.metadata, limit),
    )


def _attachment(
    archive: zipfile.ZipFile, folder: PurePosixPath, metadata: dict[str, JSONValue], limit: int
) -> bytes | None:
    """Return the file that the metadata names, unpacked."""
    named = [value for key, value in metadata.items() if key.endswith("_file_name")]
    if not named:
        return None
    if not isinstance(named[0], str) or not PurePosixPath(named[0]).name:
        raise BadArchive("its attachment has no name")
    # Devices write the path that the file had on their own disk.
    data = zip_files.member(archive, str(folder / PurePosixPath(named[0]).name), limit)
    compression = metadata.get("compression") or "none"
    if compression == "none":
        return data
    if compression not in ("gzip", "zlib"):
        raise BadArchive(f"the compression {str(compression)[:40]!r} is not known")
    # 32 more: zlib detects the header, gzip or zlib.
    unpacker = zlib.decompressobj(zlib.MAX_WBITS + 32)
    unpacked = unpacker.decompress(data, limit + 1)
    if len(unpacked) > limit:
        raise BadArchive(f"its attachment unpacks to more than {limit} bytes")
    if not unpacker.eof:
        raise BadArchive("its attachment is cut short")
    return unpacked


_MAX_LINES = 10_000


def add_archive(project: Project, data: bytes, serial: str | None) -> list[JSONValue]:
    """Store the entries of an archive; return type and device of each stored entry.

    Errors go to the processing log, under `serial`.
    """
    stored: list[JSONValue] = []
    try:
        entries, problems = read_archive(data)
    except BadArchive as error:
        entries, problems = [], [str(error)]
    for entry in entries:
        try:
            device = _device(entry)
            project.mark_seen(device)
            _PROCESSORS.get(entry.kind, _list_only)(project, entry, device)
        except BadArchive as error:
            problems.append(f"{entry.kind[:40]}: {error}")
            continue
        stored.append({"type": entry.kind, "device_serial": device.device_serial})
    for problem in problems:
        project.log("error", f"archive: {problem}", serial)
    return stored


def _device(entry: Entry) -> Identity:
    for name, rule in IDENTITY_FIELDS.items():
        records.refuse_bad(entry.device.get(name), rule, name, BadArchive)
    return msgspec.convert(entry.device, Identity)


def _coredump(project: Project, entry: Entry, device: Identity) -> None:
    if not entry.attachment:
        raise BadArchive("the core is missing")
    records.add_coredump(project, entry.attachment, None, identity=device)


def _reboot(project: Project, entry: Entry, device: Identity) -> None:
    reason = entry.metadata.get("reason")
    if isinstance(reason, dict):  # a custom reason of the device
        reason = reason.get("name")
    if isinstance(reason, bool) or not isinstance(reason, int | str):
        raise BadArchive("the reason of the reboot is missing")
    _event(project, entry, device, "trace", {"reason": reason})


def _metrics(project: Project, entry: Entry, device: Identity) -> None:
    metrics = entry.metadata.get("metrics")
    if not isinstance(metrics, dict):
        raise BadArchive("the metrics are missing")
    names = ("duration_ms", "report_type")
    more = {name: entry.metadata[name] for name in names if name in entry.metadata}
    _event(project, entry, device, "heartbeat", {**more, "metrics": metrics})


def _logs(project: Project, entry: Entry, device: Identity) -> None:
    lines = (entry.attachment or b"").splitlines()[:_MAX_LINES]
    _event(project, entry, device, "log", {"lines": [_line(line) for line in lines]})


def _line(line: bytes) -> dict[str, JSONValue]:
    """Return a log line: JSON with `ts` and `data`, or else the plain text."""
    try:
        entry = schema.decode(line)
    except schema.BadJSON:
        entry = None
    if not isinstance(entry, dict):
        return {"level": "unknown", "text": line.decode("utf-8", "replace")}
    data = entry.get("data")
    fields = data if isinstance(data, dict) else entry
    text = fields.get("MESSAGE", line.decode("utf-8", "replace"))
    stamp = {"timestamp": entry["ts"]} if "ts" in entry else {}
    return {**stamp, "level": str(entry.get("level", "unknown")).lower(), "text": str(text)}


def _confirm_config(project: Project, entry: Entry, device: Identity) -> None:
    revision = entry.metadata.get("revision")
    if isinstance(revision, bool) or not isinstance(revision, int):
        raise BadArchive("the revision of the configuration is missing")
    record = project.device(device.device_serial)
    record.config_revision = revision
    project.table(tables.DEVICES).put(device.device_serial, record)


def _list_only(_project: Project, _entry: Entry, _device: Identity) -> None:
    """Do nothing: attributes, recordings and unknown types are only listed with the file."""


def _event(
    project: Project, entry: Entry, device: Identity, kind: str, info: dict[str, JSONValue]
) -> None:
    pushed = records.PushedEvent(type=kind, event_info=info, **msgspec.structs.asdict(device))
    records.add_event(project, pushed, entry.collected_unix_s)


_PROCESSORS: dict[str, Callable[[Project, Entry, Identity], None]] = {
    "elf-coredump": _coredump,
    "linux-reboot": _reboot,
    "linux-metric-report": _metrics,
    "linux-heartbeat": _metrics,
    "linux-logs": _logs,
    "device-config": _confirm_config,
}
