"""What metrics are as Prometheus reads them, over a real socket."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

from tests.support.harness.own_port import own_port

if TYPE_CHECKING:
    from agent.daemon.metrics import MetricsServer


def scraped(metrics: MetricsServer) -> str:
    """Serve the metrics on a port of 127.0.0.1, and return the page."""
    with own_port() as port:
        metrics.serve(f"127.0.0.1:{port}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                page: bytes = answer.read()
        finally:
            metrics.serve("")
    return page.decode()
