"""The environment of the demonstration: a virtual kit on its ports, a stand-in cloud, a profile."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.config import Configuration, load
from agent.config.write import write_profile
from agent.standin.ready_line import credentials
from agent.standin.serve import serving
from agent.standin.state import ORGANIZATION, PROJECT, Cloud, open_cloud
from at.virtual.modem import Port
from at.virtual.options import VirtualOptions
from at.virtual.radio_world import Coordinates
from at.virtual.server.pty import PtyServer
from at.virtual.server.runner import ModemRunner, make_modem
from at.virtual.server.tcp import TcpServer

_PROFILE = "demo"
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class DemoEnvironment:
    """The virtual kit, the stand-in and the configuration that the steps work with."""

    kit: ModemRunner
    cloud: Cloud
    configuration: Configuration
    console_port: str

    def true_position(self) -> Coordinates:
        """Return the true position of the kit, for comparison with a fix."""
        return self.kit.modem.kit.position


@asynccontextmanager
async def demo_environment() -> AsyncIterator[DemoEnvironment]:
    """Start the environment in a temporary folder; stop and remove it afterwards."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cellagent-demo-")))
        cloud = open_cloud()
        await stack.enter_async_context(serving(cloud))
        modem = make_modem(VirtualOptions(dialect="serial-modem", instant=True), console_apart=True)
        kit = ModemRunner(modem)
        stack.callback(kit.stop)
        port, send = await _serve(stack, folder / "kit", kit.receive)
        kit.attach(Port.AT, send)
        console, send = await _serve(stack, folder / "console", kit.receive_console)
        kit.attach(Port.CONSOLE, send)
        companion, send = await _serve(stack, folder / "companion", kit.receive_companion)
        kit.companion_sends = send
        kit.start()
        configuration = _configured(folder, cloud, port, console, companion)
        yield DemoEnvironment(kit, cloud, configuration, console)


async def _serve(
    stack: AsyncExitStack, path: Path, received: Callable[[bytes], None]
) -> tuple[str, Callable[[bytes], None]]:
    """Serve one port of the kit: on a pseudo-terminal, or on TCP where the system has none."""
    if os.name == "nt":
        server = TcpServer(received)
        stack.push_async_callback(server.close)
        await server.listen(_LOOPBACK, 0)
        return server.port, server.send
    terminal = PtyServer(path, received)
    stack.callback(terminal.close)
    return str(path), terminal.send


def _configured(
    folder: Path, cloud: Cloud, port: str, console: str, companion: str
) -> Configuration:
    """Write the profile as `cloud serve --write-profile` does, and load it as a command does."""
    secrets = credentials(cloud, folder)
    file = folder / "config.toml"
    values = {
        "hosts": {host: url for host, url in cloud.urls.items() if host != "downloads"},
        "account": {
            "organization": ORGANIZATION,
            "project": PROJECT,
            "team_id": cloud.team_id,
            "email": secrets["user_email"],
        },
        "kit": {"port": port, "console_port": console, "companion_port": companion},
        "location": {"wifi": "companion"},
    }
    write_profile(
        _PROFILE,
        values,
        {
            "api_key": secrets["api_key"],
            "organization_token": secrets["organization_auth_token"],
            "project_key": secrets["project_key"],
        },
        file=file,
    )
    return load(
        _PROFILE,
        environ={"CELLAGENT_CONFIG": str(file), "CELLAGENT_STATE_DIR": str(folder / "state")},
    )
