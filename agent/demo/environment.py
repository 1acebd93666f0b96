"""The environment of the demonstration: a virtual kit on its ports, a stand-in cloud, a profile."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.config import Configuration, load
from agent.config.write import write_profile
from agent.files.temporary_folder import temporary_folder
from agent.standin.ready_line import credentials
from agent.standin.serve import serving
from agent.standin.state import ORGANIZATION, PROJECT, Cloud, open_cloud
from at.virtual.options import VirtualOptions
from at.virtual.radio_world import Coordinates
from at.virtual.server.kit_ports import KitPorts, kit_on_ports
from at.virtual.server.runner import ModemRunner, make_modem

_PROFILE = "demo"
_SETTLE_S = 1.0  # this kit takes no time to start, and nothing in it turns the modem on


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
        folder = stack.enter_context(temporary_folder("cellagent-demo"))
        cloud = open_cloud()
        await stack.enter_async_context(serving(cloud))
        modem = make_modem(VirtualOptions(dialect="serial-modem", instant=True), console_apart=True)
        kit = await stack.enter_async_context(kit_on_ports(modem, folder))
        yield DemoEnvironment(kit.runner, cloud, _configured(folder, cloud, kit), kit.console.port)


def _configured(folder: Path, cloud: Cloud, kit: KitPorts) -> Configuration:
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
        "kit": {
            "port": kit.at.port,
            "console_port": kit.console.port,
            "companion_port": kit.companion.port,
            "settle_s": _SETTLE_S,
        },
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
