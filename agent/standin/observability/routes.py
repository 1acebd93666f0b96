"""The routes of the observability half by host, and its OpenAPI document.

The document declares HTTP Basic alone, as the schema reference of the service does, and describes
the other mechanisms (clause O4.4).
"""

from functools import lru_cache

from starlette.responses import Response

from agent.standin.core.dispatch import Endpoint
from agent.standin.core.openapi import document as openapi_document
from agent.standin.core.operation import Host
from agent.standin.core.responses import JSON
from agent.standin.observability import file_storage, uploads
from agent.standin.observability.access import Access
from agent.standin.observability.ingest import push
from agent.standin.observability.operations import RequestContext, ServedOperation, declare
from agent.standin.observability.refusals import ERROR_SCHEMA
from agent.standin.observability.resources import (
    crud,
    device_polling,
    organizations,
    processing_log,
    software,
)
from agent.standin.state import Cloud

_MECHANISMS = """\
Four mechanisms open this API; the scheme `Basic` declares the first two.

- HTTP Basic with email and password: the user's access, not recommended.
- HTTP Basic with email and user API key: every organization of the user but those that require
  single sign-on. It stops working when the user is removed.
- `Authorization: Bearer <organization auth token>`, for automation: one organization, with a
  project manager's access to all its projects. Taken wherever `Basic` is, but for /auth.
- `Service-Project-Key: <project key>`: one project, no secret. Taken by the operations alone
  that say so, which take nothing else.
"""


async def _published_document(context: RequestContext) -> Response:
    return JSON(document(tuple(context.cloud.urls.items())))


_ITSELF = declare(
    "GET /api/v0/openapi.json", "GetSchema", "This document", _published_document,
    tag="schema", access=Access.OPEN, answers={200: {"type": "object"}},
)  # fmt: skip


def every_operation() -> list[ServedOperation]:
    """Return all operations of this half, those whose path has fewer variables first."""
    of_devices = (push, device_polling, file_storage)
    of_users = (organizations, crud, uploads, processing_log, software)
    operations = [served for part in (*of_devices, *of_users) for served in part.OPERATIONS]
    return [_ITSELF, *sorted(operations, key=lambda one: one.operation.path.count("{"))]


def routes(cloud: Cloud, *, strict: bool = False) -> dict[Host, list[Endpoint]]:
    """Return the routes of this half; with `strict` each operation at its own hosts alone."""
    by_host: dict[Host, list[Endpoint]] = {}
    for served in every_operation():
        route = served.endpoint(cloud)
        for host in {*served.hosts} if strict else {*served.hosts, *served.also}:
            by_host.setdefault(host, []).append(route)
    return by_host


@lru_cache(maxsize=8)
def document(urls: tuple[tuple[str, str], ...] = ()) -> dict[str, object]:
    """Return the OpenAPI document of this half; `urls` are pairs of a host and its address."""
    url_of = dict(urls)
    server = url_of.get(Host.API, "/")
    served_by = {
        served.operation.name: url_of.get(served.hosts[0], server) for served in every_operation()
    }
    return openapi_document(
        [served.operation for served in every_operation()],
        title="Observability service",
        description=_MECHANISMS,
        server=server,
        components={
            "securitySchemes": {"Basic": {"type": "http", "scheme": "basic"}},
            "schemas": {"Error": ERROR_SCHEMA},
        },
        elsewhere={name: url for name, url in served_by.items() if url != server},
    )
