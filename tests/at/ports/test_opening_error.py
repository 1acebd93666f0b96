"""A port that cannot be opened: the error says why, and what to try."""

from __future__ import annotations

import os

import pytest

from at.ports.holders import opening_error
from at.protocol.errors import PortForbidden


@pytest.mark.skipif(os.name != "posix", reason="a port has a group: run it on Linux or macOS")
def test_a_refused_permission_names_the_group_that_has_it() -> None:
    error = opening_error("/dev/tty", "/dev/tty", PermissionError(13, "Permission denied"))
    assert isinstance(error, PortForbidden)
    assert error.group in error.hint
