"""The common parts of resources: `$meta`, `ETag`, `If-Match`, JSON bodies (D2.3, D5.1 to D5.3)."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from agent.standin.core.responses import JSON
from agent.standin.core.schema import BadJSON, Schema, check, decode, first_error
from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request, invalid


def new_version() -> str:
    """Return a random version."""
    return secrets.token_hex(8)


def with_meta(resource: dict[str, Any], created_at: str, updated_at: str = "") -> dict[str, Any]:
    """Return a resource with `$meta`, whose version is a hash of the content."""
    content = msgspec.json.encode([resource, updated_at], order="sorted")
    version = hashlib.sha256(content).hexdigest()[:16]
    meta = {"version": version, "createdAt": created_at, "updatedAt": updated_at or created_at}
    return {**resource, "$meta": meta}


def answer_one(resource: dict[str, Any], status: int = 200) -> Response:
    """Return a single resource with its version as `ETag`."""
    return JSON(resource, status, headers={"ETag": resource["$meta"]["version"]})


def accepted() -> Response:
    """Return the empty 202 that most changes answer with."""
    return Response(status_code=202)


def check_if_match(request: Request, version: str) -> None:
    """Raise 412 if `If-Match` names another version; without the header nothing is checked."""
    header = request.headers.get("if-match")
    if header is None:
        return
    wanted = [_bare(part) for part in header.split(",")]
    if "*" not in wanted and version not in wanted:
        raise DeviceCloudRefused(
            412, "PreconditionFailedError: the resource has changed since that version"
        )


async def receive_body(request: Request) -> None:
    """Receive the whole body before the resource that it changes is read.

    From then on no other request is served until the change is stored: while a body dribbles in,
    If-Match would be compared with a version that is no longer the latest.
    """
    await request.body()


async def read_json(request: Request, schema: Schema) -> Any:
    """Return the body as a JSON value that fits `schema`.

    Raises 415 on another media type, 400 if it is no JSON, 422 if it does not fit.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise DeviceCloudRefused(415, "the body is sent as application/json")
    value = decode_json(await request.body())
    require(value, schema)
    return value


def require(value: Any, schema: Schema) -> None:
    """Raise 422 if a value does not fit `schema`."""
    errors = check(value, schema)
    if errors:
        raise invalid(first_error(errors))


def decode_json(body: bytes) -> Any:
    """Return the JSON value of a body. Raises 400 if it is none."""
    try:
        return decode(body)
    except BadJSON as error:
        raise bad_request(f"the body is not JSON: {error}") from error


def _bare(etag: str) -> str:
    return etag.strip().removeprefix("W/").strip('"')
