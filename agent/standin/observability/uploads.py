"""Uploads in three steps: prepare, put, commit (clauses O5.2, O5.3); and traces as JSON."""

from __future__ import annotations

import math
import secrets
from dataclasses import replace

import msgspec
from starlette.responses import Response

from agent.json_value import JSONValue
from agent.standin.core.operation import Host, Operation, Parameter
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.observability import file_storage, upload_commits
from agent.standin.observability.access import Access, Role
from agent.standin.observability.ingest import push
from agent.standin.observability.ingest.records import PushedEvent, add_event
from agent.standin.observability.operations import (
    JSON_TYPE,
    PROJECT_PATH,
    Handler,
    RequestContext,
    ServedOperation,
)
from agent.standin.observability.project import SLUG, Identity
from agent.standin.observability.refusals import ObservabilityRefused, invalid
from agent.standin.observability.resources.lists import item_schema
from agent.standin.observability.schemas import NUMBER, OPEN, TEXT, object_schema
from agent.standin.observability.tables import FILES

_PREPARE = upload_commits.prepare_schema()
_BUILD_ID = Parameter(
    name="build_id",
    schema={"type": "string", "pattern": "^[0-9a-fA-F]{1,128}$"},
    where="path",
    required=True,
)
_PREPARED = item_schema(object_schema(upload_url=TEXT, token=TEXT))
_PREPARED_PARTS = item_schema(
    object_schema(part_urls={"type": "array", "items": TEXT}, complete_upload_url=TEXT, token=TEXT)
)
_ACCEPTED = {202: {JSON_TYPE: OPEN}}
_HOSTS = (Host.INGRESS, Host.FILES)
_API = (Host.API,)


def operations() -> list[ServedOperation]:
    """Return the operations of prepared uploads, and the import of traces."""
    served = [*_preparing(), _find_symbols_operation(), _trace_import()]
    for kind in upload_commits.KINDS:
        served += _committing(kind)
    return served


def _preparing() -> list[ServedOperation]:
    bodies, answers = {JSON_TYPE: _PREPARE}, {200: {JSON_TYPE: _PREPARED}}
    with_key = Operation(
        method="POST", path="/api/v0/upload", name="PrepareUpload", tag="files",
        summary="Prepare an upload", bodies=bodies, answers=answers, refusals=(429,),
    )  # fmt: skip
    as_user = Operation(
        method="POST", path=PROJECT_PATH + "/upload", name="PrepareUploadAsUser", tag="files",
        summary="Prepare an upload", bodies=bodies, answers=answers,
    )  # fmt: skip
    in_parts = Operation(
        method="POST", path=PROJECT_PATH + "/upload_multipart", name="PrepareUploadInParts",
        summary="Prepare an upload in parts", tag="files", bodies=bodies,
        answers={200: {JSON_TYPE: _PREPARED_PARTS}},
    )  # fmt: skip
    return [
        ServedOperation(operation=with_key, handler=_prepare, access=Access.PROJECT_KEY,
            hosts=_HOSTS, also=_API, before=_refuse_too_large),
        ServedOperation(operation=as_user, handler=_prepare, role=Role.PROJECT_MANAGER,
            hosts=_HOSTS, also=_API, before=_refuse_too_large),
        ServedOperation(operation=in_parts, handler=_prepare_parts, role=Role.PROJECT_MANAGER,
            hosts=_HOSTS, also=_API, before=_refuse_too_large),
    ]  # fmt: skip


def _find_symbols_operation() -> ServedOperation:
    operation = Operation(
        method="GET", path=PROJECT_PATH + "/symbols-by-gnu-build-id/{build_id}",
        name="FindSymbols", summary="Say whether symbols of a build are there", tag="files",
        parameters=(_BUILD_ID,), answers={200: {JSON_TYPE: item_schema(object_schema(id=NUMBER))}},
    )  # fmt: skip
    return ServedOperation(
        operation=operation,
        handler=_find_symbols,
        hosts=(Host.FILES,),
        also=(Host.API, Host.INGRESS),
    )


def _trace_import() -> ServedOperation:
    operation = Operation(
        method="POST", path="/api/v0/upload/trace-import", name="ImportTrace", tag="files",
        summary="Import a trace", bodies={JSON_TYPE: _TRACE}, answers=_ACCEPTED, refusals=(429,),
    )  # fmt: skip
    return _with_key(operation, _import_trace, Host.INGRESS)


def _committing(kind: upload_commits.UploadKind) -> list[ServedOperation]:
    """Return the operations that commit a kind of file: with the project key, and as a user."""
    handler = upload_commits.commit_handler(kind)
    name = "Commit" + "".join(word.capitalize() for word in kind.name.split("_"))
    as_user = Operation(
        method="POST", path=f"{PROJECT_PATH}/{kind.user_path}", name=f"{name}AsUser", tag="files",
        summary=f"Commit a {kind.name}", bodies={JSON_TYPE: kind.body()}, answers=_ACCEPTED,
        refusals=(409,),
    )  # fmt: skip
    served = []
    if kind.name == "COREDUMP":
        served.append(_coredump(handler))
    elif kind.key_path is not None:
        path = f"/api/v0/upload/{kind.key_path}"
        with_key = replace(as_user, path=path, name=name, refusals=(404, 409, 429))
        served.append(_with_key(with_key, handler, kind.host))
    manager = Role.PROJECT_MANAGER
    return [
        *served,
        ServedOperation(operation=as_user, handler=handler, role=manager, hosts=(kind.host,),
            also=(Host.API, *_HOSTS)),
    ]  # fmt: skip


def _with_key(operation: Operation, handler: Handler, host: Host) -> ServedOperation:
    return ServedOperation(operation=operation, handler=handler, access=Access.PROJECT_KEY,
        hosts=(host,), also=(Host.API, *_HOSTS))  # fmt: skip


def _coredump(commit: Handler) -> ServedOperation:
    """Return the operation of a path with two uses: commit as JSON, push as bytes or form."""

    async def handler(context: RequestContext) -> Response:
        is_json = context.media_type == JSON_TYPE
        return await (commit(context) if is_json else push.push_coredump(context))

    binary: Schema = {"type": "string", "format": "binary", "minLength": 1}
    operation = Operation(
        method="POST",
        path="/api/v0/upload/coredump",
        name="PushCoredump",
        summary="Push a core dump, or commit a prepared one",
        tag="push",
        parameters=(Parameter(name="device_serial", schema=SLUG),),
        bodies={
            JSON_TYPE: upload_commits.BY_NAME["COREDUMP"].body(),
            "application/octet-stream": binary,
            "multipart/form-data": object_schema(File=binary),
        },
        answers=_ACCEPTED,
        refusals=(404, 409, 429),
    )
    return ServedOperation(
        operation=operation,
        handler=handler,
        access=Access.PROJECT_KEY,
        hosts=(Host.INGRESS,),
        also=(Host.API, Host.FILES),
        max_body=push.MAX_COREDUMP + 64 * 1024,
        own_body=True,
    )


async def _prepare(context: RequestContext) -> Response:
    secret, token = _new_upload(context, parts=0)
    base = context.base_url
    url = file_storage.upload_url(context.cloud, secret, base)
    return JSON({"data": {"upload_url": url, "token": token}})


async def _prepare_parts(context: RequestContext) -> Response:
    count = min(
        file_storage.MAX_PARTS, max(1, math.ceil(context.body["size"] / file_storage.PART_BYTES))
    )
    secret, token = _new_upload(context, parts=count)
    base = context.base_url
    cloud = context.cloud
    urls = [file_storage.upload_url(cloud, secret, base, part) for part in range(1, count + 1)]
    whole = file_storage.upload_url(cloud, secret, base)
    return JSON({"data": {"part_urls": urls, "complete_upload_url": whole, "token": token}})


def _new_upload(context: RequestContext, *, parts: int) -> tuple[str, str]:
    body, project = context.body, context.project
    file_storage.delete_expired(context.cloud)
    secret, token = (secrets.token_urlsafe(upload_commits.TOKEN_BYTES) for _ in range(2))
    upload = file_storage.Upload(
        project=project.path,
        kind=body["kind"],
        size=body["size"],
        content_encoding=body.get("content_encoding"),
        created=project.now,
        parts=parts,
        token=token,
    )
    context.cloud.table(file_storage.UPLOADS).put(secret, upload)
    context.cloud.table(file_storage.TOKENS).put(token, secret)
    return secret, token


def _refuse_too_large(body: JSONValue) -> None:
    fields = body if isinstance(body, dict) else {}
    kind, size = upload_commits.BY_NAME.get(str(fields.get("kind"))), fields.get("size")
    if kind is not None and isinstance(size, int | float) and size > kind.limit:
        # Released tools look for this text.
        raise invalid(f"Uploaded file is too big: {kind.limit} bytes at most")


async def _find_symbols(context: RequestContext) -> Response:
    build_id = context.path["build_id"].lower()
    for file in context.project.table(FILES).values():
        if file.details.get("gnu_build_id") == build_id:
            return JSON({"data": {"id": file.id}})
    raise ObservabilityRefused(404, "no symbols of this build")


_TRACE: Schema = {
    "type": "object",
    "required": upload_commits.IDENTITY["required"],
    "properties": {
        **upload_commits.IDENTITY["properties"],
        "reason": {"type": ["string", "integer", "null"]},
        "captured_date": {"type": "string", "maxLength": 64},
        "processes": {"type": "array", "items": {}},
        "threads": {"type": "array", "items": {}},
    },
}


async def _import_trace(context: RequestContext) -> Response:
    body = context.body
    info = {key: body[key] for key in ("reason", "processes", "threads") if key in body}
    identity = msgspec.structs.asdict(msgspec.convert(body, Identity))
    add_event(context.project, PushedEvent(type="trace", event_info=info, **identity), None)
    return push.accepted_response(context)
