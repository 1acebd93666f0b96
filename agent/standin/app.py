"""One ASGI application per host, made of the routes of both halves.

Each half has a module `routes` with `routes(cloud) -> {Host: [Route, …]}`. One port serves them
all, told apart by path; with `--split` each host is an application of its own that refuses the
others' routes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.dispatch import Dispatcher
from agent.standin.guard import HostGuard
from agent.standin.hosts import ALSO_AT_API, Host, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.routing import Route
    from starlette.types import ASGIApp

    from agent.standin.state import Cloud


def collect(cloud: Cloud) -> dict[Host, list[Route]]:
    """Return the routes of both halves by host."""
    from agent.standin.device_cloud.routes import routes as device_cloud
    from agent.standin.observability.routes import routes as observability
    from agent.standin.openapi import routes as documents

    found: dict[Host, list[Route]] = {host: [] for host in Host}
    for half in (device_cloud(cloud), observability(cloud), documents(cloud)):
        for host, routes in half.items():
            found[host] += routes
    return found


def one_app(cloud: Cloud) -> ASGIApp:
    """Return the application that answers for every host on one port."""
    routes = collect(cloud)
    return _app(cloud, [route for host in Host for route in routes[host]])


def split_apps(cloud: Cloud) -> dict[Host, ASGIApp]:
    """Return an application for each host, which refuses the others' routes."""
    routes = collect(cloud)
    apps: dict[Host, ASGIApp] = {}
    for host in Host:
        also = ALSO_AT_API if host is Host.API else ()
        apps[host] = _app(cloud, [*routes[host], *(route for h in also for route in routes[h])])
    return apps


def _app(cloud: Cloud, routes: Sequence[Route]) -> ASGIApp:
    from agent.standin.control import routes as control
    from agent.standin.faults import FaultLayer

    dispatcher = Dispatcher([*routes, *control(cloud)], cloud, refusal)
    return HostGuard(FaultLayer(dispatcher, cloud), cloud, refusal)


def urls_of(bases: Mapping[Host, str]) -> dict[str, str]:
    """Return the `urls` object of the ready line."""
    return {host.value: bases[host] for host in Host}
