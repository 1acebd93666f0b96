"""The last step of an upload: what the service makes of a file once it is named."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from agent.standin.observability import files
from agent.standin.observability.archive_intake import take_archive
from agent.standin.observability.coredumps import MAGIC
from agent.standin.observability.intake import take_coredump
from agent.standin.observability.ota_payloads import commit_release
from agent.standin.observability.push import accepted, store_coredump
from agent.standin.observability.refusals import ObservabilityRefused, invalid, not_found
from agent.standin.observability.symbols import gnu_build_id

if TYPE_CHECKING:
    from starlette.responses import Response

    from agent.standin.observability.exchange import Exchange, Handler
    from agent.standin.observability.project import Record
    from agent.standin.observability.upload_kinds import Kind


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
