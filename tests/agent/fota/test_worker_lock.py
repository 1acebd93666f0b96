from __future__ import annotations

from pathlib import Path

import pytest

from agent.fota.journal import JobsHeld, sole_worker


def test_a_second_worker_is_refused_until_the_first_one_ends(tmp_path: Path):
    with (
        sole_worker(tmp_path / "kit"),
        pytest.raises(JobsHeld),
        sole_worker(tmp_path / "kit"),
    ):
        pass
    with sole_worker(tmp_path / "kit"):
        pass
