"""The server of the stand-in: both halves on one port, or each host on its own.

It runs in the event loop of the caller. This is the one module that knows both halves.
"""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache

from starlette.types import ASGIApp

from agent.standin import control
from agent.standin.certificates import wrong_certificate
from agent.standin.core import connections
from agent.standin.core.dispatch import Dispatcher, Endpoint
from agent.standin.core.guard import HostGuard
from agent.standin.core.operation import Host
from agent.standin.core.responses import Refused
from agent.standin.device_cloud import routes as device_cloud
from agent.standin.device_cloud.refusals import DeviceCloudRefused
from agent.standin.faults import FaultLayer, has_wrong_certificate, triggers_wrong_certificate
from agent.standin.observability import routes as observability
from agent.standin.observability.refusals import ObservabilityRefused
from agent.standin.state import Cloud

_WAITING = 1024
"""Connections that wait to be accepted."""
_STOP_S = 2.0
"""Seconds that an answer in progress may take once the stand-in has to stop."""


@contextlib.asynccontextmanager
async def serving(
    cloud: Cloud,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    split: bool = False,
    strict: bool = False,
    around: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> AsyncIterator[Cloud]:
    """Serve `cloud` until the block ends; `cloud.urls` is filled before it begins.

    `around` puts a layer of the caller's around each application.

    With `split`, `port` is the device cloud's and every other host gets a free one; with `strict`,
    too, and none takes what another is for. Raises OSError if the address cannot be listened on.
    """
    split = split or strict
    by_host = collect(cloud, strict=strict)
    by_port: dict[Host | None, list[Endpoint]] = dict(by_host.items())
    if not split:
        by_port = {None: [route for routes in by_host.values() for route in routes]}
    apps = {name: _app(cloud, routes) for name, routes in by_port.items()}
    sockets: dict[Host | None, socket.socket] = {}
    tasks: list[asyncio.Task[None]] = []
    servers: list[connections.Server] = []
    with contextlib.ExitStack() as opened:
        for name in apps:
            wanted = port if name in {None, Host.DEVICE_CLOUD} else 0
            sockets[name] = opened.enter_context(listen(host, wanted))
        scheme = "https" if has_wrong_certificate(cloud) else "http"
        cloud.urls = {
            name.value: base_url(sockets[name if split else None], scheme) for name in Host
        }
        try:
            for name, app in apps.items():
                server = connections.Server(_config(around(app), cloud))
                servers.append(server)
                tasks.append(asyncio.create_task(server.serve([sockets[name]])))
            while not all(server.started for server in servers):
                for task in tasks:
                    if task.done():
                        task.result()
                await asyncio.sleep(0)
            for listening in sockets.values():
                # The loop accepts few at once; more may wait in the queue of the system.
                listening.listen(_WAITING)
            yield cloud
        finally:
            await _end(servers, tasks)
            await cloud.close()


async def _end(servers: list[connections.Server], tasks: list[asyncio.Task[None]]) -> None:
    """End servers and the tasks that run them, once their answers have; none is waited for long."""
    for server in servers:
        server.end()
    _, late = await asyncio.wait(tasks, timeout=_STOP_S)
    for server in servers:
        # A request that is unfinished by now never ends, and its task with it.
        for unfinished in list(server.server_state.connections):
            unfinished.transport.abort()
        server.force_exit = True
    if late:
        _, stuck = await asyncio.wait(late, timeout=_STOP_S)
        await connections.cancel_and_wait(*stuck, within_s=_STOP_S)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket that does not block. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # IPPROTO_TCP is explicit: without it asyncio does not recognise an accepted connection as TCP
    # and never sets TCP_NODELAY, which costs 40 ms a request.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_WAITING)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening


def base_url(listening: socket.socket, scheme: str = "http") -> str:
    """Return the URL of a listening socket, without a slash at the end."""
    host, port = listening.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def collect(cloud: Cloud, *, strict: bool = False) -> dict[Host, list[Endpoint]]:
    """Return the routes of both halves by host; with `strict` each at its own alone."""
    by_host: dict[Host, list[Endpoint]] = {host: [] for host in Host}
    for half in (device_cloud.routes(cloud), observability.routes(cloud, strict=strict)):
        for host, routes in half.items():
            by_host[host] += routes
    return by_host


def refusal(path: str, status: int, message: str) -> Refused:
    """Return the error that answers `path`, in the format of the half that the path is of."""
    if path.startswith(("/api/", "/auth/")):
        return ObservabilityRefused(status, message)
    return DeviceCloudRefused(status, message)


def _app(cloud: Cloud, routes: Sequence[Endpoint]) -> ASGIApp:
    dispatcher = Dispatcher([*routes, *control.routes(cloud, refusal)], cloud, refusal)
    return HostGuard(FaultLayer(dispatcher, cloud, refusal), cloud, refusal)


def _config(app: ASGIApp, cloud: Cloud) -> connections.ServerConfig:
    return connections.ServerConfig(
        app,
        tls=lambda: _wrong_context() if triggers_wrong_certificate(cloud) else None,
        clock=cloud.clock,
        log_config=None,
        backlog=connections.ACCEPTED_AT_ONCE,
        lifespan="off",
        ws="none",
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
    )


@cache
def _wrong_context() -> ssl.SSLContext:
    return connections.server_context(wrong_certificate())
