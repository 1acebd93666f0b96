"""Configuration: profiles in TOML, the environment, flags; and the origin of each value."""

from agent.config.load import Configuration, load
from agent.config.profile import Profile
from agent.config.secrets import Origin, Secret, Secrets

__all__ = ["Configuration", "Origin", "Profile", "Secret", "Secrets", "load"]
