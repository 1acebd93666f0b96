"""A registered virtual kit at a known place, and a profile of the stand-in for it."""

from dataclasses import dataclass
from pathlib import Path

from agent.cli.cloud import write_standin_profile
from agent.config.write import set_default_profile, set_value
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import Done, cellagent
from tests.support.location.moving_kit import MovingKit, path

LAT, LON = path()[4]


@dataclass(frozen=True, slots=True)
class LocatedKit:
    """A kit at LAT, LON with its companion, and the stand-in of its profile."""

    kit: MovingKit
    standin: StandIn

    async def run(self, *words: str, **environment: str) -> Done:
        """Run `cellagent` on the kit's port."""
        return await cellagent(
            *words, environment={"CELLAGENT_PORT": str(self.kit.port), **environment}
        )


def use_profile_with_companion(standin: StandIn, folder: Path) -> None:
    """Write the profile of the stand-in, with the companion of the kit in `folder`."""
    write_standin_profile("sim", standin.ready)
    set_default_profile("sim")
    set_value("kit.companion_port", str(folder / "companion"), profile="sim")
