"""Fetches assistance data: A-GNSS in ranges, P-GPS from another host; checked before it is used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.call import Host
from agent.errors import BadAnswer, DeadlineExceeded
from agent.http.addresses import (
    Target,
    addresses_of,
    checked_address,
    is_loopback_url,
    plain_target,
)
from agent.location.agnss import AgnssRequest, FetchAgnss, MeasureAgnss
from agent.location.agnss_file import AgnssBlock, DamagedAssistance, parse_agnss
from agent.location.calls import ProjectSlugs
from agent.location.pgps import PredictionRequest, RequestPgps
from agent.location.pgps_file import LARGEST_BYTES, PredictionFile, parse_pgps

if TYPE_CHECKING:
    from datetime import datetime

    from agent.http import HttpClient

MAX_PIECES = 64
Progress = Callable[[int, int | None], None]
"""Called with the bytes so far and, where known, of how many."""


@dataclass(frozen=True, slots=True)
class AgnssData:
    """A-GNSS data: the bytes as they came, and their blocks."""

    content: bytes
    blocks: tuple[AgnssBlock, ...]


@dataclass(frozen=True, slots=True)
class PgpsData:
    """P-GPS data: the bytes as they came, and their predictions."""

    content: bytes
    file: PredictionFile


async def fetch_agnss(
    client: HttpClient, project: ProjectSlugs | None, wanted: AgnssRequest, progress: Progress
) -> AgnssData:
    """Fetch A-GNSS data piece by piece. Raises what a call raises, and DamagedAssistance."""
    total = await client.send(MeasureAgnss(project, wanted))
    content = bytearray()
    pieces = 0
    while total is None or len(content) < total:
        pieces += 1
        if pieces > MAX_PIECES:
            raise BadAnswer(f"the A-GNSS data is not whole after {MAX_PIECES} pieces")
        piece = await client.send(FetchAgnss(project, wanted, start=len(content)))
        if content and piece.total != total:
            raise BadAnswer(
                f"the A-GNSS data changed while it was fetched: {total} bytes, now {piece.total}",
                hint="fetch it again",
            )
        if piece.start == 0:
            content.clear()  # the service knows no ranges and sent the whole
        content += piece.data
        # The size of HEAD is only a first guess: the data may be renewed in between.
        total = piece.total
        progress(len(content), total)
    return AgnssData(bytes(content), parse_agnss(bytes(content)))


async def fetch_pgps(
    client: HttpClient,
    project: ProjectSlugs | None,
    wanted: PredictionRequest,
    progress: Progress,
    *,
    now: datetime,
    resolve: Callable[[str, int], Awaitable[Sequence[str]]] = addresses_of,
) -> PgpsData:
    """Fetch the predictions: ask where they are, download them with no credential, check them.

    They must cover the start that was asked for, or `now` where none was. The host is named by the
    answer, so it is connected to by https and at a public address alone, or, where the service is
    the stand-in, on this machine. Raises what a call raises, SourceRefused, DamagedAssistance.
    """
    link = await client.send(RequestPgps(project, wanted))
    stand_in = is_loopback_url(client.base_url(Host.DEVICE_CLOUD))
    target = plain_target(link.url, stand_in=stand_in)
    deadline_s = client.transport.deadlines.whole_s
    try:
        async with asyncio.timeout(deadline_s):
            found = await resolve(target.host, target.port)
            address = checked_address(target, found, stand_in=stand_in)
            content = await _download(client, target, address, progress)
    except TimeoutError as error:
        raise DeadlineExceeded(f"no whole P-GPS file within {deadline_s:g} s") from error
    file = parse_pgps(content, asked_count=wanted.count, asked_period_min=wanted.interval_min)
    due = wanted.start or now
    if not file.start <= due < file.end:
        raise DamagedAssistance(
            f"the predictions reach from {file.start} to {file.end}, and {due} is outside",
            hint="check this machine's clock" if wanted.start is None else "",
        )
    return PgpsData(content, file)


async def _download(client: HttpClient, target: Target, address: str, progress: Progress) -> bytes:
    content = bytearray()
    async with client.transport.open("GET", target.url, address=address) as stream:
        if stream.status != 200:
            raise BadAnswer(f"{target.host} answered {stream.status} where the P-GPS file is due")
        length = stream.headers.get("content-length", "")
        total = int(length) if length.isdecimal() and len(length) < 19 else None
        async for chunk in stream.chunks():
            content += chunk
            if len(content) > LARGEST_BYTES:
                raise BadAnswer(f"the P-GPS file is larger than {LARGEST_BYTES} bytes")
            progress(len(content), total)
    return bytes(content)
