"""Files that only their owner may read: 0600 from the moment they exist."""

from __future__ import annotations

import os
from pathlib import Path


def make_private(path: Path) -> None:
    """Make `path` 0600, an empty file if it is missing, and its folder 0700. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)  # one that was there before; Windows has no fchmod before Python 3.13
