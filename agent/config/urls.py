"""Checks which URLs may be used, and addresses to listen on. Pure."""

import re
from ipaddress import IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from agent.errors import ConfigError, UsageError

DEFAULT_PORTS = {"http": 80, "https": 443}
_PATHS_BEGIN = ("/v1", "/api/v0")


def checked_url(url: str, what: str) -> SplitResult:
    """Return `url` in parts. Raises ConfigError unless it is https, or http on loopback (D1.1).

    `what` names the setting, or where the URL came from.
    """
    if not url.isprintable() or " " in url or "\\" in url:
        raise ConfigError(f"{what}: {url!r} holds characters that no URL may hold")
    try:
        parts = urlsplit(url)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ConfigError(f"{what}: {url!r} is no URL ({error})") from error
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or not port_is_number:
        raise ConfigError(
            f"{what}: {url!r} is no http or https URL", hint="write it as https://api.example.com"
        )
    if parts.username is not None:  # "" before a password alone
        raise ConfigError(
            f"{what}: a URL may not carry a user name or a password",
            hint="keep the secret in the environment or in the secrets file",
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ConfigError(
            f"{what}: {url!r} is not encrypted",
            hint=f"did you mean {f'https{url[4:]}'!r}? plain http is for loopback addresses only",
        )
    return parts


def check_base_url(url: str, what: str) -> None:
    """Check a URL behind which the paths of calls stand. Raises ConfigError, as `checked_url`.

    Documents of the services name theirs with the beginning of those paths, too.
    """
    parts = checked_url(url, what)
    path = parts.path.rstrip("/")
    if parts.query or parts.fragment:
        raise ConfigError(
            f"{what}: {url!r} has a query or a fragment, and paths are added to it",
            hint="write it as https://api.example.com",
        )
    if begun := next((each for each in _PATHS_BEGIN if path.endswith(each)), ""):
        meant = f"{parts.scheme}://{parts.netloc}{path.removesuffix(begun)}"
        raise ConfigError(
            f"{what}: {url!r} ends with {begun}, with which each path that is added to it begins",
            hint=f"did you mean {meant!r}?",
        )


def host_and_port(text: str, what: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, 127.0.0.1 where no host is named. Raises UsageError.

    `what` names the option or setting.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise UsageError(f"{what} {text}: not HOST:PORT", hint="for example 127.0.0.1:8080")
    return host.strip("[]") or "127.0.0.1", int(port)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its name or address alone; nothing is resolved."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    # Written out: whether ::ffff:127.0.0.1 is loopback depends on the version of Python.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def is_loopback_url(url: str) -> bool:
    """Return whether a profile's URL is on this machine: the mark of the stand-in's profile."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return is_loopback(host)
