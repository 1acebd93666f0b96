"""The HTTP client of the agent: one for both services, and the transport below it."""

from agent.http.client import HttpClient
from agent.http.transport import Deadlines, HttpTransport, StreamedResponse, tls_context

__all__ = ["Deadlines", "HttpClient", "HttpTransport", "StreamedResponse", "tls_context"]
