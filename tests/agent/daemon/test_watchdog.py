"""systemd at the other end of a real socket, and the detectors of a stall and a step."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.daemon import watchdog
from agent.daemon.watchdog import SMALLEST_STEP_S, ClockStepDetector, StallDetector


async def test_a_loop_that_turns_is_not_told_of():
    told: list[str] = []
    looks = threading.Semaphore(0)

    def clock() -> float:
        looks.release()
        return 5.0  # no time passes

    watch = StallDetector(told.append, limit_s=0.004, clock=clock)
    watch.start()
    for _ in range(9):  # some of them are the loop's own
        assert await asyncio.to_thread(looks.acquire, timeout=20)
    watch.stop()
    assert told == []


@pytest.mark.skipif(sys.platform == "win32", reason="systemd is Linux's")
@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_hears_what_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool
):
    if abstract and sys.platform != "linux":
        pytest.skip("abstract names are Linux's")
    name = f"cellagent-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name if abstract else name)
        manager.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name if abstract else name)
        watchdog.notify("READY=1")
        assert manager.recv(100) == b"READY=1"
        watchdog.notify(watchdog.reloading())
        assert manager.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")


@pytest.mark.skipif(sys.platform == "win32", reason="systemd is Linux's")
def test_a_systemd_that_is_not_there_or_takes_nothing_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    name = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    watchdog.notify("READY=1")
    assert [each.getMessage() for each in caplog.records] == [
        f"READY=1 is not told to systemd at {name}: No such file or directory"
    ]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name)
        caplog.clear()
        while not caplog.records:  # until its queue is full
            watchdog.notify("WATCHDOG=1")
    assert "WATCHDOG=1 is not told" in caplog.text


def test_without_systemd_nothing_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    watchdog.notify("READY=1")
    assert watchdog.watchdog_s() is None


@pytest.mark.parametrize(
    ("wanted", "pid", "seconds"),
    [
        ("120000000", "", 120.0),
        ("120000000", "ours", 120.0),
        ("120000000", "1", None),
        ("0", "", None),
        ("soon", "", None),
    ],
)
def test_the_watchdog_is_served_where_it_is_ours(monkeypatch, wanted, pid, seconds):
    monkeypatch.setenv("WATCHDOG_USEC", wanted)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "ours" else pid)
    assert watchdog.watchdog_s() == seconds


@given(st.floats(SMALLEST_STEP_S + 1, 1e9), st.booleans(), st.floats(0, 1e6))
def test_a_step_either_way_is_told_once(size: float, back: bool, later: float) -> None:
    step = -size if back else size
    clocks = ClockStepDetector(1e9, 50.0)
    told = clocks.step(1e9 + later + step, 50.0 + later)
    assert told == pytest.approx(step, abs=1e-3)
    assert clocks.step(1e9 + later + step + 20, 50.0 + later + 20) == 0.0


@given(st.lists(st.floats(0, 100), max_size=50))
def test_time_that_passes_is_no_step(waits: list[float]) -> None:
    wall, monotonic = 1e9, 50.0
    clocks = ClockStepDetector(wall, monotonic)
    for wait in waits:
        wall, monotonic = wall + wait, monotonic + wait
        assert clocks.step(wall, monotonic) == 0.0
