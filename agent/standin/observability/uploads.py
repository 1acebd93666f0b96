"""Uploads in three steps: prepare, put, commit (clauses O5.2, O5.3); and traces as JSON."""

import math
import secrets

import msgspec
from starlette.responses import Response

from agent.json_value import JSONValue
from agent.standin.core.operation import Host, in_path, in_query
from agent.standin.core.responses import JSON
from agent.standin.core.schema import NUMBER, OBJECT, TEXT, Schema, body_schema, object_schema
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
    declare,
)
from agent.standin.observability.project import IDENTITY_FIELDS, SLUG, Identity
from agent.standin.observability.refusals import ObservabilityRefused, invalid
from agent.standin.observability.resources.lists import item_schema
from agent.standin.observability.tables import FILES

_PREPARE = upload_commits.prepare_schema()
_BUILD_ID = in_path("build_id", {"type": "string", "pattern": "^[0-9a-fA-F]{1,128}$"})
_PREPARED = item_schema(object_schema(upload_url=TEXT, token=TEXT))
_PREPARED_PARTS = item_schema(
    object_schema(part_urls={"type": "array", "items": TEXT}, complete_upload_url=TEXT, token=TEXT)
)
_ACCEPTED = {202: OBJECT}
_HOSTS = (Host.INGRESS, Host.FILES)
_API = (Host.API,)
_EVERY = (Host.API, *_HOSTS)


def _committing(kind: upload_commits.UploadKind) -> list[ServedOperation]:
    """Return the operations that commit a kind of file: with the project key, and as a user."""
    handler, body = upload_commits.commit_handler(kind), kind.body()
    name = "Commit" + "".join(word.capitalize() for word in kind.name.split("_"))
    served = []
    if kind.name == "COREDUMP":
        served.append(_coredump(handler))
    elif kind.key_path is not None:
        served.append(
            declare(
                f"POST /api/v0/upload/{kind.key_path}", name, f"Commit a {kind.name}", handler,
                tag="files", access=Access.PROJECT_KEY, hosts=(kind.host,), also=_EVERY,
                body=body, answers=_ACCEPTED, refusals=(404, 409, 429),
            )
        )  # fmt: skip
    as_user = declare(
        f"POST {PROJECT_PATH}/{kind.user_path}", f"{name}AsUser", f"Commit a {kind.name}", handler,
        tag="files", role=Role.PROJECT_MANAGER, hosts=(kind.host,), also=_EVERY,
        body=body, answers=_ACCEPTED, refusals=(409,),
    )  # fmt: skip
    return [*served, as_user]


def _coredump(commit: Handler) -> ServedOperation:
    """Return the operation of a path with two uses: commit as JSON, push as bytes or form."""

    async def handler(context: RequestContext) -> Response:
        is_json = context.media_type == JSON_TYPE
        return await (commit(context) if is_json else push.push_coredump(context))

    binary: Schema = {"type": "string", "format": "binary", "minLength": 1}
    return declare(
        "POST /api/v0/upload/coredump", "PushCoredump",
        "Push a core dump, or commit a prepared one", handler,
        tag="push", access=Access.PROJECT_KEY, hosts=(Host.INGRESS,),
        also=(Host.API, Host.FILES), max_body=push.MAX_COREDUMP + 64 * 1024, own_body=True,
        parameters=in_query(device_serial=SLUG),
        bodies={
            JSON_TYPE: upload_commits.BY_NAME["COREDUMP"].body(),
            "application/octet-stream": binary,
            "multipart/form-data": object_schema(File=binary),
        },
        answers=_ACCEPTED, refusals=(404, 409, 429),
    )  # fmt: skip


async def _prepare(context: RequestContext) -> Response:
    secret, token = _new_upload(context, parts=0)
    url = file_storage.upload_url(context.cloud, secret)
    return JSON({"data": {"upload_url": url, "token": token}})


async def _prepare_parts(context: RequestContext) -> Response:
    count = min(
        file_storage.MAX_PARTS, max(1, math.ceil(context.body["size"] / file_storage.PART_BYTES))
    )
    secret, token = _new_upload(context, parts=count)
    whole = file_storage.upload_url(context.cloud, secret)
    urls = [f"{whole}/{part}" for part in range(1, count + 1)]
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


_TRACE = body_schema(
    *IDENTITY_FIELDS,
    **IDENTITY_FIELDS,
    reason={"type": ["string", "integer", "null"]},
    captured_date={"type": "string", "maxLength": 64},
    processes={"type": "array", "items": {}},
    threads={"type": "array", "items": {}},
)


async def _import_trace(context: RequestContext) -> Response:
    body = context.body
    info = {key: body[key] for key in ("reason", "processes", "threads") if key in body}
    identity = msgspec.structs.asdict(msgspec.convert(body, Identity))
    add_event(context.project, PushedEvent(type="trace", event_info=info, **identity), None)
    return push.accepted_response(context)


_KEY, _MANAGER = Access.PROJECT_KEY, Role.PROJECT_MANAGER
OPERATIONS = (
    declare(
        "POST /api/v0/upload", "PrepareUpload", "Prepare an upload", _prepare,
        tag="files", access=_KEY, hosts=_HOSTS, also=_API, before=_refuse_too_large,
        body=_PREPARE, answers={200: _PREPARED}, refusals=(429,),
    ),
    declare(
        f"POST {PROJECT_PATH}/upload", "PrepareUploadAsUser", "Prepare an upload", _prepare,
        tag="files", role=_MANAGER, hosts=_HOSTS, also=_API, before=_refuse_too_large,
        body=_PREPARE, answers={200: _PREPARED},
    ),
    declare(
        f"POST {PROJECT_PATH}/upload_multipart", "PrepareUploadInParts",
        "Prepare an upload in parts", _prepare_parts,
        tag="files", role=_MANAGER, hosts=_HOSTS, also=_API, before=_refuse_too_large,
        body=_PREPARE, answers={200: _PREPARED_PARTS},
    ),
    declare(
        f"GET {PROJECT_PATH}/symbols-by-gnu-build-id/{{build_id}}", "FindSymbols",
        "Say whether symbols of a build are there", _find_symbols,
        tag="files", hosts=(Host.FILES,), also=(Host.API, Host.INGRESS),
        parameters=(_BUILD_ID,), answers={200: item_schema(object_schema(id=NUMBER))},
    ),
    declare(
        "POST /api/v0/upload/trace-import", "ImportTrace", "Import a trace", _import_trace,
        tag="files", access=_KEY, hosts=(Host.INGRESS,), also=_EVERY, body=_TRACE,
        answers=_ACCEPTED, refusals=(429,),
    ),
    *(served for kind in upload_commits.KINDS for served in _committing(kind)),
)  # fmt: skip
