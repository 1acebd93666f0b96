"""What runs beside the agent on a host: systemd judges its unit, Prometheus its metrics."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.daemon.snapshot import (
    ConsoleStatus,
    FotaStatus,
    LinkStatus,
    LocationStatus,
    OutboxStatus,
)
from agent.daemon.status import StatusRegistry
from agent.errors import AgentError
from tests.support.harness.scraped import scraped

pytestmark = pytest.mark.peer
CHECK = ("check", "metrics")
MOST_EXPOSED = 2.1
"""Of 10, as `systemd-analyze security` counts it: serial ports and the network must be reached."""


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    command = [sys.executable, "-m", "agent", "run", "--print-unit"]
    path = tmp_path / "cellagent.service"
    path.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    return path


def asked(program: str, *arguments: str, stdin: str = "") -> tuple[int, str]:
    """Run a program of others; return its exit code and all that it said."""
    if shutil.which(program) is None:
        pytest.skip(f"no {program}: scripts/setup installs it")
    done = subprocess.run(
        [program, *arguments],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_systemd_understands_every_line_of_the_unit(unit: Path) -> None:
    assert asked("systemd-analyze", "verify", str(unit)) == (0, "")
    unit.write_text(unit.read_text().replace("ProtectClock=yes", "ProtectClocks=yes"))
    assert "'ProtectClocks'" in asked("systemd-analyze", "verify", str(unit))[1]


def test_the_unit_leaves_little_exposed(unit: Path) -> None:
    words = ("security", "--offline=true", "--no-pager", f"--threshold={round(10 * MOST_EXPOSED)}")
    code, said = asked("systemd-analyze", *words, str(unit))
    assert code == 0, said


def test_prometheus_finds_nothing_to_say_of_the_metrics() -> None:
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    from agent.daemon.metrics import MetricsServer

    registry = StatusRegistry()
    for kind in (LinkStatus, OutboxStatus, LocationStatus, FotaStatus, ConsoleStatus):
        concern = registry.add_concern(kind, 'a "kit"')
        concern.record_failure(AgentError("away"))
    text = scraped(MetricsServer(registry.statuses))
    assert "cellagent_fact" in text
    assert asked("promtool", *CHECK, stdin=text) == (0, "")
    _, said = asked(
        "promtool", "check", "metrics", stdin=text.replace("_failures", "_failures_total")
    )
    assert "cellagent_failures_total" in said, "it says what it dislikes"
