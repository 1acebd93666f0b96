"""The observability service and the wire formats of what devices push to it."""

from agent.observability.api.client import Observability
from agent.observability.api.kinds import KINDS, ResourceKind, Scope
from agent.observability.api.resources import Resource

__all__ = ["KINDS", "Observability", "Resource", "ResourceKind", "Scope"]
