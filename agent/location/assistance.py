"""Fetch assistance data: A-GNSS in ranges, P-GPS from the other host; checked before it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.errors import BadAnswer, DeadlineExceeded
from agent.location.agnss import FetchAgnss, MeasureAgnss, Wanted
from agent.location.agnss_file import Block, parse_agnss
from agent.location.calls import Project
from agent.location.pgps import PredictionRequest, RequestPgps
from agent.location.pgps_file import LARGEST_BYTES, PredictionFile, parse_pgps

if TYPE_CHECKING:
    from agent.http import HttpClient

Progress = Callable[[int, int | None], None]
"""Called with the bytes so far and, where known, of how many."""


@dataclass(frozen=True, slots=True)
class AgnssData:
    """A-GNSS data: the bytes as they came, and their blocks."""

    content: bytes
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class PgpsData:
    """P-GPS data: the bytes as they came, and their predictions."""

    content: bytes
    file: PredictionFile


async def fetch_agnss(
    client: HttpClient, project: Project | None, wanted: Wanted, progress: Progress
) -> AgnssData:
    """Fetch A-GNSS data piece by piece. Raises what a call raises, and DamagedAssistance."""
    total = await client.send(MeasureAgnss(project, wanted))
    content = bytearray()
    while total is None or len(content) < total:
        piece = await client.send(FetchAgnss(project, wanted, start=len(content)))
        if content and total is not None and piece.total != total:
            raise BadAnswer(
                f"the A-GNSS data changed while it was fetched: {total} bytes, now {piece.total}",
                hint="fetch it again",
            )
        if piece.start == 0:
            content.clear()  # the service knows no ranges and sent the whole
        content += piece.data
        total = piece.total
        progress(len(content), total)
        if not piece.data:
            break
    return AgnssData(bytes(content), parse_agnss(bytes(content)))


async def fetch_pgps(
    client: HttpClient, project: Project | None, wanted: PredictionRequest, progress: Progress
) -> PgpsData:
    """Ask where the predictions are, download them with no credential, check their header."""
    link = await client.send(RequestPgps(project, wanted))
    content = bytearray()
    deadline_s = client.wire.deadlines.whole_s
    try:
        async with asyncio.timeout(deadline_s), client.wire.open("GET", link.url) as stream:
            if stream.status != 200:
                raise BadAnswer(f"the P-GPS host answered {stream.status} for {link.path}")
            length = stream.headers.get("content-length", "")
            total = int(length) if length.isdecimal() else None
            async for chunk in stream.chunks():
                content += chunk
                if len(content) > LARGEST_BYTES:
                    raise BadAnswer(f"the P-GPS file is larger than {LARGEST_BYTES} bytes")
                progress(len(content), total)
    except TimeoutError as error:
        raise DeadlineExceeded(f"no whole P-GPS file within {deadline_s:g} s") from error
    file = parse_pgps(
        bytes(content), asked_count=wanted.count, asked_period_min=wanted.interval_min
    )
    return PgpsData(bytes(content), file)
