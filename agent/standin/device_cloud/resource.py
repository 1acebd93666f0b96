"""The common parts of resources: `$meta` and `ETag` (D2.3, D5.1)."""

import hashlib
import secrets
from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema, check, first_error
from agent.standin.device_cloud.refusals import invalid


def new_version() -> str:
    """Return a random version."""
    return secrets.token_hex(8)


class Resource(dict[str, object]):
    """A resource as JSON, with `$meta`."""

    def __init__(
        self, content: Mapping[str, object], version: str, created_at: str, updated_at: str
    ) -> None:
        meta = {"version": version, "createdAt": created_at, "updatedAt": updated_at}
        super().__init__({**content, "$meta": meta})
        self.version = version


def with_meta(content: Mapping[str, object], created_at: str, updated_at: str = "") -> Resource:
    """Return a resource whose version is a hash of its content."""
    hashed = msgspec.json.encode([content, updated_at], order="sorted")
    version = hashlib.sha256(hashed).hexdigest()[:16]
    return Resource(content, version, created_at, updated_at or created_at)


def told(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the optional texts of a resource without those that are empty: none is sent empty."""
    return {name: text for name, text in texts.items() if text}


def answer_one(resource: Resource, status: int = 200) -> Response:
    """Return a single resource with its version as `ETag`."""
    return JSON(resource, status, headers={"ETag": resource.version})


def accepted() -> Response:
    """Return the empty 202 that most changes answer with."""
    return Response(status_code=202)


def require(value: object, schema: Schema) -> None:
    """Raise 422 if a value does not fit `schema`."""
    errors = check(value, schema)
    if errors:
        raise invalid(first_error(errors))
