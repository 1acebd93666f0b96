"""The observability service's error bodies."""

from __future__ import annotations

from typing import Any

from agent.standin.errors import Refused


class ObservabilityRefused(Refused):
    """An error of the observability service."""

    def body(self) -> Any:
        """Return the published error body."""
        return {"error": {"http_code": self.status, "message": self.message}}


def refusal(status: int, message: str) -> Refused:
    """Write an error that no route raised."""
    return ObservabilityRefused(status, message)
