"""A new file that only its owner may read, from its first moment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent.errors import RefusedByRule

if TYPE_CHECKING:
    from pathlib import Path


def write_new(path: Path, text: str) -> None:
    """Write `text` to a file that does not exist yet, 0600. Raises RefusedByRule, OSError."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise RefusedByRule(
            f"{path} exists already", hint="nothing is overwritten: name another file"
        ) from error
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
