"""The HTTP client of the agent: one for both services, and the wire below it."""

from agent.http.client import HttpClient
from agent.http.transport import Deadlines, Stream, Wire, tls_context

__all__ = ["Deadlines", "HttpClient", "Stream", "Wire", "tls_context"]
