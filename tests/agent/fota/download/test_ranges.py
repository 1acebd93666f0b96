from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent.fota.download.downloader import MAX_STARTS_OVER
from agent.fota.download.ranges import (
    BadAnswerToRange,
    DownloadError,
    DownloadInterrupted,
    PartialFile,
    read_range_answer,
)
from tests.support.fota.download_server import Fault, file_server

if TYPE_CHECKING:
    pass
from tests.support.fota.download_calls import CONTENT, downloader, fetched, is_whole, wanted

OTHER = hashlib.shake_128(b"other").digest(300_000)


@pytest.mark.parametrize("etags", [('"a"', '"b"'), ('W/"a"', 'W/"b"'), ("", "")])
async def test_a_file_that_changed_between_two_ranges_is_fetched_anew(
    tmp_path: Path, etags: tuple[str, str]
) -> None:
    async with file_server(CONTENT, etag=etags[0], default=Fault(cut_after=100_000)) as server:
        server.faults = [Fault(cut_after=100_000), Fault(refuse=True)]
        async with downloader(tries=1) as loader:
            with pytest.raises(DownloadInterrupted):
                await loader.fetch(wanted(server, tmp_path))
        server.becomes(OTHER, etags[1])
        server.default = Fault()
        found = await fetched(server, tmp_path, etag=etags[0])
    assert found.sha256 == server.sha256
    assert is_whole(tmp_path, OTHER)


async def test_a_server_that_ignores_if_range_is_seen_through(tmp_path: Path) -> None:
    async with file_server(CONTENT, honour_if_range=False) as server:
        (tmp_path / "image.bin").write_bytes(OTHER[:100_000])
        found = await fetched(server, tmp_path, etag='"old"')
    assert found.sha256 == server.sha256
    assert is_whole(tmp_path)


def test_the_unit_of_a_range_is_told_whatever_its_case() -> None:
    headers, held = {"content-range": "Bytes 5-9/10"}, PartialFile(5, '"a"')
    body = read_range_answer(206, headers, held, 10, datetime.now(UTC))
    assert (body.start, body.end) == (5, 10)


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (PartialFile(5, '"a"'), "the file changed at the host"),
        (PartialFile(5, '"b"'), "the host sends no ranges"),
        (PartialFile(5, ""), "the host sends no ranges"),
        (PartialFile(0, ""), ""),
    ],
)
def test_why_a_download_starts_over_is_told(held: PartialFile, reason: str) -> None:
    body = read_range_answer(200, {"etag": '"b"'}, held, 10, datetime.now(UTC))
    assert (body.start, body.start_over) == (0, reason)


@pytest.mark.parametrize("told", ["bytes 5-4/10", "bytes 5-10/10"])
def test_a_range_that_ends_before_it_begins_or_behind_the_file_is_refused(told: str) -> None:
    headers, held = {"content-range": told}, PartialFile(5, '"a"')
    with pytest.raises(BadAnswerToRange):
        read_range_answer(206, headers, held, 10, datetime.now(UTC))


async def test_200_instead_of_206_starts_over(tmp_path: Path) -> None:
    faults = [Fault(cut_after=100_000), Fault(no_ranges=True)]
    async with file_server(CONTENT, faults=faults) as server:
        found = await fetched(server, tmp_path)
    assert is_whole(tmp_path)
    assert found.received_bytes <= len(CONTENT) + 100_000


async def test_a_host_that_refuses_requests_for_a_part_is_asked_for_the_whole(
    tmp_path: Path,
) -> None:
    faults = [Fault(cut_after=100_000), Fault(status=400)]
    async with file_server(CONTENT, faults=faults) as server:
        await fetched(server, tmp_path)
    assert is_whole(tmp_path)
    assert [("range" in request) for request in server.requests] == [False, True, False]


async def test_a_download_starts_over_three_times_and_no_more(tmp_path: Path) -> None:
    again = [Fault(cut_after=100_000), Fault(status=400)]
    async with file_server(CONTENT, faults=again * MAX_STARTS_OVER) as server:
        await fetched(server, tmp_path)
        (tmp_path / "image.bin").unlink()
        server.faults = again * (MAX_STARTS_OVER + 1)
        with pytest.raises(DownloadError, match="started over 4 times"):
            await fetched(server, tmp_path)


async def test_what_only_its_size_proves_is_not_joined_without_a_strong_etag(
    tmp_path: Path,
) -> None:
    async with file_server(CONTENT, etag='W/"a"', faults=[Fault(cut_after=9000)]) as server:
        await fetched(server, tmp_path, join_loosely=False)
    assert is_whole(tmp_path)
    assert "range" not in server.requests[1]


@pytest.mark.parametrize("etag", ['"größe"', '"größe"\x80', '"', '"\xe6\x97\xa5"'])
@pytest.mark.parametrize("join_loosely", [True, False])
async def test_an_entity_tag_that_cannot_be_sent_back_does_not_end_the_download(
    tmp_path: Path, etag: str, join_loosely: bool
) -> None:
    async with file_server(CONTENT, etag=etag, faults=[Fault(cut_after=100_000)]) as server:
        await fetched(server, tmp_path, join_loosely=join_loosely)
    assert is_whole(tmp_path)
    assert all("if-range" not in request for request in server.requests)
