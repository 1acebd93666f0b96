"""The observability service and the wire formats of what devices push to it."""

from agent.observability.client import Observability
from agent.observability.kinds import KINDS, Kind, Scope
from agent.observability.resources import Resource

__all__ = ["KINDS", "Kind", "Observability", "Resource", "Scope"]
