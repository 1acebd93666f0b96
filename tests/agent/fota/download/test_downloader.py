from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

import pytest

from agent.fota.download.downloader import DownloadedFile, Downloader, DownloadLimits, TooSlow
from agent.fota.download.image_file import DiskFull
from agent.fota.download.ranges import (
    BadAnswerToRange,
    DownloadError,
    DownloadInterrupted,
    EndlessData,
    ImageMissing,
    WrongLength,
)
from agent.fota.download.requests import DownloadNetwork
from tests.support.fota.download_calls import (
    CONTENT,
    STAND_IN,
    downloader,
    fetched,
    is_whole,
    wanted,
)
from tests.support.fota.download_server import Fault, file_server
from tests.support.harness.manual_clock import ManualClock

PIECE = 64 * 1024


async def test_a_file_is_fetched_hashed_and_private(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    async with file_server(CONTENT) as server:
        found = await fetched(server, tmp_path, on_progress=lambda *at: seen.append(at))
    assert found == DownloadedFile(server.sha256, len(CONTENT), len(CONTENT))
    assert is_whole(tmp_path)
    assert stat.S_IMODE((tmp_path / "image.bin").stat().st_mode) == 0o600
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert not set(server.requests[0]) & {"authorization", "cookie", "range"}
    assert server.requests[0]["accept-encoding"] == "identity"


# What a resuming client meets: each row is what the server does on its first answers.
ROWS: dict[str, list[Fault]] = {
    "closed in the middle": [Fault(cut_after=100_000)],
    "closed at the first byte": [Fault(cut_after=1)],
    "closed before the last byte": [Fault(cut_after=len(CONTENT) - 1)],
    "closed after the headers": [Fault(cut_after=0)],
    "closed without an answer": [Fault(refuse=True)],
    "closed twice": [Fault(cut_after=100_000), Fault(cut_after=100_000)],
    "closed at every 20,000": [Fault(cut_after=20_000)] * 14,
    "down and up again 4 times": [Fault(cut_after=50_000), *[Fault(refuse=True)] * 4],
    "down and up 20 times": [Fault(cut_after=10_000), Fault(refuse=True)] * 20,
    "503 in the middle": [Fault(cut_after=100_000), Fault(status=503)],
    "no valid HTTP": [
        Fault(cut_after=100_000), Fault(headers={"content-length": "many"}),
    ],
    "502 with a page": [Fault(status=502, body=b"<html>bad gateway</html>")],
    "429 with Retry-After": [Fault(status=429, headers={"retry-after": "7"})],
    "500, then cut": [Fault(status=500), Fault(cut_after=100_000)],
    "wrong start": [Fault(cut_after=100_000), Fault(shift=5)],
    "start before what was asked": [Fault(cut_after=100_000), Fault(shift=-5)],
    "end too early, told truly": [Fault(cut_after=100_000), Fault(short_end=50_000)],
    "end behind the file": [
        Fault(cut_after=100_000),
        Fault(headers={"content-range": f"bytes 100000-{len(CONTENT)}/{len(CONTENT)}"}),
    ],
    "garbled range": [Fault(cut_after=100_000), Fault(headers={"content-range": "bytes many"})],
    "range without unit": [Fault(cut_after=100_000), Fault(headers={"content-range": "1-2/3"})],
    "no Content-Range": [Fault(cut_after=100_000), Fault(drop=frozenset({"content-range"}))],
    "range end before its start": [
        Fault(cut_after=100_000), Fault(headers={"content-range": "bytes 100000-9/300000"}),
    ],
    "length and range differ": [
        Fault(cut_after=100_000), Fault(headers={"content-range": "bytes 100000-100009/300000"}),
    ],
    "total not told": [
        Fault(cut_after=100_000), Fault(headers={"content-range": "bytes 100000-299999/*"}),
    ],
    "connection: close": [Fault(cut_after=100_000), Fault(headers={"connection": "close"})],
    "lower case and chunked": [Fault(cut_after=100_000), Fault(chunked=True)],
    "chunked from the start": [Fault(chunked=True, cut_after=100_000)],
    "compressed, unasked": [Fault(headers={"content-encoding": "gzip"})],
}  # fmt: skip


@pytest.mark.parametrize("etag", ['"strong"', 'W/"weak"', ""], ids=["strong", "weak", "none"])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_an_interrupted_download_ends_exact_and_fetches_little_twice(
    tmp_path: Path, row: list[Fault], etag: str
) -> None:
    async with file_server(CONTENT, faults=list(row), etag=etag) as server:
        found = await fetched(server, tmp_path)
    assert found.sha256 == server.sha256
    assert is_whole(tmp_path)
    again = found.received_bytes - len(CONTENT)
    # Each cut may lose what had not been written; an answer that is refused is not read.
    assert again <= PIECE if len(row) < 10 else again <= PIECE * 3


def test_there_are_more_than_the_25_rows() -> None:
    assert len(ROWS) >= 25


async def test_the_name_of_the_file_is_told_before_its_first_byte(tmp_path: Path) -> None:
    sizes: list[tuple[str, int]] = []
    path = tmp_path / "image.bin"
    async with file_server(CONTENT) as server:
        await fetched(
            server, tmp_path, on_etag=lambda etag: sizes.append((etag, path.stat().st_size))
        )
    assert sizes == [('"v1"', 0)]


async def test_a_whole_file_is_not_fetched_again(tmp_path: Path) -> None:
    async with file_server(CONTENT) as server:
        await fetched(server, tmp_path)
        found = await fetched(server, tmp_path, etag='"v1"')
    assert len(server.requests) == 1
    assert found == DownloadedFile(server.sha256, len(CONTENT), 0)


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault(status=404), ImageMissing, "404"),
        (Fault(status=403), ImageMissing, "403"),
        (Fault(body=b"short"), WrongLength, "has 5 bytes, the job says 300000"),
        (Fault(body=CONTENT + b"x"), WrongLength, "has 300001 bytes"),
        (Fault(chunked=True, endless=True), EndlessData, "more than the declared 300000"),
        (Fault(drop=frozenset({"content-length"}), endless=True), EndlessData, "more than"),
        (Fault(status=503), DownloadInterrupted, "503"),
        (Fault(refuse=True), DownloadInterrupted, "broke off"),
        (Fault(headers={"content-encoding": "gzip"}), BadAnswerToRange, "gzip"),
        (Fault(status=206), BadAnswerToRange, "whole was asked"),
        (Fault(status=204), ImageMissing, "204"),
    ],
    ids=str,
)
async def test_a_server_that_stays_wrong_is_named(
    tmp_path: Path, fault: Fault, error: type[DownloadError], words: str
) -> None:
    async with file_server(CONTENT, default=fault) as server:
        if fault.status == 206:
            server._answer = lambda request, fault: (206, {"content-length": "0"}, b"")  # type: ignore[method-assign]
        if fault.status == 204:
            server._answer = lambda request, fault: (204, {}, b"")  # type: ignore[method-assign]
        with pytest.raises(error, match=words):
            await fetched(server, tmp_path)
    assert len(server.requests) <= 5
    assert (tmp_path / "image.bin").stat().st_size <= len(CONTENT)


async def test_a_shorter_file_behind_a_chunked_answer_is_named(tmp_path: Path) -> None:
    async with file_server(CONTENT[:-1], default=Fault(chunked=True)) as server:
        with pytest.raises(WrongLength, match="299999"):
            await fetched(server, tmp_path)


async def test_retry_after_is_obeyed(tmp_path: Path) -> None:
    clock = ManualClock()
    fault = Fault(status=429, headers={"retry-after": "77"})
    async with file_server(CONTENT, faults=[fault]) as server:
        loader = Downloader(DownloadNetwork(STAND_IN), clock=clock)
        await loader.fetch(wanted(server, tmp_path))
        await loader.close()
    assert clock.waits == [77.0]


async def test_a_silent_server_is_left(tmp_path: Path) -> None:
    stalling = file_server(CONTENT, default=Fault(stall_after=0))
    async with stalling as server, downloader(silence_s=0.02) as loader:
        with pytest.raises(DownloadInterrupted, match="broke off"):
            await loader.fetch(wanted(server, tmp_path))


async def test_a_crawling_server_is_left_and_asked_anew_three_times(tmp_path: Path) -> None:
    clock = ManualClock()
    limits = DownloadLimits(window_s=60, window_bytes=1 << 30)

    def slow(_done: int, _total: int) -> None:
        clock.time += 61

    async with file_server(CONTENT * 9) as server:
        loader = Downloader(DownloadNetwork(STAND_IN), limits=limits, clock=clock)
        with pytest.raises(TooSlow, match="bytes came in 60 s"):
            await loader.fetch(
                wanted(server, tmp_path, size_bytes=9 * len(CONTENT), on_progress=slow)
            )
        await loader.close()
    assert len(server.requests) == 3


async def test_the_whole_download_has_a_deadline(tmp_path: Path) -> None:
    async with (
        file_server(CONTENT, default=Fault(status=503)) as server,
        downloader(whole_s=5.0) as loader,
    ):
        with pytest.raises(TooSlow, match="within 5 s"):
            await loader.fetch(wanted(server, tmp_path))


@pytest.mark.parametrize("asked", ["600", "3600"])
async def test_a_server_that_asks_for_more_time_than_is_left_is_away_and_not_slow(
    tmp_path: Path, asked: str
) -> None:
    faults = [Fault(cut_after=100_000)]
    fault = Fault(status=503, headers={"retry-after": asked})
    async with file_server(CONTENT, faults=faults, default=fault) as server:
        with pytest.raises(DownloadInterrupted, match="503") as caught:
            await fetched(server, tmp_path)
    assert caught.value.retry_after_s == float(asked)
    assert (tmp_path / "image.bin").stat().st_size == 100_000


async def test_what_the_tenth_raises_ends_the_download_and_keeps_the_bytes(tmp_path: Path) -> None:
    class GoneError(Exception):
        pass

    calls = []

    async def ask() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise GoneError

    async with file_server(CONTENT) as server:
        with pytest.raises(GoneError):
            await fetched(server, tmp_path, at_each_tenth=ask)
        assert 0 < (tmp_path / "image.bin").stat().st_size < len(CONTENT)


async def test_a_disk_without_room_is_named_before_a_byte_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    async with file_server(CONTENT) as server:
        with pytest.raises(DiskFull, match=f"needs {len(CONTENT)} more bytes in .*: 100 are free"):
            await fetched(server, tmp_path)
        assert not server.requests
        assert not (tmp_path / "image.bin").exists()
        # For the rest of one that was begun there is room.
        (tmp_path / "image.bin").write_bytes(CONTENT[:-100])
        usage = usage._replace(free=1024 * 1024 + 100)
        await fetched(server, tmp_path, etag='"v1"')


async def test_a_disk_that_fills_up_on_the_way_is_named_and_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, count = os.write, 0

    def filling(handle: int, data: bytes) -> int:
        nonlocal count
        if len(data) < 1000:  # the event loop's own wake-ups
            return write(handle, data)
        count += 1
        if count > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data)

    monkeypatch.setattr(os, "write", filling)
    async with file_server(CONTENT) as server:
        with pytest.raises(DiskFull, match="no room left"):
            await fetched(server, tmp_path)
    assert not (tmp_path / "image.bin").exists()


async def test_a_file_of_unknown_size_has_a_bound(tmp_path: Path) -> None:
    async with file_server(CONTENT) as server:
        found = await fetched(server, tmp_path, exact=False, size_bytes=400_000)
        assert found.size_bytes == len(CONTENT)
        (tmp_path / "image.bin").unlink()
        with pytest.raises(WrongLength, match="200000 at most"):
            await fetched(server, tmp_path, exact=False, size_bytes=200_000)
        server.faults = [Fault(chunked=True)]
        with pytest.raises(WrongLength, match="does not say"):
            await fetched(server, tmp_path, exact=False, size_bytes=400_000)


async def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / "image.bin").symlink_to(victim)
    async with file_server(CONTENT) as server:
        with pytest.raises(DownloadError):
            await fetched(server, tmp_path)
    assert victim.read_bytes() == b"mine"
