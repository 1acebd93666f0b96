"""Fetches an image to a file: resumed where it stopped, hashed while it arrives, bounded in all.

Each try asks for the rest (`ranges`), writes what comes (`image_file`) and is followed by another
until the file is whole, or until what stands in the way has a name.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from agent.errors import Unavailable
from agent.fota.download.connection import DownloadConnection, pieces
from agent.fota.download.image_file import ImageFile
from agent.fota.download.ranges import (
    BadAnswerToRange,
    DownloadError,
    DownloadInterrupted,
    EndlessData,
    PartialFile,
    WrongLength,
    range_headers,
    read_range_answer,
)
from agent.retry import backoff_s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from agent.fota.download.connection import DownloadNetwork
    from agent.fota.download.ranges import RangeBody
    from agent.http import StreamedResponse
    from agent.http.addresses import Target

MAX_STARTS_OVER = 3
_LEAST_PART_BYTES = 64 * 1024


class TooSlow(DownloadError):
    """The bytes came slower than an image is worth waiting for, or not within the time limit."""

    kind = "download-slow"


class _Crawling(DownloadError):
    """One window passed with too few bytes: the connection is made anew."""


class _StartOver(DownloadError):
    """What is held is worthless; the message says why."""


@dataclass(frozen=True, slots=True)
class DownloadLimits:
    """How long and how often. The whole time is the vendor client's: 15 minutes."""

    whole_s: float = 900.0
    silence_s: float = 30.0
    window_s: float = 60.0
    window_bytes: int = 32 * 1024
    """Fewer bytes than this within `window_s` are too slow."""
    slow_windows: int = 3
    tries: int = 5
    """In a row without a new byte."""
    first_wait_s: float = 1.0
    longest_wait_s: float = 30.0


class AsyncClock(Protocol):
    """Times, and waiting; the tests bring their own."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    def now(self) -> datetime:
        """Return the time of day, aware."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class LoopClock:
    """The event loop's own time."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """Return the time of day, aware."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def _ignore(_first: object, _second: object = None) -> None:
    pass


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """One file: where it goes, how long it is, and who is told."""

    target: Target
    path: Path
    size_bytes: int
    exact: bool = True
    """Whether `size_bytes` is the size, or only what it may not exceed."""
    etag: str = ""
    """Of the bytes that are there already."""
    join_loosely: bool = True
    """Whether parts may be joined without a strong ETag, since the whole is proven later."""
    on_etag: Callable[[str], None] = _ignore
    """Told, before the first byte is written, which file of the server's the bytes are of."""
    on_progress: Callable[[int, int], None] = _ignore
    """Told how many bytes are there, of how many."""
    at_each_tenth: Callable[[], Awaitable[None]] | None = None
    """Awaited after each 10 %; what it raises ends the download, the bytes are kept."""


@dataclass(frozen=True, slots=True)
class DownloadedFile:
    """A file that is whole and synced."""

    sha256: str
    size_bytes: int
    received_bytes: int
    """Of the body, this time: more than was missing where some came twice."""


class Downloader:
    """Downloads over one set of connections; `close` it."""

    def __init__(
        self,
        network: DownloadNetwork,
        *,
        limits: DownloadLimits | None = None,
        clock: AsyncClock | None = None,
    ) -> None:
        self._limits = limits or DownloadLimits()
        self._clock = clock or LoopClock()
        self._connection = DownloadConnection(network, silence_s=self._limits.silence_s)

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def fetch(self, wanted: DownloadRequest) -> DownloadedFile:
        """Fetch the file whole; what an earlier try left is resumed.

        Raises DownloadError (a final answer, by name), DownloadInterrupted (the connection or the
        server failed too often; what arrived is kept), SourceRefused, and what `at_each_tenth`
        raises.
        """
        with ImageFile(wanted.path) as file:
            await file.load(wanted.size_bytes)
            file.check_room(wanted.size_bytes)
            transfer = _Transfer(wanted, file, self._connection, self._limits, self._clock)
            await transfer.run()
            await file.sync()
            return DownloadedFile(file.hexdigest, file.size, transfer.received)

    async def probe_size(self, target: Target) -> int | None:
        """Return the size that the server states for a file, without fetching it."""
        async with self._connection.get(target, range_headers(PartialFile())) as answer:
            return read_range_answer(
                answer.status, answer.headers, PartialFile(), None, self._clock.now()
            ).total


class _Transfer:
    """One file on its way, over as many requests as it takes."""

    def __init__(
        self,
        wanted: DownloadRequest,
        file: ImageFile,
        connection: DownloadConnection,
        limits: DownloadLimits,
        clock: AsyncClock,
    ) -> None:
        self._wanted = wanted
        self._file = file
        self._connection = connection
        self._limits = limits
        self._clock = clock
        self._etag = wanted.etag
        self._total = wanted.size_bytes if wanted.exact else None
        self._deadline = clock.monotonic() + limits.whole_s
        self._tenths = 0
        self.received = 0

    def _complete(self) -> bool:
        return self._file.size == self._total

    async def run(self) -> None:
        """Ask until the file is whole."""
        tries = slow = starts_over = 0
        while not self._complete():
            before, wait = self._file.size, 0.0
            try:
                await self._request()
                continue
            except _StartOver as reason:
                starts_over += 1
                self._file.restart()
                if starts_over > MAX_STARTS_OVER:
                    raise DownloadError(f"started over {starts_over} times: {reason}") from None
            except _Crawling as crawl:
                slow += 1
                if slow >= self._limits.slow_windows:
                    raise TooSlow(str(crawl)) from None
            except (DownloadInterrupted, BadAnswerToRange) as problem:
                if self._complete():
                    return
                tries = 0 if self._file.size > before else tries + 1
                if tries >= self._limits.tries:
                    raise
                wait = self._wait(problem, tries)
            self._check_time(wait)
            if wait:
                await self._clock.sleep(wait)

    def _wait(self, problem: Exception, tries: int) -> float:
        """Return how long to wait: longer with each fruitless try, never less than was asked."""
        asked = problem.retry_after_s if isinstance(problem, Unavailable) else None
        if not tries:
            return asked or 0.0
        first_s, longest_s = self._limits.first_wait_s, self._limits.longest_wait_s
        return backoff_s(tries, first_s=first_s, longest_s=longest_s, at_least_s=asked or 0.0)

    def _check_time(self, wait: float = 0.0) -> None:
        if self._clock.monotonic() + wait >= self._deadline:
            raise TooSlow(
                f"{self._file.size} of {self._wanted.size_bytes} bytes came within "
                f"{self._limits.whole_s:.0f} s"
            )

    async def _request(self) -> None:
        held = PartialFile(self._file.size, self._etag if self._file.size else "")
        if held.bytes and not held.strong and not self._wanted.join_loosely:
            self._file.restart()
            held = PartialFile()
        async with self._connection.get(self._wanted.target, range_headers(held)) as answer:
            body = read_range_answer(
                answer.status, answer.headers, held, self._total, self._clock.now()
            )
            self._learn_size(body)
            if body.start_over and answer.status != 200:
                raise _StartOver(body.start_over)
            if body.start_over or not held.bytes:
                self._begin(body.etag)
            await self._take(answer, body)

    def _learn_size(self, body: RangeBody) -> None:
        if self._total is None:
            if body.total is None:
                raise WrongLength("the download host does not say how long the file is")
            if body.total > self._wanted.size_bytes:
                raise WrongLength(
                    f"the file at the download host has {body.total} bytes, the job says "
                    f"{self._wanted.size_bytes} at most"
                )
            self._total = body.total

    def _begin(self, etag: str) -> None:
        """Start the file; the server's name for it is durable before its first byte."""
        self._file.restart()
        self._tenths = 0
        self._etag = etag
        self._wanted.on_etag(etag)

    async def _take(self, answer: StreamedResponse, body: RangeBody) -> None:
        at = body.start
        window_end, window_bytes = self._clock.monotonic() + self._limits.window_s, 0
        async for chunk in pieces(answer, self._wanted.target):
            self.received += len(chunk)
            window_bytes += len(chunk)
            now = self._clock.monotonic()
            if now >= window_end:
                if window_bytes < self._limits.window_bytes:
                    raise _Crawling(f"{window_bytes} bytes came in {self._limits.window_s:.0f} s")
                self._check_time()
                window_end, window_bytes = now + self._limits.window_s, 0
            if body.end is not None and at + len(chunk) > body.end:
                raise BadAnswerToRange("the download host sent more than it announced")
            for part in _parts(chunk, (self._total or 0) // 10):
                at = self._store(at, part)
                if self._tell() and self._wanted.at_each_tenth is not None:
                    await self._wanted.at_each_tenth()
        if not self._complete() and (body.end is None or at < body.end):
            raise DownloadInterrupted("the download host ended the answer early")

    def _store(self, at: int, chunk: bytes | memoryview) -> int:
        """Write what is new of the chunk; what came before is compared. Return where it ends."""
        if at == self._file.size and len(chunk) <= (self._total or 0) - at:
            self._file.append(chunk)
            return at + len(chunk)
        rest = memoryview(chunk)
        if at < self._file.size:
            known = rest[: self._file.size - at]
            if not self._file.holds(at, known):
                raise _StartOver("the file changed at the host")
            rest, at = rest[len(known) :], at + len(known)
        room = (self._total or 0) - at
        if len(rest) > room:
            self._file.append(rest[:room])
            raise EndlessData(f"more than the declared {self._total} bytes came")
        if rest:
            self._file.append(rest)
        return at + len(rest)

    def _tell(self) -> bool:
        """Tell how far it is; True where another tenth is reached, and it is not the last."""
        size, total = self._file.size, self._total or 1
        self._wanted.on_progress(size, total)
        if size * 10 < (self._tenths + 1) * total:
            return False
        self._tenths = size * 10 // total
        return size < total


def _parts(chunk: bytes, tenth: int) -> Sequence[bytes | memoryview]:
    """Cut what came at once so that no tenth of a small image is passed over."""
    step = max(tenth, _LEAST_PART_BYTES)
    if len(chunk) <= step:
        return [chunk]
    whole = memoryview(chunk)
    return [whole[at : at + step] for at in range(0, len(whole), step)]
