"""Downloads an image to a file: resumed where it stopped, hashed while it arrives, bounded.

Each request asks for the rest (`ranges`) and appends what comes. Requests follow one another until
the file is whole, or the download has failed for good.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import Unavailable
from agent.fota.clock import AsyncClock, LoopClock
from agent.fota.download import ranges
from agent.fota.download.image_file import ImageFile
from agent.fota.download.requests import DownloadConnection, DownloadNetwork, pieces
from agent.http import StreamedResponse
from agent.http.download_targets import Target
from agent.retry import backoff_s

MAX_STARTS_OVER = 3
_LEAST_PART_BYTES = 64 * 1024


class TooSlow(ranges.DownloadError):
    """The download is slower than the minimum rate, or exceeds its time limit."""

    kind = "download-slow"


class _WindowTooSlow(ranges.DownloadError):
    """Too few bytes came within one window: the connection is made anew."""


class _StartOver(ranges.DownloadError):
    """The bytes at hand are worthless; the message says why."""


@dataclass(frozen=True, slots=True)
class DownloadLimits:
    """Limits of one download. The whole time is the vendor client's: 15 minutes."""

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


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """One file to download: its URL, its path, its size in bytes, and callbacks."""

    target: Target
    path: Path
    size_bytes: int
    exact: bool = True
    """Whether `size_bytes` is the size, or only what it may not exceed."""
    etag: str = ""
    """Of the bytes that are there already."""
    join_loosely: bool = True
    """Whether parts may be joined without a strong ETag, since the whole is proven later."""
    on_etag: Callable[[str], None] = lambda _: None
    """Called before the first byte is written, with the ETag of the server's file."""
    on_progress: Callable[[int, int], None] = lambda *_: None
    """Called with how many bytes are there, of how many."""
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

    async def fetch(self, request: DownloadRequest) -> DownloadedFile:
        """Fetch the file whole; what an earlier try left is resumed.

        Raises DownloadError (a final answer, by name), DownloadInterrupted (the connection or the
        server failed too often; what arrived is kept), SourceRefused, and what `at_each_tenth`
        raises.
        """
        with ImageFile(request.path) as file:
            await file.load(request.size_bytes)
            file.check_space(request.size_bytes)
            transfer = _Transfer(request, file, self._connection, self._limits, self._clock)
            await transfer.run()
            await file.sync()
            return DownloadedFile(file.hexdigest, file.size, transfer.received)

    async def probe_size(self, target: Target) -> int | None:
        """Return the size that the server states for a file, without fetching it."""
        async with self._connection.get(
            target, ranges.range_headers(ranges.PartialFile())
        ) as answer:
            return ranges.read_range_answer(
                answer.status, answer.headers, ranges.PartialFile(), None, self._clock.now()
            ).total


@dataclass
class _Transfer:
    """The transfer of one file, over as many requests as it takes."""

    request: DownloadRequest
    file: ImageFile
    connection: DownloadConnection
    limits: DownloadLimits
    clock: AsyncClock

    def __post_init__(self) -> None:
        self._etag = self.request.etag
        self._total = self.request.size_bytes if self.request.exact else None
        self._deadline = self.clock.monotonic() + self.limits.whole_s
        self._tenths = 0
        self.received = 0

    def _complete(self) -> bool:
        return self.file.size == self._total

    async def run(self) -> None:
        """Send requests until the file is whole."""
        tries = slow = starts_over = 0
        while not self._complete():
            before, wait = self.file.size, 0.0
            try:
                await self._send_request()
                continue
            except _StartOver as reason:
                starts_over += 1
                self.file.restart()
                if starts_over > MAX_STARTS_OVER:
                    raise ranges.DownloadError(
                        f"started over {starts_over} times: {reason}"
                    ) from None
            except _WindowTooSlow as crawl:
                slow += 1
                if slow >= self.limits.slow_windows:
                    raise TooSlow(str(crawl)) from None
            except (ranges.DownloadInterrupted, ranges.BadAnswerToRange) as problem:
                if self._complete():
                    return
                tries = 0 if self.file.size > before else tries + 1
                asked = problem.retry_after_s if isinstance(problem, Unavailable) else None
                wait = self._wait(asked or 0.0, tries)
                # A host that asks for a wait which leaves no time is away, not slow.
                is_for_later = asked is not None and self._is_late(wait)
                if tries >= self.limits.tries or is_for_later:
                    raise
            self._check_time(wait)
            if wait:
                await self.clock.sleep(wait)

    def _wait(self, asked_s: float, tries: int) -> float:
        """Return the seconds to wait: longer after each fruitless try."""
        if not tries:
            return asked_s
        first_s, longest_s = self.limits.first_wait_s, self.limits.longest_wait_s
        return backoff_s(tries, first_s=first_s, longest_s=longest_s, at_least_s=asked_s)

    def _is_late(self, wait: float) -> bool:
        return self.clock.monotonic() + wait >= self._deadline

    def _check_time(self, wait: float = 0.0) -> None:
        if self._is_late(wait):
            raise TooSlow(
                f"{self.file.size} of {self.request.size_bytes} bytes came within "
                f"{self.limits.whole_s:.0f} s"
            )

    async def _send_request(self) -> None:
        held = ranges.PartialFile(self.file.size, self._etag if self.file.size else "")
        if held.bytes and not held.strong and not self.request.join_loosely:
            self.file.restart()
            held = ranges.PartialFile()
        async with self.connection.get(self.request.target, ranges.range_headers(held)) as answer:
            body = ranges.read_range_answer(
                answer.status, answer.headers, held, self._total, self.clock.now()
            )
            self._set_total(body)
            if body.start_over and answer.status != 200:
                raise _StartOver(body.start_over)
            if body.start_over or not held.bytes:
                self._begin(body.etag)
            await self._receive(answer, body)

    def _set_total(self, body: ranges.RangeBody) -> None:
        if self._total is None:
            if body.total is None:
                raise ranges.WrongLength("the download host does not say how long the file is")
            if body.total > self.request.size_bytes:
                raise ranges.WrongLength(
                    f"the file at the download host has {body.total} bytes, the job says "
                    f"{self.request.size_bytes} at most"
                )
            self._total = body.total

    def _begin(self, etag: str) -> None:
        """Begin the file anew; its ETag is durable before the file's first byte."""
        self.file.restart()
        self._tenths = 0
        self._etag = etag
        self.request.on_etag(etag)

    async def _receive(self, answer: StreamedResponse, body: ranges.RangeBody) -> None:
        at = body.start
        window_end, window_bytes = self.clock.monotonic() + self.limits.window_s, 0
        async for chunk in pieces(answer, self.request.target):
            self.received += len(chunk)
            window_bytes += len(chunk)
            now = self.clock.monotonic()
            if now >= window_end:
                if window_bytes < self.limits.window_bytes:
                    raise _WindowTooSlow(
                        f"{window_bytes} bytes came in {self.limits.window_s:.0f} s"
                    )
                self._check_time()
                window_end, window_bytes = now + self.limits.window_s, 0
            if body.end is not None and at + len(chunk) > body.end:
                raise ranges.BadAnswerToRange("the download host sent more than it announced")
            for part in _parts(chunk, (self._total or 0) // 10):
                at = self._store(at, part)
                if self._report_progress() and self.request.at_each_tenth is not None:
                    await self.request.at_each_tenth()
        if not self._complete() and (body.end is None or at < body.end):
            raise ranges.DownloadInterrupted("the download host ended the answer early")

    def _store(self, at: int, chunk: bytes | memoryview) -> int:
        """Append the new part of a chunk, compare the rest with the file; return where it ends."""
        rest = memoryview(chunk)
        if at < self.file.size:
            known = rest[: self.file.size - at]
            if not self.file.holds(at, known):
                raise _StartOver("the file changed at the host")
            rest, at = rest[len(known) :], at + len(known)
        missing = (self._total or 0) - at
        if len(rest) > missing:
            self.file.append(rest[:missing])
            raise ranges.EndlessData(f"more than the declared {self._total} bytes came")
        if rest:
            self.file.append(rest)
        return at + len(rest)

    def _report_progress(self) -> bool:
        """Report the progress; return True if another tenth is reached that is not the last."""
        size, total = self.file.size, self._total or 1
        self.request.on_progress(size, total)
        if size * 10 < (self._tenths + 1) * total:
            return False
        self._tenths = size * 10 // total
        return size < total


def _parts(chunk: bytes, tenth: int) -> Sequence[bytes | memoryview]:
    """Divide a large piece so that no tenth of a small image is skipped."""
    step = max(tenth, _LEAST_PART_BYTES)
    if len(chunk) <= step:
        return [chunk]
    whole = memoryview(chunk)
    return [whole[at : at + step] for at in range(0, len(whole), step)]
