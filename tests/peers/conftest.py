"""What the tests of released tools share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cloud.served_cloud import ServedCloud, served_cloud
from tests.support.modem.served_kit import ServedKit, served


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., ServedKit]]:
    """Return a function from options of `modem virtual` to a kit that is served."""
    with contextlib.ExitStack() as stack:
        yield lambda *options: stack.enter_context(served(tmp_path, *options))


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[ServedCloud]:
    """Give a stand-in that is served by a process of its own."""
    with served_cloud(tmp_path) as found:
        yield found
