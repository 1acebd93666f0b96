from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fota import fota_kills


@pytest.mark.timeout(600)  # of its kills, not of a machine that does much else besides
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork; run the suite on Linux or macOS")
def test_a_kill_at_every_edge_and_at_random_instants_does_no_harm() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(fota_kills.__file__)), "--random", "12", "--seed", "7"],
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] >= found["edges"]
    assert found["edges"] > 40
    assert found["failed_pulls"] == 0, done.stderr
    assert found["most_installs"] <= 2
    by_kit = found["by_kit"]
    assert by_kit["kills"] >= by_kit["edges"] > 20
    assert by_kit["false_successes"] == by_kit["unfinished"] == 0
