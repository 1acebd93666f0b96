"""What `import at` offers, and what it does not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

import at


@pytest.mark.parametrize("name", at.__all__)
def test_a_public_name_is_what_its_module_calls_so(name: str) -> None:
    assert getattr(at, name).__name__ == name


def test_a_name_that_is_not_public_is_not_found() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        at.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def test_a_part_of_the_driver_is_imported_without_the_rest() -> None:
    code = "import sys, at.protocol.line.framing; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"asyncio", "at.driver", "at.transport"} & set(loaded.stdout.split())
