"""P-GPS: predictions for days ahead; asked for here, downloaded from another host (D8.2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import msgspec

from agent.call import Call, Request, Response, Scheme
from agent.errors import BadAnswer, UsageError
from agent.location.calls import ProjectSlugs, location_advice, location_path, location_schemes
from agent.location.pgps_file import (
    GPS_EPOCH,
    INTERVAL_STEP_MIN,
    MAX_INTERVAL_MIN,
    MAX_PREDICTIONS,
    MAX_REACH_MIN,
    MIN_INTERVAL_MIN,
    gps_day_and_second,
)

_DEFAULT_INTERVAL_MIN = 240
"""The service's, where none is asked for."""


@dataclass(frozen=True, slots=True)
class PredictionRequest:
    """Which predictions: how many, how far apart, from when; None leaves it to the service.

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
    """Where the file is: `host`, with or without a scheme, and `path` below it."""

    host: str
    path: str

    @property
    def url(self) -> str:
        """Return the URL; https unless the host names another scheme (the stand-in's does)."""
        origin = self.host if "://" in self.host else f"https://{self.host}"
        return f"{origin.rstrip('/')}/{self.path.lstrip('/')}"


class _Link(msgspec.Struct):
    host: str
    path: str


@dataclass(frozen=True, slots=True)
class RequestPgps(Call[PredictionLink]):
    """GET: where the predictions can be downloaded, with no credential."""

    service: ClassVar[str] = "location"

    project: ProjectSlugs | None
    wanted: PredictionRequest

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """Return the credentials of the form that is used."""
        return location_schemes(self.project)

    def request(self) -> Request:
        """Return the GET with what was asked for as the query."""
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
        link = response.decode(_Link)
        if not link.host or not link.path:
            raise BadAnswer("the P-GPS answer names no host and path")
        return PredictionLink(link.host, link.path)

    def advice(self, status: int, code: int | None) -> str:
        """Return what to check (D8.4)."""
        return location_advice(self.project, status, code)
