"""What the tests of released tools share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served_kit import ServedKit, served


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., ServedKit]]:
    """Return a function from options of `modem virtual` to a kit that is served."""
    with contextlib.ExitStack() as stack:
        yield lambda *options: stack.enter_context(served(tmp_path, *options))
