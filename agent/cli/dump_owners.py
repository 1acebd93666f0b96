"""Whose a saved core dump is: beside DUMP, in DUMP.device.json, since it does not say so itself."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import UsageError
from agent.observability.device_names import UNKNOWN

if TYPE_CHECKING:
    from agent.observability.device_identity import DeviceIdentity


def write_owner(dump: Path, device: DeviceIdentity) -> None:
    """Write what is known of the device; what is not is left out."""
    known = {name: value for name, value in asdict(device).items() if value != UNKNOWN}
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(_beside(dump), flags, 0o600), "w") as file:
        json.dump(known, file)


def read_owner(dump: Path) -> dict[str, str]:
    """Return what stands beside a dump: {} where nothing does. Raises UsageError."""
    path = _beside(dump)
    try:
        owner = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise UsageError(
            f"{path} cannot be read: {exc}", hint="remove it, and say it by option"
        ) from exc
    if not isinstance(owner, dict):
        raise UsageError(f"{path} holds no JSON object", hint="remove it, and say it by option")
    return {name: value for name, value in owner.items() if isinstance(value, str)}


def _beside(dump: Path) -> Path:
    return dump.with_name(f"{dump.name}.device.json")
