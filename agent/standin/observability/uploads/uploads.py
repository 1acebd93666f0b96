"""Uploads in three steps: prepare, put, commit (clauses O5.2, O5.3); and traces as JSON."""

from __future__ import annotations

import math
import secrets
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from agent.standin.core.operation import Host, Operation, Parameter
from agent.standin.core.responses import JSON
from agent.standin.core.schema import check
from agent.standin.observability.access import Access, Role
from agent.standin.observability.exchange import JSON_TYPE, Exchange, Served, decode_json, refuse
from agent.standin.observability.ingest.intake import take_event
from agent.standin.observability.ingest.push import (
    MAX_COREDUMP,
    accepted,
    media_type,
    take_direct_coredump,
)
from agent.standin.observability.project import SLUG
from agent.standin.observability.refusals import ObservabilityRefused, invalid
from agent.standin.observability.resources.conventions import one
from agent.standin.observability.resources.resources import by_project
from agent.standin.observability.shapes import NUMBER, OPEN, TEXT, shape
from agent.standin.observability.uploads import files
from agent.standin.observability.uploads.commits import committer
from agent.standin.observability.uploads.upload_kinds import (
    BY_NAME,
    IDENTITY,
    KINDS,
    TOKEN_BYTES,
    prepare,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.standin.core.schema import Schema
    from agent.standin.observability.exchange import Handler

_PREPARE = prepare()
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
                  status=200, answer=_PREPARED, before=_refuse_too_large),
        by_project("POST", "/upload", "PrepareUploadAsUser", "Prepare an upload", _prepare,
                   tag="files", role=Role.PROJECT_MANAGER, body=_PREPARE,
                   answers={200: _PREPARED}, hosts=_EVERY_HOST, before=_refuse_too_large),
        by_project("POST", "/upload_multipart", "PrepareUploadInParts",
                   "Prepare an upload in parts", _prepare_parts,
                   tag="files", role=Role.PROJECT_MANAGER, body=_PREPARE,
                   answers={200: _PREPARED_PARTS}, hosts=_EVERY_HOST,
                   before=_refuse_too_large),
        by_project("GET", "/symbols-by-gnu-build-id/{build_id}", "FindSymbols",
                   "Say whether symbols of a build are there", _find_symbols,
                   tag="files", hosts=_EVERY_HOST, answers={200: one(shape(id=NUMBER))},
                   parameters=(_BUILD_ID,)),
        _with_key("upload/trace-import", "ImportTrace", "Import a trace", _TRACE, _import_trace),
    ]  # fmt: skip
    for kind in KINDS:
        handler = committer(kind)
        name = "".join(word.capitalize() for word in kind.name.split("_"))
        if kind.name == "COREDUMP":
            found.append(_coredump(handler))
        elif kind.key_path is not None:
            found.append(
                _with_key(f"upload/{kind.key_path}", f"Commit{name}", f"Commit a {kind.name}",
                          kind.body(), handler, refusals=(404, 409))
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
    before: Callable[[Any], None] | None = None,
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
        operation=operation,
        handler=handler,
        access=Access.PROJECT_KEY,
        hosts=_DEVICE_HOSTS,
        before=before,
    )


def _coredump(commit: Handler) -> Served:
    """One path for both: a commit comes as JSON, a core dump itself as bytes or in a form."""

    async def handler(exchange: Exchange) -> Response:
        if media_type(exchange.request) != JSON_TYPE:
            return await take_direct_coredump(exchange)
        exchange.body = decode_json(await exchange.request.body())
        refuse(check(exchange.body, BY_NAME["COREDUMP"].body()))
        return await commit(exchange)

    binary: Schema = {"type": "string", "format": "binary", "minLength": 1}
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
            JSON_TYPE: BY_NAME["COREDUMP"].body(),
            "application/octet-stream": binary,
            "multipart/form-data": shape(File=binary),
        },
        answers={202: {JSON_TYPE: OPEN}},
        refusals=(400, 403, 404, 409, 413, 415, 429),
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
    count = min(files.MAX_PARTS, max(1, math.ceil(exchange.body["size"] / files.PART_BYTES)))
    secret, token = _new_upload(exchange, parts=count)
    base = str(exchange.request.base_url)
    cloud = exchange.cloud
    urls = [files.upload_url(cloud, secret, base, part) for part in range(1, count + 1)]
    whole = files.upload_url(cloud, secret, base)
    return JSON({"data": {"part_urls": urls, "complete_upload_url": whole, "token": token}})


def _new_upload(exchange: Exchange, *, parts: int) -> tuple[str, str]:
    body, project = exchange.body, exchange.project
    files.forget_expired(exchange.cloud)
    secret, token = secrets.token_urlsafe(TOKEN_BYTES), secrets.token_urlsafe(TOKEN_BYTES)
    exchange.cloud.table("observability/uploads").put(
        secret,
        {
            "project": f"{project.organization}/{project.slug}",
            "kind": body["kind"],
            "size": body["size"],
            "content_encoding": body.get("content_encoding"),
            "created": project.now,
            "parts": parts,
            "token": token,
            "blob": None,
        },
    )
    exchange.cloud.table("observability/tokens").put(token, secret)
    return secret, token


def _refuse_too_large(body: Any) -> None:
    kind = BY_NAME.get(str(body.get("kind"))) if isinstance(body, dict) else None
    size = body.get("size") if kind is not None else None
    if kind is not None and isinstance(size, int | float) and size > kind.limit:
        # The words that released tools look for.
        raise invalid(f"Uploaded file is too big: {kind.limit} bytes at most")


async def _find_symbols(exchange: Exchange) -> Response:
    wanted = exchange.path["build_id"].lower()
    for record in exchange.project.table("files").values():
        if record["details"].get("gnu_build_id") == wanted:
            return JSON({"data": {"id": record["id"]}})
    raise ObservabilityRefused(404, "no symbols of this build")


_TRACE: Schema = {
    "type": "object",
    "required": IDENTITY["required"],
    "properties": {
        **IDENTITY["properties"],
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
