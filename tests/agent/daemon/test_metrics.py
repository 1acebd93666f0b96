"""The status as Prometheus reads it, over a real socket."""

from __future__ import annotations

import socket
import urllib.request

import pytest

from agent.daemon.status import StatusRegistry
from agent.errors import AgentError, RefusedByRule, UsageError


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
