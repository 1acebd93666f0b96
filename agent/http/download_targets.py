"""Which URLs and IP addresses a file may be fetched from: images, predictions.

The author of a job or an answer chooses what is fetched from inside our network: an address of
this machine, the local network or a metadata service is refused. The caller resolves a name with
`addresses_of`, and connects to the addresses that were checked here.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from agent.config.urls import is_loopback
from agent.errors import RefusedByRule, Unreachable
from agent.http.address_blocks import why_not_public

_NAME = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
_HEXADECIMAL = re.compile(r"0x[0-9a-f]+")
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a host, as `addresses_of` does."""


class SourceRefused(RefusedByRule):
    """The source of a file is not allowed; nothing was fetched from it."""

    kind = "source-refused"


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that the rule allows, in parts. `host` is a name or an address without brackets."""

    scheme: str
    host: str
    port: int
    path: str
    """Quoted, starts with "/", with the query where there is one."""

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.scheme == "https" else 80
        return host if self.port == default else f"{host}:{self.port}"

    @property
    def is_address(self) -> bool:
        """Whether the host is an IP address, not a name."""
        return ":" in self.host or self.host.rpartition(".")[2].isdigit()

    @property
    def url(self) -> str:
        """The URL to ask for."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def shown(self) -> str:
        """The URL as a person may read it: without its query, which may hold a token."""
        return self.url.partition("?")[0]


def base_of(host: str, *, what: str) -> str:
    """Return "https://host" of a host that another names, with or without scheme and slash.

    `what` names the host in what is raised: SourceRefused.
    """
    base = host if "://" in host else f"https://{host}"
    if not base.isprintable() or any(mark in base for mark in " \\@?#%"):
        raise SourceRefused(f"{what} {host[:80]!r} is not a plain host name")
    parts = _split(base.rstrip("/"), host)
    if parts.path:
        raise SourceRefused(f"{what} {host[:80]!r} holds a path")
    return f"{parts.scheme}://{parts.netloc}"


def plain_target(url: str, *, stand_in: bool) -> Target:
    """Return the parts of a URL that files may be fetched from. Raises SourceRefused.

    That is by https; by http from this machine alone, where `stand_in` says that the stand-in is
    the service.
    """
    shown = url.partition("?")[0][:80]
    if not url.isascii() or not url.isprintable() or any(mark in url for mark in " \\"):
        raise SourceRefused(f"the URL {shown!r} holds characters that no URL has")
    parts = _split(url, shown)
    if parts.username is not None:  # "" before a password alone
        raise SourceRefused("a URL with a user name or password in it is not fetched")
    if parts.fragment:
        raise SourceRefused("a URL with a fragment is not fetched")
    name = (parts.hostname or "").lower()
    if parts.scheme != "https" and not (parts.scheme == "http" and stand_in and is_loopback(name)):
        raise SourceRefused(
            f"{parts.scheme or 'no scheme'}://{name[:80]} is not fetched: files come by https only"
        )
    host = _host(name)
    port = _port(parts.netloc, shown) or (443 if parts.scheme == "https" else 80)
    path = parts.path or "/"
    if any(_steps_out(unquote(part)) for part in path.split("/")):
        raise SourceRefused(f"the path {path[:80]!r} steps out of its folder")
    return Target(
        scheme=parts.scheme,
        host=host,
        port=port,
        path=path + (f"?{parts.query}" if parts.query else ""),
    )


def checked_addresses(target: Target, addresses: Sequence[str], *, stand_in: bool) -> Sequence[str]:
    """Return the addresses to try: the first of IPv6 and of IPv4, in their order.

    Raises SourceRefused where any is not public.

    All are checked: a name with public and private addresses is an attack, not a service.
    """
    if not addresses:
        raise SourceRefused(f"{target.host} has no address")
    for text in addresses:
        refusal = address_refusal(text, stand_in=stand_in)
        if refusal:
            raise SourceRefused(f"{target.host} leads to {text}, {refusal}: not fetched")
    first: dict[bool, str] = {}
    for text in addresses:
        first.setdefault(":" in text, text)
    return list(first.values())


async def addresses_to_try(
    target: Target, resolve: Resolve, *, stand_in: bool, by_proxy: bool
) -> Sequence[str]:
    """Return the checked addresses of a target, as `HttpTransport.open` takes them.

    A proxy resolves names itself: they may have no address here. Raises SourceRefused, Unreachable.
    """
    if by_proxy and not stand_in and not target.is_address:
        return [""]
    return checked_addresses(target, await resolve(target.host, target.port), stand_in=stand_in)


def address_refusal(text: str, *, stand_in: bool) -> str:
    """Return why no file is fetched from this address, "" where it may be."""
    if stand_in:
        return "" if is_loopback(text) else "which is not on this machine, as the stand-in is"
    return why_not_public(text)


def _split(url: str, shown: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise SourceRefused(f"{shown[:80]!r} is not a URL") from None


def _port(netloc: str, shown: str) -> int | None:
    tail = netloc.rpartition("]")[2]
    if ":" not in tail:
        return None
    digits = tail.partition(":")[2]
    if not re.fullmatch(r"[0-9]{1,5}", digits) or not 0 < int(digits) < 65536:
        raise SourceRefused(f"{shown[:80]!r} names no usable port")
    return int(digits)


def _host(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    last = name.rpartition(".")[2]
    # "2130706433", "0x7f.1" and "0177.0.0.1" are addresses to some resolvers and names to others.
    if not _NAME.fullmatch(name) or last.isdigit() or _HEXADECIMAL.fullmatch(last):
        raise SourceRefused(f"{name[:80]!r} is not a host name")
    return name


def _steps_out(segment: str) -> bool:
    # Twice unquoted: a proxy may unquote once more than we do.
    return any(
        text in {".", ".."} or "/" in text or "\\" in text or "\0" in text
        for text in (segment, unquote(segment))
    )


_RESOLVE_S = 10.0


async def addresses_of(host: str, port: int) -> list[str]:
    """Return the addresses of a host. Raises Unreachable where the name leads nowhere."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_RESOLVE_S):
            entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError as error:
        raise Unreachable(
            f"the name {host} was not resolved in {_RESOLVE_S:.0f} s", sent=False
        ) from error
    except OSError as error:
        raise Unreachable(f"the name {host} cannot be resolved: {error}", sent=False) from error
    return [str(entry[4][0]) for entry in entries]
