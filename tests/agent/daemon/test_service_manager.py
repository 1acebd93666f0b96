"""systemd and Prometheus, each at the other end of a real socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from importlib.resources import files
from pathlib import Path

import pytest

from agent.daemon import watchdog
from agent.daemon.status import StatusRegistry
from agent.errors import AgentError, RefusedByRule, UsageError

PACKAGING = files("agent.daemon") / "packaging"


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


def test_metrics_are_served_on_loopback():
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    from agent.daemon.metrics import MetricsServer

    registry = StatusRegistry()
    concern = registry.add_concern("link", 'a "kit"')
    concern.record_failure(AgentError("away"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    metrics = MetricsServer(registry)
    metrics.serve(f"127.0.0.1:{port}")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
    finally:
        metrics.serve("")
    assert 'cellagent_well{concern="link",kit="a \\"kit\\""} 0.0' in text
    assert 'cellagent_failures{concern="link",kit="a \\"kit\\""} 1.0' in text


@pytest.mark.parametrize(
    ("listen", "error"),
    [("0.0.0.0:9464", RefusedByRule), ("example.com:1", RefusedByRule), ("9464", UsageError)],
)
def test_metrics_are_for_this_machine_alone(listen, error):
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    from agent.daemon.metrics import MetricsServer

    with pytest.raises(error):
        MetricsServer(StatusRegistry()).serve(listen)


@pytest.mark.parametrize(
    ("option", "name"),
    [("--print-unit", "cellagent.service"), ("--print-udev", "60-cellagent.rules")],
)
def test_run_prints_what_a_service_needs(option: str, name: str):
    done = subprocess.run(
        [sys.executable, "-m", "agent", "run", option], capture_output=True, text=True, check=True
    )
    assert done.stdout == (PACKAGING / name).read_text()


def test_the_udev_rule_names_every_kit_that_is_known():
    from at.ports.usb import MODELS

    rule = (PACKAGING / "60-cellagent.rules").read_text()
    for model in MODELS:
        assert f"{model.vendor:04x}" in rule
        for serial in model.serials:
            assert any(
                serial.startswith(known.rstrip("*"))
                for known in rule.replace('"', "|").split("|")
                if known.endswith("*")
            ), serial
