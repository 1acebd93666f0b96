"""Stores a key that the service cycled, drops one that it ended: nothing here goes on with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli.framework.command import note
from agent.errors import AgentError

if TYPE_CHECKING:
    from agent.config import Configuration


def check_storable(configuration: Configuration) -> None:
    """Raise ConfigError if a secret cannot be stored, before the old key is ended."""
    from agent.config.secrets import read_secrets_file
    from agent.files.paths import secrets_file

    read_secrets_file(secrets_file(configuration.file))


async def store_cycled_key(configuration: Configuration, name: str, key: str) -> Path:
    """Store the secret `name` for the profile, have a running agent take it; return the file.

    Notes what still has the old key. Raises ConfigError, OSError.
    """
    path = await store_token(configuration, name, key)
    note(f"the new key is kept in {path}; the old one has stopped")
    return path


async def store_token(configuration: Configuration, name: str, token: str) -> Path:
    """Store the secret `name` for the profile, have a running agent take it; return the file.

    Raises ConfigError, OSError.
    """
    from agent.config.write import set_secret

    path = set_secret(name, token, profile=configuration.name, file=configuration.file)
    await _end_use_of_old_key(configuration, name)
    return path


async def drop_ended_key(configuration: Configuration, name: str) -> None:
    """Remove the secret `name`, which has ended, from the profile; have a running agent know it.

    Notes what still has it. Raises ConfigError, OSError.
    """
    from agent.config.secrets import drop_from_keyring
    from agent.config.write import drop_secret

    drop_secret(name, profile=configuration.name, file=configuration.file)
    if configuration.profile.credentials.keyring:
        drop_from_keyring(f"{configuration.name}:{name}")
    await _end_use_of_old_key(configuration, name)


async def _end_use_of_old_key(configuration: Configuration, name: str) -> None:
    from agent.daemon.control.client import NotRunning, send_request
    from agent.daemon.control.protocol import Answer, ReloadRequest

    if preceding := configuration.secrets.preceding(name):
        note(f"{preceding.where} precedes the secrets file and still holds the old key: change it")
    try:
        await send_request(configuration.state_dir, configuration.name, ReloadRequest(), Answer)
    except NotRunning:
        return
    except AgentError as error:
        note(f"the running agent goes on with the old key: {error}; then `cellagent reload`")
    else:
        note("the running agent has read it")
