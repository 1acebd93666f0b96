"""What every resource has: `$meta`, `ETag`, `If-Match` (clauses D2.3, D5.1 to D5.3)."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request
from agent.standin.errors import JSON

if TYPE_CHECKING:
    from starlette.requests import Request


def new_version() -> str:
    """Return a version that no other has."""
    return secrets.token_hex(8)


def with_meta(resource: dict[str, Any], created_at: str, updated_at: str = "") -> dict[str, Any]:
    """Return a resource with `$meta`, whose version follows its content."""
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
    """Refuse a change that was meant for another version; without the header nothing is checked."""
    header = request.headers.get("if-match")
    if header is None:
        return
    wanted = [_bare(part) for part in header.split(",")]
    if "*" not in wanted and version not in wanted:
        raise DeviceCloudRefused(
            412, "PreconditionFailedError: the resource has changed since that version"
        )


async def read_json(request: Request) -> Any:
    """Return the body as a JSON value. Refuses what is none with 400, another type with 415."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise DeviceCloudRefused(415, "the body is sent as application/json")
    return decode_json(await request.body())


def decode_json(body: bytes) -> Any:
    """Return the JSON value of a body, or refuse it with 400."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not JSON: {error}") from error


def _bare(etag: str) -> str:
    return etag.strip().removeprefix("W/").strip('"')
