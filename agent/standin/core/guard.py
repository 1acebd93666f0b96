"""The check of the Host and Origin headers that comes before every route.

A web page may make a browser call loopback under a name of its own (DNS rebinding) or change
something there (CSRF): the Host and the Origin headers show that.
"""

import ipaddress
import re
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from agent.standin.core.responses import MakeRefused
from agent.standin.state import Cloud

_HOST = re.compile(
    r"(?:\[(?P<address>[0-9A-Za-z:.%_-]+)\]|(?P<name>[0-9A-Za-z._-]+))(?::[0-9]{0,5})?", re.ASCII
)
_MOST_REMEMBERED = 1000


class HostGuard:
    """An ASGI layer that passes on requests to localhost, an IP address or an allowed name only."""

    def __init__(self, app: ASGIApp, cloud: Cloud, refuse: MakeRefused) -> None:
        self._app = app
        self._cloud = cloud
        self._refuse = refuse
        self._own: set[str] = set()
        """Values of the headers that were found to name this server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        refused = self._refuse(scope["path"], *refusal)
        # No further request on this connection is trusted.
        refused.headers["Connection"] = "close"
        await refused.response()(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and the message of a refusal, None where the headers are in order."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if b"content-length" in headers and b"transfer-encoding" in headers:
            # RFC 9112, 6.3: two readings of where the request ends; one of them hides another.
            return 400, "Content-Length and Transfer-Encoding exclude each other"
        if not self._is_own(headers.get(b"host", "")):
            return 421, "the Host header names another server"
        origin = headers.get(b"origin", "")
        if origin and not self._is_own(urlsplit(origin).netloc):
            return 403, "the Origin is another site"
        return None

    def _is_own(self, netloc: str) -> bool:
        """Return whether `host:port` names this server."""
        if netloc in self._own:
            return True
        name = _name(netloc)
        own = name == "localhost" or name in self._cloud.allowed_hosts or _is_address(name)
        if own and len(self._own) < _MOST_REMEMBERED:
            self._own.add(netloc)
        return own


def _name(netloc: str) -> str:
    """Return the host of `host:port` in lower case, "" where it is not of that form.

    An IPv6 address is returned without brackets, a name without a final dot.
    """
    found = _HOST.fullmatch(netloc)
    if found is None:
        return ""
    return (found["address"] or found["name"].removesuffix(".")).lower()


def _is_address(name: str) -> bool:
    # An address cannot be rebound: only names can.
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
