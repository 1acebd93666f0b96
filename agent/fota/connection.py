"""Requests to a download host: the address that was checked is the one connected to.

Redirects are checked again; no credential, cookie or proxy of the environment is used. Foreign
errors become ours.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import httpx

from agent.fota.addresses import SourceRefused, check_addresses, checked_target
from agent.fota.ranges import TryAgain

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence

    from agent.fota.addresses import Sources, Target

MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_RESOLVE_S = 10.0


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host. Raises TryAgain where the name leads nowhere."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_RESOLVE_S):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError as error:
        raise TryAgain(f"the name {host} was not resolved in {_RESOLVE_S:.0f} s") from error
    except (OSError, UnicodeError) as error:
        raise TryAgain(f"the name {host} cannot be resolved: {error}") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True)
class Network:
    """How the download host is reached."""

    sources: Sources
    tls: ssl.SSLContext | bool = True
    proxy: str = ""
    """Only with fota.trust_proxy: the proxy then chooses the address, not we."""
    resolve: Callable[[str, int], Awaitable[Sequence[str]]] = resolve


class Connection:
    """A client without a name of its own: it asks for files and for nothing else."""

    def __init__(self, network: Network, *, silence_s: float = 30.0) -> None:
        self._network = network
        self._client = httpx.AsyncClient(
            verify=network.tls,
            trust_env=False,
            follow_redirects=False,
            proxy=network.proxy or None,
            timeout=httpx.Timeout(silence_s, connect=10.0),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def get(
        self, target: Target, headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        """Send a GET and follow redirects as far as the rule allows; yield the last answer.

        Raises SourceRefused, TryAgain; within the block too, where the connection breaks.
        """
        for _ in range(MAX_REDIRECTS + 1):
            request = await self._request(target, headers)
            with _ours(target):
                response = await self._client.send(request, stream=True)
            try:
                if response.status_code not in _REDIRECTS:
                    with _ours(target):
                        yield response
                    return
                target = self._next(target, response.headers.get("location", ""))
            finally:
                with _ours(target):
                    await response.aclose()
                # A host that we are told to forget keeps nothing of us.
                self._client.cookies.clear()
        raise SourceRefused(f"{target.host} redirects more than {MAX_REDIRECTS} times")

    async def _request(self, target: Target, headers: Mapping[str, str]) -> httpx.Request:
        if self._network.proxy:
            return self._client.build_request("GET", target.url, headers=headers)
        found = await self._network.resolve(target.host, target.port)
        address = check_addresses(target, found, self._network.sources)
        return self._client.build_request(
            "GET",
            target.at(address),
            headers={"host": target.authority, "user-agent": "cellagent", **headers},
            extensions={"sni_hostname": target.host},
        )

    def _next(self, target: Target, location: str) -> Target:
        if not location:
            raise SourceRefused(f"{target.host} redirects to nowhere")
        try:
            url = urljoin(target.url, location)
        except ValueError:
            raise SourceRefused(f"{target.host} redirects to {location[:80]!r}") from None
        return checked_target(url, self._network.sources)


@contextmanager
def _ours(target: Target) -> Iterator[None]:
    try:
        yield
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise TryAgain(f"the download from {target.host} broke off: {reason}") from error
    except (httpx.InvalidURL, httpx.StreamError) as error:
        raise SourceRefused(f"{target.url[:80]!r} cannot be asked for: {error}") from error
