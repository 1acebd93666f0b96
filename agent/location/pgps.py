"""P-GPS: predictions for days ahead, downloaded from another host and checked (D8.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.call import Host, Request, Response
from agent.errors import BadAnswer, DeadlineExceeded, UsageError
from agent.http import HttpClient
from agent.http.download_targets import (
    Target,
    addresses_of,
    checked_address,
    is_loopback_url,
    plain_target,
)
from agent.location.agnss_file import DamagedAssistance
from agent.location.calls import (
    Progress,
    ProjectCall,
    ProjectSlugs,
    location_path,
)
from agent.location.pgps_file import (
    GPS_EPOCH,
    INTERVAL_STEP_MIN,
    LARGEST_BYTES,
    MAX_INTERVAL_MIN,
    MAX_PREDICTIONS,
    MAX_REACH_MIN,
    MIN_INTERVAL_MIN,
    PredictionFile,
    gps_day_and_second,
    parse_pgps,
)

_DEFAULT_INTERVAL_MIN = 240
"""The service's, where none is asked for."""


@dataclass(frozen=True, slots=True)
class PredictionRequest:
    """The predictions to request: count, interval, start; None leaves a value to the service.

    `count` and `interval_min` have the bounds of a P-GPS file; together they reach 14 days ahead at
    most. `start` is an aware moment, whole seconds.
    """

    count: int | None = None
    interval_min: int | None = None
    start: datetime | None = None

    def __post_init__(self) -> None:
        if self.start is not None and (self.start.tzinfo is None or self.start < GPS_EPOCH):
            raise UsageError(f"predictions start at a moment with its offset, not {self.start}")
        if self.count is not None and not 1 <= self.count <= MAX_PREDICTIONS:
            raise UsageError(
                f"1 to {MAX_PREDICTIONS} predictions can be asked for, not {self.count}"
            )
        interval = self.interval_min
        if interval is not None and (
            not MIN_INTERVAL_MIN <= interval <= MAX_INTERVAL_MIN or interval % INTERVAL_STEP_MIN
        ):
            raise UsageError(
                f"predictions are {MIN_INTERVAL_MIN} to {MAX_INTERVAL_MIN} minutes apart by "
                f"{INTERVAL_STEP_MIN}, not {interval}"
            )
        if (self.count or 1) * (interval or _DEFAULT_INTERVAL_MIN) > MAX_REACH_MIN:
            raise UsageError(f"predictions reach {MAX_REACH_MIN // 1440} days ahead at most")


@dataclass(frozen=True, slots=True)
class PredictionLink:
    """The location of the file: `host`, with or without a scheme, and `path` below it."""

    host: str
    path: str

    @property
    def url(self) -> str:
        """Return the URL; https unless the host names another scheme (the stand-in's does)."""
        origin = self.host if "://" in self.host else f"https://{self.host}"
        return f"{origin.rstrip('/')}/{self.path.lstrip('/')}"


@dataclass(frozen=True, slots=True)
class RequestPgps(ProjectCall[PredictionLink]):
    """GET: the link from which the predictions are downloaded, with no credential."""

    wanted: PredictionRequest

    def request(self) -> Request:
        """Return the GET with the request as its query."""
        day, second = gps_day_and_second(self.wanted.start) if self.wanted.start else (None, None)
        fields = {
            "predictionCount": self.wanted.count,
            "predictionIntervalMinutes": self.wanted.interval_min,
            "startGpsDay": day,
            "startGpsTimeOfDaySeconds": second,
        }
        query = [(name, str(value)) for name, value in fields.items() if value is not None]
        return Request("GET", location_path(self.project, "pgps"), query=query)

    def parse(self, response: Response) -> PredictionLink:
        """Return the link. Raises BadAnswer where it names no host and path."""
        link = response.decode(PredictionLink)
        if not link.host or not link.path:
            raise BadAnswer("the P-GPS answer names no host and path")
        return link


@dataclass(frozen=True, slots=True)
class PgpsData:
    """P-GPS data: the bytes as they came, and their predictions."""

    content: bytes
    file: PredictionFile


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
