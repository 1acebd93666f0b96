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
from typing import Any

from agent.standin import json_body
from agent.standin.schema import parse_datetime

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
        manifest = json_body.decode(_member(archive, str(path), _MAX_MANIFEST_BYTES))
    except json_body.BadJSON as error:
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
