"""Requests to a download host: only addresses that were checked are connected to.

Redirects are checked again. The transport keeps no cookie, reads no proxy from the environment and
knows no credential; a connection made for one name is not used for another.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from urllib.parse import urljoin

from agent.errors import BadAnswer, Unavailable, UsageError
from agent.fota.allowed_hosts import AllowedHosts, checked_target
from agent.fota.download.ranges import DownloadInterrupted
from agent.http import Deadlines, HttpTransport, StreamedResponse
from agent.http.download_targets import (
    Resolve,
    SourceRefused,
    Target,
    addresses_of,
    checked_addresses,
)
from agent.http.transport import REDIRECTS

MAX_DOWNLOAD_REDIRECTS = 5


async def resolve(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host. Raises DownloadInterrupted if it has none."""
    try:
        return await addresses_of(host, port)
    except Unavailable as error:
        raise DownloadInterrupted(str(error), hint=error.hint) from error


@dataclass(frozen=True, slots=True)
class DownloadNetwork:
    """How the download host is reached."""

    hosts: AllowedHosts
    ca_file: str = ""
    proxy: str = ""
    """Only with fota.trust_proxy: then the proxy chooses the address."""
    resolve: Resolve = resolve
    another_way: str = ""
    """The hint where a host cannot be reached, "" for none."""


class DownloadConnection:
    """Requests files from download hosts. `close` it."""

    def __init__(self, network: DownloadNetwork, *, silence_s: float = 30.0) -> None:
        self._network = network
        self._transport = HttpTransport(
            ca_file=network.ca_file, proxy=network.proxy, deadlines=Deadlines(read_s=silence_s)
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    @asynccontextmanager
    async def get(
        self, target: Target, headers: Mapping[str, str]
    ) -> AsyncIterator[StreamedResponse]:
        """Send a GET and follow redirects as far as the rule allows; yield the last answer.

        Raises SourceRefused, DownloadInterrupted. The body is read by `pieces`.
        """
        for _ in range(MAX_DOWNLOAD_REDIRECTS + 1):
            with self._another_way():
                addresses = await self._addresses(target)
                with _own_errors(target):
                    asked = self._transport.open(
                        "GET", target.url, headers=headers, addresses=addresses
                    )
                    stream = await asked.__aenter__()
            try:
                if stream.status not in REDIRECTS:
                    yield stream
                    return
                target = self._next(target, stream.headers.get("location", ""))
            finally:
                await asked.__aexit__(None, None, None)
        raise SourceRefused(f"{target.host} redirects more than {MAX_DOWNLOAD_REDIRECTS} times")

    @contextmanager
    def _another_way(self) -> Iterator[None]:
        """Add what may lead to a host that cannot be reached."""
        try:
            yield
        except DownloadInterrupted as error:
            error.hint = "; ".join(filter(None, (error.hint, self._network.another_way)))
            raise

    async def _addresses(self, target: Target) -> Sequence[str]:
        if self._network.proxy:
            return [""]
        addresses = await self._network.resolve(target.host, target.port)
        return checked_addresses(target, addresses, stand_in=self._network.hosts.stand_in)

    def _next(self, target: Target, location: str) -> Target:
        if not location:
            raise SourceRefused(f"{target.host} redirects to nowhere")
        try:
            url = urljoin(target.url, location)
        except ValueError:
            shown = location.partition("?")[0][:80]
            raise SourceRefused(f"{target.host} redirects to {shown!r}") from None
        return checked_target(url, self._network.hosts)


async def pieces(stream: StreamedResponse, target: Target) -> AsyncIterator[bytes]:
    """Yield the body as it comes. Raises DownloadInterrupted if the connection breaks."""
    with _own_errors(target):
        async for chunk in stream.chunks():
            yield chunk


@contextmanager
def _own_errors(target: Target) -> Iterator[None]:
    try:
        yield
    except (Unavailable, BadAnswer) as error:
        # Who speaks no HTTP is not the host, or not for long: its next answer may be the image.
        raise DownloadInterrupted(
            f"the download from {target.host} broke off: {error}", hint=error.hint
        ) from error
    except UsageError as error:
        raise SourceRefused(f"{target.shown[:80]!r} cannot be asked for: {error}") from error
