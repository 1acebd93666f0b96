"""The common parts of resources: `$meta` and `ETag` (D2.3, D5.1)."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import msgspec
from starlette.responses import Response

from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema, check, first_error
from agent.standin.device_cloud.refusals import invalid


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


def require(value: Any, schema: Schema) -> None:
    """Raise 422 if a value does not fit `schema`."""
    errors = check(value, schema)
    if errors:
        raise invalid(first_error(errors))
