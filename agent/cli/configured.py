"""The configuration that the options choose, with the kit that they choose."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent.cli.frame import options

if TYPE_CHECKING:
    from agent.config import Configuration
    from agent.config.profile import Profile


def configured() -> Configuration:
    """Return the configuration; `profile.kit` is the one kit that is meant. Raises ConfigError.

    A port that the profile's table of kits names stands for that kit, no port for the only one.
    """
    from agent.config.load import load

    given = options()
    configuration = load(given.profile, port=given.port)
    if not configuration.profile.kits:
        return configuration
    return replace(configuration, profile=_with_its_kit(configuration.profile))


def _with_its_kit(profile: Profile) -> Profile:
    import msgspec

    from agent.config.kits import kits_of
    from at.usb import same_port

    port, table = profile.kit.port, list(kits_of(profile).values())
    meant = [kit for kit in table if same_port(kit.port, port)] if port else table
    return msgspec.structs.replace(profile, kit=meant[0]) if len(meant) == 1 else profile
