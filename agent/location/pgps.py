"""P-GPS: predictions for days ahead, downloaded from another host and checked (D8.2)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.call import Host, Request, Response, content_length
from agent.config.project import ProjectSlugs
from agent.config.urls import is_loopback_url
from agent.errors import BadAnswer, DeadlineExceeded, UsageError
from agent.http import HttpClient, download_targets
from agent.location import calls, pgps_file
from agent.location.agnss_file import DamagedAssistance
from agent.retry import check_available

_DEFAULT_INTERVAL_MIN = 240
"""The service's, where none is asked for."""
_REACH = f"predictions reach {pgps_file.MAX_REACH_MIN // 1440} days ahead at most"


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
        if self.start is not None and (
            self.start.tzinfo is None or self.start < pgps_file.GPS_EPOCH
        ):
            raise UsageError(f"predictions start at a moment with its offset, not {self.start}")
        if self.count is not None and not 1 <= self.count <= pgps_file.MAX_PREDICTIONS:
            raise UsageError(
                f"1 to {pgps_file.MAX_PREDICTIONS} predictions can be asked for, not {self.count}"
            )
        interval = self.interval_min
        if interval is not None and (
            not pgps_file.MIN_INTERVAL_MIN <= interval <= pgps_file.MAX_INTERVAL_MIN
            or interval % pgps_file.INTERVAL_STEP_MIN
        ):
            raise UsageError(
                f"predictions are {pgps_file.MIN_INTERVAL_MIN} to {pgps_file.MAX_INTERVAL_MIN} "
                f"minutes apart by {pgps_file.INTERVAL_STEP_MIN}, not {interval}"
            )
        apart = interval or _DEFAULT_INTERVAL_MIN
        if (self.count or 1) * apart > pgps_file.MAX_REACH_MIN:
            raise UsageError(
                f"{_REACH}: those {apart} minutes apart are {pgps_file.MAX_REACH_MIN // apart}"
            )


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
class RequestPgps(calls.ProjectCall[PredictionLink]):
    """GET: the link from which the predictions are downloaded, with no credential."""

    wanted: PredictionRequest

    def request(self) -> Request:
        """Return the GET with the request as its query."""
        day, second = (
            pgps_file.gps_day_and_second(self.wanted.start) if self.wanted.start else (None, None)
        )
        fields = {
            "predictionCount": self.wanted.count,
            "predictionIntervalMinutes": self.wanted.interval_min,
            "startGpsDay": day,
            "startGpsTimeOfDaySeconds": second,
        }
        query = [(name, str(value)) for name, value in fields.items() if value is not None]
        return Request("GET", calls.location_path(self.project, "pgps"), query=query)

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
    file: pgps_file.PredictionFile


async def fetch_pgps(
    client: HttpClient,
    project: ProjectSlugs | None,
    wanted: PredictionRequest,
    progress: calls.Progress,
    *,
    now: datetime,
    resolve: download_targets.Resolve = download_targets.addresses_of,
) -> PgpsData:
    """Fetch the predictions: ask where they are, download them with no credential, check them.

    They must cover the start that was asked for, or `now` where none was. The host is named by the
    answer, so it is connected to by https and at a public address alone, which a proxy chooses
    where there is one; or, where the service is the stand-in, on this machine. Raises what a call
    raises, SourceRefused, DamagedAssistance, and UsageError for a start that is too far ahead.
    """
    last = now + timedelta(minutes=pgps_file.MAX_REACH_MIN)
    if wanted.start is not None and wanted.start > last:
        raise UsageError(
            f"{_REACH}: by this machine's clock the last start is {last:%Y-%m-%dT%H:%M:%SZ}"
        )
    link = await client.send(RequestPgps(project, wanted))
    stand_in = is_loopback_url(client.base_url(Host.DEVICE_CLOUD))
    target = download_targets.plain_target(link.url, stand_in=stand_in)
    deadline_s = client.transport.deadlines.whole_s
    try:
        async with asyncio.timeout(deadline_s):
            addresses = await download_targets.addresses_to_try(
                target, resolve, stand_in=stand_in, by_proxy=client.transport.by_proxy
            )
            content = await _download(client, target, addresses, progress)
    except TimeoutError as error:
        raise DeadlineExceeded(f"no whole P-GPS file within {deadline_s:g} s") from error
    file = pgps_file.parse_pgps(
        content, asked_count=wanted.count, asked_period_min=wanted.interval_min
    )
    due = wanted.start or now
    begin = file.predictions[0].valid_from
    if not begin <= due < file.end:
        raise DamagedAssistance(
            f"the predictions reach from {begin} to {file.end}, and {due} is outside",
            hint="check this machine's clock" if wanted.start is None else "",
        )
    return PgpsData(content, file)


async def _download(
    client: HttpClient,
    target: download_targets.Target,
    addresses: Sequence[str],
    progress: calls.Progress,
) -> bytes:
    content = bytearray()
    async with client.transport.open("GET", target.url, addresses=addresses) as stream:
        if stream.status != 200:
            what = f"{target.host} answered {stream.status} where the P-GPS file is due"
            check_available(what, stream.status, stream.headers, datetime.now(UTC))
            raise BadAnswer(what)
        total = content_length(stream.headers)
        async for chunk in stream.chunks():
            content += chunk
            if len(content) > pgps_file.LARGEST_BYTES:
                raise BadAnswer(f"the P-GPS file is larger than {pgps_file.LARGEST_BYTES} bytes")
            progress(len(content), total)
    return bytes(content)
