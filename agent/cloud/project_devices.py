"""Devices of an organization's project: onboarded by CSV, with an organization auth token.

Facts: the service's released command line tool. The answer tells where the result is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar
from urllib.parse import urlsplit

import msgspec

from agent.call import Call, Request, Response, Scheme
from agent.cloud.public_keys import csv_request
from agent.config.project import ProjectSlugs
from agent.errors import BadAnswer, UsageError

IN_PROGRESS, SUCCEEDED = "IN_PROGRESS", "SUCCEEDED"
RESULT_DEADLINE_S = 900.0


class ProvenBy(Enum):
    """What proves a device; the value is its column."""

    CERTIFICATE = "certificate"
    ATTESTATION = "attestationToken"
    """%ATTESTTOKEN of an nRF91."""
    REGISTRATION = "onboardingToken"
    """%REGJWT of an nRF93M1."""


class RowError(msgspec.Struct, frozen=True, rename="camel"):
    """Why a row was refused; the first row behind the heading is 0."""

    row: int = 0
    device_id: str = ""
    error: str = ""

    def __str__(self) -> str:
        return f"row {self.row}, {self.device_id}: {self.error}"


class _Errors(msgspec.Struct):
    errors: list[RowError] = []


class OnboardingResult(msgspec.Struct, frozen=True, rename="camel"):
    """How far an onboarding is; succeeded with errors, it has left out those rows."""

    status: str
    error_summary: _Errors = msgspec.field(default_factory=_Errors)

    @property
    def errors(self) -> Sequence[RowError]:
        """The rows that were refused."""
        return self.error_summary.errors


@dataclass(frozen=True, slots=True)
class OnboardInProject(Call[str]):
    """Bring devices into a project: rows of a device id and what proves it, all of one kind.

    The answer is the path of the result.
    """

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.ORGANIZATION_TOKEN,)
    repeatable: ClassVar[bool] = False

    project: ProjectSlugs
    proven_by: ProvenBy
    rows: tuple[tuple[str, str], ...] = field(repr=False)

    def request(self) -> Request:
        """Return the POST. Raises UsageError."""
        for device_id, proof in self.rows:
            if not proof.strip() or "PRIVATE KEY" in proof:
                raise UsageError(f"{device_id}: that is no {self.proven_by.value}")
        path = f"{self.project.prefix}/long-range/devices/bulk"
        return csv_request(path, self.rows, heading=("deviceId", self.proven_by.value))

    def parse(self, response: Response) -> str:
        """Return the path of the result. Raises BadAnswer."""
        place = response.headers.get("location", "")
        if not place:
            body = response.json()
            place = str(body.get("url", "")) if isinstance(body, dict) else ""
        # The token goes to the host of the profile, whichever host an answer names.
        try:
            parts = urlsplit(place)
        except ValueError:
            parts = urlsplit("")
        if not parts.path.startswith("/v1/") or not parts.path.isprintable():
            raise BadAnswer("the answer does not say where the result will be")
        return parts.path + (f"?{parts.query}" if parts.query else "")


@dataclass(frozen=True, slots=True)
class FetchOnboardingResult(Call[OnboardingResult]):
    """How far an onboarding is, by the path that its answer told."""

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.ORGANIZATION_TOKEN,)

    place: str

    def request(self) -> Request:
        """Return the GET."""
        return Request("GET", self.place)

    def parse(self, response: Response) -> OnboardingResult:
        """Return the state and the rows that were refused. Raises BadAnswer."""
        return response.decode(OnboardingResult)
