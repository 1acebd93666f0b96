"""The last step of an upload: what the service makes of a file once it is named."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Any

from agent.standin.observability.ingest.archives import take_archive
from agent.standin.observability.ingest.coredumps import MAGIC
from agent.standin.observability.ingest.intake import take_coredump
from agent.standin.observability.ingest.push import accepted, store_coredump
from agent.standin.observability.refusals import ObservabilityRefused, invalid, not_found
from agent.standin.observability.uploads import files

if TYPE_CHECKING:
    from starlette.responses import Response

    from agent.standin.observability.exchange import Exchange, Handler
    from agent.standin.observability.project import Project, Record
    from agent.standin.observability.uploads.upload_kinds import Kind


_NOTE_SECTION = 7
_BUILD_ID = 3
_SECTION_BYTES = {1: 40, 2: 64}
"""By the class of the file: 32 or 64 bits."""


def gnu_build_id(data: bytes) -> str | None:
    """Return the build id in lower-case hex, None for a file that has none or is no ELF."""
    if data[:4] != b"\x7fELF" or len(data) < 64 or data[4] not in (1, 2) or data[5] not in (1, 2):
        return None
    order = "<" if data[5] == 1 else ">"
    wide = data[4] == 2
    (table,) = struct.unpack_from(order + ("Q" if wide else "I"), data, 40 if wide else 32)
    size, count = struct.unpack_from(order + "HH", data, 58 if wide else 46)
    if size < _SECTION_BYTES[data[4]] or table + count * size > len(data):
        return None
    left = len(data)  # notes that overlap are no reason to read the file again and again
    for at in range(table, table + count * size, size):
        (kind,) = struct.unpack_from(order + "I", data, at + 4)
        place = order + ("QQ" if wide else "II")
        offset, length = struct.unpack_from(place, data, at + (24 if wide else 16))
        if kind != _NOTE_SECTION or length > left:
            continue
        left -= length
        found = _note(data[offset : offset + length], order)
        if found is not None:
            return found
    return None


def _note(notes: bytes, order: str) -> str | None:
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(order + "III", notes, at)
        name_end = at + 12 + name_size
        start = at + 12 + (name_size + 3 & ~3)
        if kind == _BUILD_ID and notes[at + 12 : name_end].rstrip(b"\0") == b"GNU":
            return notes[start : start + size].hex()
        at = start + (size + 3 & ~3)
    return None


_OF_THE_ARTIFACT = (
    "extra_info",
    "firmware_type",
    "component_version",
    "component_base_version",
)
"""Words of the commit that are shown with the artifact, where they were said."""


def commit_release(exchange: Exchange, _kind: Kind, found: Record) -> Response:
    """Add a payload to its release, which is made where there is none."""
    body, project = exchange.body, exchange.project
    software = body["software_version"]
    table, key, release = _release(project, software["version"])
    artifact = _artifact(project, body, found)
    if any(_place(other) == _place(artifact) for other in release["artifacts"]):
        raise ObservabilityRefused(409, "this release has such an artifact already")
    changed = {**release, "artifacts": [*release["artifacts"], artifact], "updated": project.now}
    changed |= {name: body[name] for name in ("notes", "extra_info") if name in body}
    changed["revision"] = software.get("revision") or release["revision"]
    changed["must_pass_through"] = bool(body.get("must_pass_through"))
    project.table(table).put(key, changed)
    return accepted(exchange)


def _release(project: Project, version: str | list[str]) -> tuple[str, str, Record]:
    """Return table, key and record of the release that a version, or a pair of them, names."""
    delta_from, target = version if isinstance(version, list) else ("", version)
    if not isinstance(version, list):
        return "releases", target, project.release(target)
    key = f"{delta_from}/{target}"
    known: Record | None = project.table("delta-releases").get(key)
    return "delta-releases", key, known or project.new_release(target, delta_from)


def _artifact(project: Project, body: dict[str, Any], found: Record) -> Record:
    return {
        "id": project.next_id("artifacts"),
        "type": "firmware",
        "hardware_version": body["hardware_version"],
        "software_type": body["software_version"]["software_type"],
        "build_id": None,
        "filename": found["name"],
        "blob": found["blob"],
        "md5": found["md5"],
        "size": found["size"],
        "created": project.now,
        "more": {name: body[name] for name in _OF_THE_ARTIFACT if body.get(name) is not None},
    }


def _place(artifact: Record) -> tuple[Any, ...]:
    """Return what a release holds once."""
    more = artifact.get("more", {})
    return (
        artifact["hardware_version"],
        artifact["software_type"],
        more.get("component_base_version"),
        more.get("firmware_type"),
    )


def committer(kind: Kind) -> Handler:
    """Return what commits a file of that kind."""

    async def commit(exchange: Exchange) -> Response:
        record = _claim(exchange, kind)
        return _COMMITS.get(kind.name, _keep)(exchange, kind, record)

    return commit


def _claim(exchange: Exchange, kind: Kind) -> Record:
    """Return name, MD5 and bytes of the upload that a token names; a token serves once.

    Raises 404 where it names none that could be committed here.
    """
    cloud, project, told = exchange.cloud, exchange.project, exchange.body["file"]
    tokens = cloud.table("observability/tokens")
    secret = tokens.get(told["token"])
    upload = cloud.table("observability/uploads").get(secret) if secret else None
    if upload is None or upload["project"] != f"{project.organization}/{project.slug}":
        raise not_found("an upload of this token")
    if project.now > upload["created"] + files.UPLOAD_LIFE_S:
        raise not_found("the upload token has expired: the upload")
    if upload["kind"] != kind.name:
        raise not_found(f"the upload was prepared as {upload['kind']}: one of {kind.name}")
    if upload["blob"] is None:
        raise not_found("nothing was put for this token: the file")
    data = files.get_blob(cloud, upload["blob"]) or b""
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if told.get("md5") and told["md5"].lower() != md5 and not upload["content_encoding"]:
        raise invalid("the MD5 is not that of the file")
    tokens.delete(told["token"])
    cloud.table("observability/uploads").delete(secret)
    name = told.get("name") or kind.name.lower()
    return {"name": name, "md5": md5, "size": len(data), "blob": upload["blob"], "data": data}


def _keep(exchange: Exchange, kind: Kind, found: Record) -> Response:
    """Keep a file that the service only stores."""
    details = {key: value for key, value in exchange.body.items() if key != "file"}
    if kind.name == "CUSTOM_DATA_RECORDING":
        _seen(exchange, details)
    _add_file(exchange, kind, found, details)
    return accepted(exchange)


def _commit_archive(exchange: Exchange, kind: Kind, found: Record) -> Response:
    details = {key: value for key, value in exchange.body.items() if key != "file"}
    _seen(exchange, details)
    entries = take_archive(exchange.project, found["data"], details["device_serial"])
    _add_file(exchange, kind, found, {**details, "entries": entries})
    return accepted(exchange)


def _commit_symbols(exchange: Exchange, kind: Kind, found: Record) -> Response:
    project = exchange.project
    build_id = gnu_build_id(found["data"])
    others = project.table("files").values()
    if any(one["kind"] == kind.name and one["md5"] == found["md5"] for one in others):
        raise ObservabilityRefused(409, "this symbol file was already uploaded")
    details = {key: value for key, value in exchange.body.items() if key != "file"}
    _add_file(exchange, kind, found, {**details, "gnu_build_id": build_id})
    return accepted(exchange)


def _commit_coredump(exchange: Exchange, _kind: Kind, found: Record) -> Response:
    if not found["data"].startswith(MAGIC):
        raise invalid("it does not begin as a core dump does")
    return store_coredump(
        exchange, exchange.project, found["data"], exchange.body.get("device_serial")
    )


def _commit_elf(exchange: Exchange, kind: Kind, found: Record) -> Response:
    details = {key: value for key, value in exchange.body.items() if key != "file"}
    device = details["device"]
    _seen(exchange, details)
    take_coredump(exchange.project, found["data"], device["device_serial"], identity=device)
    _add_file(exchange, kind, found, details)
    return accepted(exchange)


_COMMITS = {
    "COREDUMP": _commit_coredump,
    "ELF_COREDUMP": _commit_elf,
    "MAR": _commit_archive,
    "SYMBOL_FILE": _commit_symbols,
    "OTA_PAYLOAD": commit_release,
}


def _add_file(exchange: Exchange, kind: Kind, found: Record, details: Record) -> None:
    project = exchange.project
    number = project.next_id("files")
    record = {key: found[key] for key in ("name", "md5", "size", "blob")}
    project.table("files").put(
        str(number),
        {**record, "id": number, "kind": kind.name, "details": details, "created": project.now},
    )


def _seen(exchange: Exchange, details: Record) -> None:
    device = details.get("device", details)
    names = ("device_serial", "hardware_version", "software_type", "software_version")
    exchange.project.saw(*(device[name] for name in names))
