"""The routes of the observability half, by host, from the operations that it declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.observability.exchange import endpoint
from agent.standin.observability.ingest import push
from agent.standin.observability.resources import (
    device_config,
    latest,
    organizations,
    processing_log,
    resources,
)
from agent.standin.observability.uploads import files, uploads

if TYPE_CHECKING:
    from starlette.routing import Route

    from agent.standin.core.hosts import Host
    from agent.standin.observability.exchange import Served
    from agent.standin.state import Cloud


def every_operation() -> list[Served]:
    """Return all operations of this half; a path with fewer variables stands before others."""
    parts = (push, latest, device_config, files, organizations, resources, uploads, processing_log)
    found = [served for part in parts for served in part.served()]
    return sorted(found, key=lambda served: served.operation.path.count("{"))


def routes(cloud: Cloud) -> dict[Host, list[Route]]:
    """Return the routes of this half."""
    found: dict[Host, list[Route]] = {}
    for served in every_operation():
        route = endpoint(served, cloud)
        for host in served.hosts:
            found.setdefault(host, []).append(route)
    return found
