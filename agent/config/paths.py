"""Paths of the configuration, the secrets and the state; the environment may name others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def config_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the configuration file; it need not exist."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("CELLAGENT_CONFIG"):
        path = Path(chosen).expanduser()
        return path / "config.toml" if path.is_dir() else path
    from platformdirs import user_config_path

    return user_config_path("cellagent", appauthor=False) / "config.toml"


def secrets_file(file: Path) -> Path:
    """Return the path of the secrets file, in the folder of a configuration file."""
    return file.with_name("secrets.toml")


def state_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder for state; it need not exist."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("CELLAGENT_STATE_DIR"):
        return Path(chosen).expanduser()
    from platformdirs import user_state_path

    return user_state_path("cellagent", appauthor=False)
