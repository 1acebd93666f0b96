"""Where a value of the configuration came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Origin:
    """One source; from the strongest to the weakest: flag, environment, file, built-in, default.

    Secrets also come from "credentials" (systemd) and from a "keyring". `where` is the option,
    the variable, or file and key.
    """

    kind: Literal["flag", "environment", "credentials", "file", "keyring", "built-in", "default"]
    where: str = ""
