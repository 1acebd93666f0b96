"""A disk that others have filled: what waits is delivered, and that frees space."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.outbox.full_disk import can_mount, tried


@pytest.mark.parametrize("mounted", [False, True] if can_mount() else [False])
def test_on_a_full_disk_all_that_waits_is_delivered_and_a_refusal_takes_no_room(
    tmp_path: Path, mounted: bool
):
    found = tried(tmp_path / "disk", 9, mounted=mounted)
    assert "disk is full" in str(found.pop("said"))
    assert "disk is full" in str(found.pop("trouble"))
    assert "free some space" in str(found.pop("try"))
    assert set(found.values()) == {0}, found
