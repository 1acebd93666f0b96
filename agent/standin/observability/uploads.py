"""Prepare and commit of files: what build systems and devices upload (clauses O5.2, O5.3)."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.responses import Response

from agent.standin.app import Host
from agent.standin.errors import JSON
from agent.standin.observability import files
from agent.standin.observability.access import Access, Role
from agent.standin.observability.conventions import one
from agent.standin.observability.coredumps import MAGIC
from agent.standin.observability.exchange import JSON_TYPE, Exchange, Served, decode_json, refuse
from agent.standin.observability.intake import take_coredump, take_event
from agent.standin.observability.push import (
    MAX_COREDUMP,
    accepted,
    media_type,
    store_coredump,
    take_direct_coredump,
)
from agent.standin.observability.refusals import ObservabilityRefused, invalid, invalid_fields
from agent.standin.observability.resources import by_project
from agent.standin.observability.slugs import MAX_LENGTH, RELEASE_VERSION, SLUG, VERSION
from agent.standin.observability.symbols import gnu_build_id
from agent.standin.observability.views import NUMBER, OPEN, TEXT, shape
from agent.standin.operation import Operation, Parameter
from agent.standin.schema import check

if TYPE_CHECKING:
    from agent.standin.observability.exchange import Handler
    from agent.standin.observability.project import Record
    from agent.standin.schema import Schema

_MEBIBYTE = 1024 * 1024
_NAME: Schema = {"type": "string", "maxLength": 512}
_IDENTITY = shape(
    device_serial=SLUG,
    hardware_version=VERSION,
    software_type=VERSION,
    software_version={**VERSION, "maxLength": MAX_LENGTH},
)
_SOFTWARE: Schema = {
    "type": "object",
    "required": ["version", "software_type"],
    "properties": {
        "version": {
            "anyOf": [VERSION, {"type": "array", "items": VERSION, "minItems": 2, "maxItems": 2}]
        },
        "software_type": VERSION,
        "revision": _NAME,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file: the most bytes, where it is committed, and what its commit says."""

    name: str
    limit: int
    key_path: str | None
    user_path: str
    fields: dict[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    def body(self) -> Schema:
        """Return the schema of the commit."""
        token: Schema = {
            "type": "object",
            "required": ["token"],
            "properties": {"token": _NAME, "md5": _NAME, "name": _NAME},
        }
        return {
            "type": "object",
            "required": ["file", *self.required],
            "properties": {"file": token, **self.fields},
        }


KINDS = (
    Kind(name="COREDUMP", limit=MAX_COREDUMP, key_path="coredump", user_path="coredumps",
         fields={"device_serial": SLUG}),
    Kind(name="ELF_COREDUMP", limit=files.MAX_FILE, key_path="elf_coredump",
         user_path="elf_coredumps", fields={"device": _IDENTITY}, required=("device",)),
    Kind(name="MAR", limit=64 * _MEBIBYTE, key_path="mar", user_path="mar",
         fields=dict(_IDENTITY["properties"]), required=tuple(_IDENTITY["required"])),
    Kind(name="ANDROID_BUG_REPORT", limit=files.MAX_FILE, key_path="bugreport",
         user_path="bugreports"),
    Kind(name="CUSTOM_DATA_RECORDING", limit=16 * _MEBIBYTE, key_path="custom-data-recording",
         user_path="custom-data-recording",
         fields={
             "start_time": {"type": "string", "maxLength": 64},
             "duration_secs": {"type": "number", "minimum": 0},
             "mimetypes": {"type": "array", "items": _NAME, "maxItems": 100},
             "reason": _NAME,
             "device": _IDENTITY,
         },
         required=("start_time", "mimetypes", "reason", "device")),
    Kind(name="SYMBOL_FILE", limit=files.MAX_FILE, key_path=None, user_path="symbols",
         fields={"software_version": _SOFTWARE}),
    Kind(name="SBOM", limit=64 * _MEBIBYTE, key_path=None, user_path="sboms",
         fields={"software_version": VERSION, "software_type": VERSION},
         required=("software_version", "software_type")),
    Kind(name="OTA_PAYLOAD", limit=files.MAX_FILE, key_path=None, user_path="releases/ota_payload",
         fields={
             "software_version": _SOFTWARE,
             "hardware_version": VERSION,
             "notes": {"type": "string"},
             "must_pass_through": {"type": ["boolean", "null"]},
             "extra_info": {"type": ["object", "null"]},
         },
         required=("software_version", "hardware_version")),
)  # fmt: skip
_BY_NAME = {kind.name: kind for kind in KINDS}

_PREPARE: Schema = {
    "type": "object",
    "required": ["kind", "size"],
    "properties": {
        "kind": {"type": "string", "enum": list(_BY_NAME)},
        "size": {"type": "integer", "minimum": 0, "maximum": 2**40},
        "device": {"type": ["object", "null"]},
        "content_encoding": {"enum": ["gzip", "identity", None]},
    },
}
_BUILD_ID = Parameter(
    name="build_id",
    schema={"type": "string", "pattern": "^[0-9a-fA-F]{1,128}$"},
    where="path",
    required=True,
)
_PREPARED = one(shape(upload_url=TEXT, token=TEXT))
_PREPARED_PARTS = one(
    shape(part_urls={"type": "array", "items": TEXT}, complete_upload_url=TEXT, token=TEXT)
)
_EVERY_HOST = (Host.API, Host.INGRESS, Host.FILES)
_DEVICE_HOSTS = (Host.INGRESS, Host.FILES)


def served() -> list[Served]:
    """Return the operations of prepared uploads."""
    found = [
        _with_key("upload", "PrepareUpload", "Prepare an upload", _PREPARE, _prepare,
                  status=200, answer=_PREPARED),
        by_project("POST", "/upload", "PrepareUploadAsUser", "Prepare an upload", _prepare,
                   tag="files", role=Role.PROJECT_MANAGER, body=_PREPARE,
                   answers={200: _PREPARED}, hosts=_EVERY_HOST),
        by_project("POST", "/upload_multipart", "PrepareUploadInParts",
                   "Prepare an upload in parts", _prepare_parts,
                   tag="files", role=Role.PROJECT_MANAGER, body=_PREPARE,
                   answers={200: _PREPARED_PARTS}, hosts=_EVERY_HOST),
        by_project("GET", "/symbols-by-gnu-build-id/{build_id}", "FindSymbols",
                   "Say whether symbols of a build are there", _find_symbols,
                   tag="files", hosts=_EVERY_HOST, answers={200: one(shape(id=NUMBER))},
                   parameters=(_BUILD_ID,)),
        _with_key("upload/trace-import", "ImportTrace", "Import a trace", _TRACE, _import_trace),
    ]  # fmt: skip
    for kind in KINDS:
        handler = _committer(kind)
        name = "".join(word.capitalize() for word in kind.name.split("_"))
        if kind.name == "COREDUMP":
            found.append(_coredump(handler))
        elif kind.key_path is not None:
            found.append(
                _with_key(f"upload/{kind.key_path}", f"Commit{name}", f"Commit a {kind.name}",
                          kind.body(), handler, refusals=(409,))
            )  # fmt: skip
        found.append(
            by_project("POST", f"/{kind.user_path}", f"Commit{name}AsUser",
                       f"Commit a {kind.name}", handler, tag="files", hosts=_EVERY_HOST,
                       role=Role.PROJECT_MANAGER, body=kind.body(), answers={202: OPEN},
                       refusals=(409,))
        )  # fmt: skip
    return found


def _with_key(
    path: str,
    name: str,
    summary: str,
    body: Schema,
    handler: Handler,
    *,
    status: int = 202,
    answer: Schema = OPEN,
    refusals: tuple[int, ...] = (),
) -> Served:
    operation = Operation(
        method="POST",
        path=f"/api/v0/{path}",
        name=name,
        summary=summary,
        tag="files",
        description="Accepts the project key.",
        security=("ProjectKey",),
        bodies={JSON_TYPE: body},
        answers={status: {JSON_TYPE: answer}},
        refusals=(400, 403, 413, 415, 429, *refusals),
    )
    return Served(
        operation=operation, handler=handler, access=Access.PROJECT_KEY, hosts=_DEVICE_HOSTS
    )


def _coredump(commit: Handler) -> Served:
    """One path for both: a commit comes as JSON, a core dump itself as bytes or in a form."""

    async def handler(exchange: Exchange) -> Response:
        if media_type(exchange.request) != JSON_TYPE:
            return await take_direct_coredump(exchange)
        exchange.body = decode_json(await exchange.request.body())
        refuse(check(exchange.body, _BY_NAME["COREDUMP"].body()))
        return await commit(exchange)

    binary: Schema = {"type": "string", "format": "binary"}
    operation = Operation(
        method="POST",
        path="/api/v0/upload/coredump",
        name="PushCoredump",
        summary="Push a core dump, or commit a prepared one",
        description="Accepts the project key.",
        tag="push",
        security=("ProjectKey",),
        parameters=(Parameter(name="device_serial", schema=SLUG),),
        bodies={
            JSON_TYPE: _BY_NAME["COREDUMP"].body(),
            "application/octet-stream": binary,
            "multipart/form-data": {"type": "object", "properties": {"File": binary}},
        },
        answers={202: {JSON_TYPE: OPEN}},
        refusals=(400, 403, 409, 413, 415, 429),
    )
    return Served(
        operation=operation,
        handler=handler,
        access=Access.PROJECT_KEY,
        hosts=_DEVICE_HOSTS,
        max_body=MAX_COREDUMP + 64 * 1024,
        own_body=True,
    )


async def _prepare(exchange: Exchange) -> Response:
    secret, token = _new_upload(exchange, parts=0)
    base = str(exchange.request.base_url)
    url = files.upload_url(exchange.cloud, secret, base)
    return JSON({"data": {"upload_url": url, "token": token}})


async def _prepare_parts(exchange: Exchange) -> Response:
    count = min(files.MAX_PARTS, max(1, -(-exchange.body["size"] // files.PART_BYTES)))
    secret, token = _new_upload(exchange, parts=count)
    base = str(exchange.request.base_url)
    cloud = exchange.cloud
    urls = [files.upload_url(cloud, secret, base, part) for part in range(1, count + 1)]
    whole = files.upload_url(cloud, secret, base)
    return JSON({"data": {"part_urls": urls, "complete_upload_url": whole, "token": token}})


def _new_upload(exchange: Exchange, *, parts: int) -> tuple[str, str]:
    body, project = exchange.body, exchange.project
    limit = _BY_NAME[body["kind"]].limit
    if body["size"] > limit:
        # The words that released tools look for.
        raise invalid(f"Uploaded file is too big: {limit} bytes at most")
    secret, token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    exchange.cloud.table("observability/uploads").put(
        secret,
        {
            "project": f"{project.organization}/{project.slug}",
            "kind": body["kind"],
            "size": body["size"],
            "content_encoding": body.get("content_encoding"),
            "created": project.now,
            "parts": parts,
            "blob": None,
        },
    )
    exchange.cloud.table("observability/tokens").put(token, secret)
    return secret, token


def _committer(kind: Kind) -> Handler:
    async def commit(exchange: Exchange) -> Response:
        record = _claim(exchange, kind)
        return _COMMITS.get(kind.name, _keep)(exchange, kind, record)

    return commit


def _claim(exchange: Exchange, kind: Kind) -> Record:
    """Return name, MD5 and bytes of the upload that a token names; a token serves once."""
    cloud, project, told = exchange.cloud, exchange.project, exchange.body["file"]
    tokens = cloud.table("observability/tokens")
    secret = tokens.get(told["token"])
    upload = cloud.table("observability/uploads").get(secret) if secret else None
    if upload is None or upload["project"] != f"{project.organization}/{project.slug}":
        raise invalid("the upload token is not known")
    if project.now > upload["created"] + files.UPLOAD_LIFE_S:
        raise invalid("the upload token has expired")
    if upload["kind"] != kind.name:
        raise invalid(f"the upload was prepared as {upload['kind']}")
    if upload["blob"] is None:
        raise invalid("nothing was uploaded for this token")
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
    if kind.name in {"MAR", "CUSTOM_DATA_RECORDING"}:
        _seen(exchange, details)
    _add_file(exchange, kind, found, details)
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


def _commit_release(exchange: Exchange, _kind: Kind, found: Record) -> Response:
    body, project = exchange.body, exchange.project
    software = body["software_version"]
    version = software["version"]
    if isinstance(version, list):
        version = version[1]
    if check(version, RELEASE_VERSION):
        raise invalid_fields({"software_version": {"version": ["Not a Semantic Version."]}})
    release = project.release(version)
    artifact = {
        "id": project.next_id("artifacts"),
        "type": "firmware",
        "hardware_version": body["hardware_version"],
        "software_type": software["software_type"],
        "build_id": None,
        "filename": found["name"],
        "blob": found["blob"],
        "md5": found["md5"],
        "size": found["size"],
        "created": project.now,
    }
    same = (artifact["hardware_version"], artifact["software_type"])
    for other in release["artifacts"]:
        if (other["hardware_version"], other["software_type"]) == same:
            raise ObservabilityRefused(409, "this release has such an artifact already")
    changed = {**release, "artifacts": [*release["artifacts"], artifact], "updated": project.now}
    changed |= {name: body[name] for name in ("notes", "extra_info") if name in body}
    changed["revision"] = software.get("revision") or release["revision"]
    changed["must_pass_through"] = bool(body.get("must_pass_through"))
    project.table("releases").put(version, changed)
    return accepted(exchange)


_COMMITS = {
    "COREDUMP": _commit_coredump,
    "ELF_COREDUMP": _commit_elf,
    "SYMBOL_FILE": _commit_symbols,
    "OTA_PAYLOAD": _commit_release,
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


async def _find_symbols(exchange: Exchange) -> Response:
    wanted = exchange.path["build_id"].lower()
    for record in exchange.project.table("files").values():
        if record["details"].get("gnu_build_id") == wanted:
            return JSON({"data": {"id": record["id"]}})
    raise ObservabilityRefused(404, "no symbols of this build")


_TRACE: Schema = {
    "type": "object",
    "required": _IDENTITY["required"],
    "properties": {
        **_IDENTITY["properties"],
        "reason": {"type": ["string", "integer", "null"]},
        "captured_date": {"type": "string", "maxLength": 64},
        "processes": {"type": "array"},
        "threads": {"type": "array"},
    },
}


async def _import_trace(exchange: Exchange) -> Response:
    body = exchange.body
    info = {key: body[key] for key in ("reason", "processes", "threads") if key in body}
    take_event(exchange.project, {**body, "type": "trace", "event_info": info}, None)
    return accepted(exchange)
