"""A disk with little room, for what this process writes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes while the block runs, as on a disk that is full."""
    import resource  # Windows has none

    limits, compiles = resource.getrlimit(resource.RLIMIT_FSIZE), not sys.dont_write_bytecode
    # Of a module that is imported meanwhile, Python 3.11 would keep the first half, compiled.
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        sys.dont_write_bytecode = not compiles
