"""A token of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.keys.soft_token import SoftToken, soft_token


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SoftToken]:
    with soft_token(tmp_path, monkeypatch) as made:
        yield made
