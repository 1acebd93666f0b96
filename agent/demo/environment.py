"""The environment of the demonstration: a virtual kit on its ports, a stand-in cloud, a profile."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.config import Configuration, load
from agent.config.standin_profile import write_standin_profile
from agent.files.temporary_folder import temporary_folder
from agent.standin.ready_line import ready_line
from agent.standin.serve import serving
from agent.standin.state import Cloud, open_cloud
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
    own = {
        "kit": {
            "port": kit.at.port,
            "console_port": kit.console.port,
            "companion_port": kit.companion.port,
            "settle_s": _SETTLE_S,
        },
        "location": {"wifi": "companion"},
    }
    ready, file = ready_line(cloud, folder), folder / "config.toml"
    write_standin_profile(_PROFILE, ready, own, file=file)
    return load(
        _PROFILE,
        environ={"CELLAGENT_CONFIG": str(file), "CELLAGENT_STATE_DIR": str(folder / "state")},
    )
