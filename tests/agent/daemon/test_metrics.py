"""The status as Prometheus reads it, over a real socket."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from agent.daemon.snapshot import LinkStatus, OutboxStatus, Reading
from agent.daemon.status import StatusRegistry
from agent.errors import AgentError, RefusedByRule, UsageError
from tests.support.harness.own_port import own_port
from tests.support.harness.scraped import scraped


def test_metrics_are_served_on_loopback():
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    from agent.daemon.metrics import MetricsServer

    registry = StatusRegistry()
    concern = registry.add_concern(LinkStatus, 'a "kit"')
    concern.record_failure(AgentError("away"))
    with concern.changing() as status:
        status.baud, status.allowed, status.firmware = 115200, False, "x"
        status.reading = Reading(at=datetime.now(UTC), rsrp_dbm=-97, snr_db=0.0)
    registry.add_concern(OutboxStatus)
    text = scraped(MetricsServer(registry.statuses))
    assert 'cellagent_well{concern="link",kit="a \\"kit\\""} 0.0' in text
    assert 'cellagent_failures{concern="link",kit="a \\"kit\\""} 1.0' in text
    facts = [line for line in text.splitlines() if line.startswith("cellagent_fact{")]
    assert [line.partition("fact=")[2] for line in facts] == [
        '"let_go",kit="a \\"kit\\""} 0.0',
        '"baud",kit="a \\"kit\\""} 115200.0',
        '"allowed",kit="a \\"kit\\""} 0.0',
        '"rsrp_dbm",kit="a \\"kit\\""} -97.0',
        '"snr_db",kit="a \\"kit\\""} 0.0',
        '"restarts",kit="a \\"kit\\""} 0.0',
        *(f'"{count}",kit=""}} 0.0' for count in ("waiting", "parked", "bytes")),
    ], "what is not known is no number, and a count of 0 is one"


@pytest.mark.parametrize(
    ("listen", "error"),
    [("0.0.0.0:9464", RefusedByRule), ("example.com:1", RefusedByRule), ("9464", UsageError)],
)
def test_metrics_are_for_this_machine_alone(listen, error):
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    from agent.daemon.metrics import MetricsServer

    with pytest.raises(error):
        MetricsServer(StatusRegistry().statuses).serve(listen)


def test_an_address_that_another_program_has_is_named_and_the_old_one_stays():
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    from agent.daemon.metrics import MetricsServer

    with socket.create_server(("127.0.0.1", 0)) as other, own_port() as port:
        metrics = MetricsServer(StatusRegistry().statuses)
        metrics.serve(f"127.0.0.1:{port}")
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"metrics.listen: {taken}: "):
            metrics.serve(taken)
        metrics.serve(f"127.0.0.1:{port}")  # as it is: a second one could not listen there
        socket.create_connection(("127.0.0.1", port)).close()
        metrics.serve("")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def test_connections_that_say_nothing_leave_the_program_its_descriptors(monkeypatch):
    pytest.importorskip("prometheus_client", reason="pip install 'cellagent[metrics]'")
    from agent.daemon.metrics import MetricsServer

    monkeypatch.setattr("agent.listening.MOST_CONNECTIONS", 4)
    with own_port() as port, ExitStack() as stack:
        metrics = MetricsServer(StatusRegistry().statuses)
        metrics.serve(f"127.0.0.1:{port}")
        stack.callback(metrics.serve, "")
        silent = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            for _ in range(6)
        ]
        assert [each.recv(1) for each in silent[:2]] == [b"", b""]
