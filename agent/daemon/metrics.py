"""The status as Prometheus metrics, on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.config.urls import host_and_port, is_loopback
from agent.daemon.snapshot import Phase
from agent.errors import RefusedByRule, UsageError
from agent.extras import require
from agent.listening import BoundedListener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.metrics_core import Metric

    from agent.daemon.snapshot import ConcernStatus

    ReadStatus = Callable[[], Iterable[tuple[str, ConcernStatus]]]
    """Returns the status of each concern with its kit, "" for none; called in other threads."""


class MetricsServer:
    """Serves the status of all concerns at one address at a time, or at none."""

    def __init__(self, status: ReadStatus) -> None:
        self._status = status
        self._listen = ""
        self._stop: Callable[[], None] = lambda: None

    def serve(self, listen: str) -> None:
        """Serve at HOST:PORT, or stop for "". If that fails, the old address stays in use.

        Raises UsageError, RefusedByRule. Leaving the old address takes up to half a second.
        """
        if listen == self._listen:
            return
        stop = _serve(listen, self._status) if listen else lambda: None
        self._stop()
        self._listen, self._stop = listen, stop


def _serve(listen: str, status: ReadStatus) -> Callable[[], None]:
    """Serve the metrics at HOST:PORT; return what stops it. Raises UsageError, RefusedByRule."""
    require("metrics.listen", "prometheus_client")
    from prometheus_client import CollectorRegistry, start_http_server

    host, port = _loopback_address(listen)
    collectors = CollectorRegistry(auto_describe=False)
    collectors.register(_Collector(status))
    try:
        server, thread = start_http_server(port, addr=host, registry=collectors)
    except OSError as error:
        raise UsageError(f"metrics.listen: {listen}: {error.strerror}") from error
    # It listens already: its socket is exchanged, not its descriptor.
    listening, server.socket = server.socket, BoundedListener(fileno=server.socket.fileno())
    listening.detach()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(1.0)

    return stop


def _loopback_address(listen: str) -> tuple[str, int]:
    host, port = host_and_port(listen, "metrics.listen")
    if not is_loopback(host):
        raise RefusedByRule(
            f"metrics.listen: {host} is reached from other machines",
            hint="listen on 127.0.0.1, and let a proxy with a password show it to others",
        )
    return host, port


class _Collector:
    def __init__(self, status: ReadStatus) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of this moment; called at each request."""
        from prometheus_client.core import GaugeMetricFamily

        labels = ["kit", "concern"]
        well = GaugeMetricFamily("cellagent_well", "1 where the concern works.", labels=labels)
        failures = GaugeMetricFamily(
            "cellagent_failures", "Tries in a row that failed.", labels=labels
        )
        facts = GaugeMetricFamily(
            "cellagent_fact", "What a concern knows, as a number.", labels=[*labels, "fact"]
        )
        for kit, concern in self._status():
            kit_and_concern = [kit, concern.name]
            well.add_metric(kit_and_concern, float(concern.phase is Phase.WELL))
            failures.add_metric(kit_and_concern, float(concern.failures))
            for name, value in concern.numbers():
                facts.add_metric([*kit_and_concern, name], value)
        yield from (well, failures, facts)
