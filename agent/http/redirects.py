"""Where a redirect leads, and whether a secret may go there. Pure."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from agent.config.urls import DEFAULT_PORTS, checked_url
from agent.errors import BadAnswer, ConfigError

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""The statuses that name another place in `location`."""


def same_origin(first: str, second: str) -> bool:
    """Return whether scheme, host and port agree: else no secret is sent."""
    return _origin(first) == _origin(second)


def next_url(url: str, location: str) -> str:
    """Return the target of a redirect from `url` to `location`.

    Raises BadAnswer if it is no URL, or not encrypted although `url` is.
    """
    try:
        target = urljoin(url, location)
        checked_url(target, "redirect")
    except (ConfigError, ValueError) as error:
        raise BadAnswer(f"a redirect that cannot be followed: {error}") from error
    if url.startswith("https:") and not target.startswith("https:"):
        raise BadAnswer("a redirect from https to http is not followed")
    return target


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    return parts.scheme, host, parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
