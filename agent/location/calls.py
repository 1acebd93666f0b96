"""The location calls: Wi-Fi, cell and ground-fix, in the current and the legacy form (D8)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from agent.call import Call, Request, Response, Scheme, T_co
from agent.config.profile import Profile
from agent.config.project import ProjectSlugs
from agent.errors import NOTHING_FOUND
from agent.location.position import Position

_DEVICE = "x-custom-device-id"
LEGACY_WARNING = (
    "the location path without organization and project is deprecated: `cellagent config set "
    "location.legacy false` takes /v1/organizations/<organization>/projects/<project>/location/, "
    "with an organization auth token"
)

Progress = Callable[[int, int | None], None]
"""Called as a file comes, with the bytes so far and, where known, of how many."""


def project_of(profile: Profile) -> ProjectSlugs | None:
    """Return the slugs of the profile; None where it asks for the legacy form of the path."""
    if profile.location.legacy:
        return None
    return ProjectSlugs(profile.account.organization, profile.account.project)


def can_be_header(device_id: str) -> bool:
    """Return whether a device can be named in a header, which takes printable ASCII alone."""
    return bool(device_id) and device_id.isascii() and device_id.isprintable()


def location_path(project: ProjectSlugs | None, endpoint: str) -> str:
    """Return the path of an endpoint: the organization's form, or without one the legacy form."""
    if project is None:
        return f"/v1/location/{endpoint}"
    return f"{project.prefix}/location/{endpoint}"


@dataclass(frozen=True, slots=True)
class ProjectCall(Call[T_co]):
    """Base of the calls of the location service; `project` None is the legacy form of the path."""

    service: ClassVar[str] = "location"

    project: ProjectSlugs | None

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """Return the credentials of a form: each goes to its own form only (D8.5, D10.7)."""
        if self.project is not None:
            return (Scheme.ORGANIZATION_TOKEN,)
        # A kit that is attached always has a token: what was configured for location comes first.
        configured = (Scheme.SERVICE_TOKEN, Scheme.SERVICE_JWT, Scheme.EVALUATION_TOKEN)
        return (*configured, Scheme.DEVICE_JWT)

    @property
    def warning(self) -> str:
        """That the legacy form of the path is deprecated, and what replaces it (D8.3)."""
        return LEGACY_WARNING if self.project is None else ""

    def advice(self, status: int, code: int | None) -> str:
        """Return what to check: the causes that this status can have here (D8.4).

        "" for a 401 of the legacy form: what each kind of token is refused for, it says itself.
        """
        project = self.project
        if status == 401 and project is not None:
            return (
                "check that the organization auth token is whole, of this organization and not "
                "deleted (an organization admin makes another; CELLAGENT_ORG_TOKEN takes it), and "
                f'the slugs "{project.organization}" and "{project.project}"'
            )
        if status == 403:
            return "switch location services on for this project, at the service"
        if status != 404:
            return ""
        # The other codes of a 404 are about the path, not about the scan.
        if code == NOTHING_FOUND:
            return "no position is known for what was heard: scan again, or allow coarse results"
        if project is None:
            return f"no position was found, or the legacy path is gone: {LEGACY_WARNING}"
        return "no position was found, or the path is wrong: check hosts.device_cloud and the slugs"


@dataclass(frozen=True, slots=True)
class LocationCall(ProjectCall[Position | None]):
    """Base of the three calls that locate, with the options of the answer.

    `do_reply` False stores the position and answers None.
    `high_confidence` asks for the radius of 95 % instead of 68 %. `fallback` False refuses coarse
    results: 404 when nothing better is found. None leaves an option to the service. `device_id`
    names the device when a proxy calls. `heard_by_kit` is False for the scan of a host's own radio.
    """

    max_bytes: ClassVar[int] = 256 * 1024
    endpoint: ClassVar[str] = ""
    by_cells: ClassVar[bool] = True
    """Whether it knows coarse results: those of cells. `fallback` is not sent where it does not."""

    do_reply: bool | None = None
    high_confidence: bool | None = None
    fallback: bool | None = None
    device_id: str = ""
    heard_by_kit: bool = True

    @property
    def in_kit_name(self) -> bool:
        """Whether it names a device or carries what a kit heard."""
        return self.heard_by_kit or bool(self.device_id)

    def body(self) -> Mapping[str, object]:
        """Return the JSON body."""
        raise NotImplementedError

    def request(self) -> Request:
        """Return the POST with its options as the query."""
        options = {
            "doReply": self.do_reply,
            "hiConf": self.high_confidence,
            "fallback": self.fallback if self.by_cells else None,
        }
        return Request(
            "POST",
            location_path(self.project, self.endpoint),
            query=[
                (name, str(value).lower()) for name, value in options.items() if value is not None
            ],
            headers={_DEVICE: self.device_id} if can_be_header(self.device_id) else {},
            json=self.body(),
        )

    def parse(self, response: Response) -> Position | None:
        """Return the position; None when none was asked for."""
        if self.do_reply is False and not response.content.strip():
            return None
        return response.decode(Position)

    def serves(self) -> str:
        """Return the device that a proxy calls for."""
        return self.device_id


@dataclass(frozen=True, slots=True)
class LocateWifi(LocationCall):
    """The position by access points, in the form of `access_points_to_json`."""

    endpoint: ClassVar[str] = "wifi"
    by_cells: ClassVar[bool] = False
    access_points: Sequence[Mapping[str, object]] = ()

    def body(self) -> Mapping[str, object]:
        """Return `{"accessPoints": [...]}`."""
        return {"accessPoints": list(self.access_points)}


@dataclass(frozen=True, slots=True)
class LocateCell(LocationCall):
    """The position by cells, in the form of `measurement_to_json`; `radio` is their kind."""

    endpoint: ClassVar[str] = "cell"
    cells: Sequence[Mapping[str, object]] = ()
    radio: str = "lte"

    def body(self) -> Mapping[str, object]:
        """Return `{"lte": [...]}`, "ltecatm" or "nbiot"."""
        return {self.radio: list(self.cells)}


@dataclass(frozen=True, slots=True)
class GroundFix(LocationCall):
    """The position by cells and access points together; either may be empty, not both.

    The service takes Wi-Fi as an object with `accessPoints`, which both of its generations know,
    and as a bare array (`wifi_as_array`), which only the newer one does.
    """

    endpoint: ClassVar[str] = "ground-fix"
    cells: Sequence[Mapping[str, object]] = ()
    access_points: Sequence[Mapping[str, object]] = ()
    radio: str = "lte"
    wifi_as_array: bool = False

    def body(self) -> Mapping[str, object]:
        """Return the cells and access points, each only if there are any."""
        body: dict[str, object] = {}
        if self.cells:
            body[self.radio] = list(self.cells)
        if self.access_points:
            points = list(self.access_points)
            body["wifi"] = points if self.wifi_as_array else {"accessPoints": points}
        return body
