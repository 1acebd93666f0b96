"""Operations of the device cloud: how they are declared, what their requests bring, what follows.

How a request is checked against its declaration is in `agent.standin.core.serving`.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from agent.standin.core.dispatch import DEFAULT_MAX_BODY
from agent.standin.core.operation import Link, Operation, Parameter, in_path
from agent.standin.core.responses import Refused
from agent.standin.core.schema import Errors, Schema, first_error
from agent.standin.core.serving import JSON_TYPE, CheckedOperation, CheckedRequest
from agent.standin.device_cloud import paging, refusals
from agent.standin.device_cloud.access import USER, AcceptedSchemes, authenticate
from agent.standin.device_cloud.seed import GENERIC
from agent.standin.device_cloud.shapes import ID
from agent.standin.principal import Principal
from agent.standin.state import ORGANIZATION, PROJECT, Cloud
from agent.standin.store import TableOf

BYTES = "application/octet-stream"
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?")
_IF_MATCH = "Takes an optional `If-Match`; another version than the latest is refused with 412."
_SEEDED = {"organization": ORGANIZATION, "project": PROJECT, "device_id": GENERIC}
_MALFORMED = frozenset({paging.TOKEN_NAME, "transform"})
"""Parameters in a language of their own: what is not in that language is answered with 400."""
_REFUSALS = (400, 401, 403, 404, 412, 413, 415, 422)


class _OfTeam(Protocol):
    team: str


Owned = TypeVar("Owned", bound=_OfTeam)


class Context(CheckedRequest):
    """A checked request of the device cloud."""

    @property
    def team(self) -> str:
        """The team that the caller acts for; the first one for a token of an organization."""
        return self.principal.team or self.cloud.team_id

    def owned(self, of: TableOf[Owned]) -> dict[str, Owned]:
        """Return the records of the caller's team, by their keys."""
        team = self.team
        return {key: row for key, row in self.cloud.table(of).items() if row.team == team}

    def own(self, of: TableOf[Owned], key: str, missing: refusals.DeviceCloudRefused) -> Owned:
        """Return a record of the caller's team. Raises `missing` where it has none of that key."""
        row = self.cloud.table(of).get(key)
        if row is None or row.team != self.team:
            raise missing
        return row

    def page(self, *, descending: bool = False) -> paging.Page:
        """Return which part of a list is requested; `descending` where the request says nothing."""
        return paging.page(self.query, descending=descending)

    def check_if_match(self, version: str) -> None:
        """Raise 412 if `If-Match` names another version; without the header nothing is checked."""
        header = self.headers.get("if-match")
        if header is None:
            return
        wanted = [part.strip().removeprefix("W/").strip('"') for part in header.split(",")]
        if "*" not in wanted and version not in wanted:
            raise refusals.DeviceCloudRefused(
                412, "PreconditionFailedError: the resource has changed since that version"
            )


Handler = Callable[[Context], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCloudOperation(CheckedOperation[Context]):
    """An operation of the device cloud with its handler and its access."""

    access: AcceptedSchemes
    takes_last: ClassVar[bool] = True

    def authenticate(self, request: Request, cloud: Cloud) -> Principal:
        """Return the caller. Raises 401, 403."""
        return authenticate(request, cloud, self.access)

    def context(
        self, request: Request, cloud: Cloud, principal: Principal, path: dict[str, str]
    ) -> Context:
        """Return the context."""
        return Context(request, self, cloud, principal, path)

    def convert(self, text: str, schema: Schema) -> object:
        """Return a number or a truth value, however it is spelt, unless the schema is a text's."""
        if schema.get("type") == "string":
            return text
        text = text.lower()
        if text in {"true", "false"}:
            return text == "true"
        if not _NUMBER.fullmatch(text):
            return text
        number = float(text)
        return int(number) if number.is_integer() else number

    def split(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the items of a list: its name repeated, or joined by commas, or both."""
        return [part for text in texts for part in text.split(",") if part]

    def declared_type(self, media_type: str) -> str:
        """Return the media type; any form of JSON is taken as JSON."""
        return JSON_TYPE if media_type.endswith("+json") else media_type

    def refuse_fields(self, errors: dict[str, Errors]) -> Refused:
        """422: the first error; 400 where only what is malformed is wrong."""
        invalid = {name: wrong for name, wrong in errors.items() if name not in _MALFORMED}
        if invalid:
            return refusals.invalid(first_error(invalid))
        return refusals.bad_request(first_error(errors))

    def refuse_body(self, errors: Errors) -> Refused:
        """422: the first error."""
        return refusals.invalid(first_error(errors))

    def refuse_json(self, problem: str) -> Refused:
        """400."""
        return refusals.bad_request(f"the body is not JSON: {problem}")

    def refuse_media_type(self, media_type: str) -> Refused:
        """415."""
        taken = ", ".join(self.operation.bodies)
        return refusals.DeviceCloudRefused(
            415, f"the body is sent as {taken}, not as {media_type or 'no type at all'}"
        )


_OF_A_DEVICE = (
    "FetchDevice",
    "UpdateDeviceName",
    "UpdateDeviceTags",
    "UpdateDeviceState",
    "SendDeviceMessage",
    "ListFOTAJobExecutions",
)
_SAME_DEVICE = {"device_id": "$request.path.device_id"}
_FIRST_DEVICE = {"device_id": "$response.body#/items/0/id"}
_SAME_BULK_REQUEST = {"request_id": "$response.body#/bulkOpsRequestId"}
_CLAIMED = {"device": "$response.body#/id"}
_COMMAND = {"device": "$request.path.device", "command": "$response.body#/id"}
_FIRST_BUNDLE = {"bundle_id": "$response.body#/items/0/bundleId"}
_JOB = {"job_id": "$response.body#/jobId"}
_ANCHOR = {"mac_address": "$request.body#/macAddress"}

# Operation, status of its answer, parameters from it, operations that take these parameters.
_LINKS: tuple[tuple[str, int, Mapping[str, str], tuple[str, ...]], ...] = (
    ("ListDevices", 200, _FIRST_DEVICE, _OF_A_DEVICE),
    ("AssociateDevice", 202, _SAME_DEVICE, (*_OF_A_DEVICE, "DeleteDevice", "DissociateDevice")),
    ("OnboardDevice", 202, _SAME_DEVICE, (*_OF_A_DEVICE, "DeleteDevice")),
    ("UpdateDeviceState", 202, _SAME_DEVICE, ("FetchDevice",)),
    ("DeleteDevice", 202, _SAME_DEVICE, ("FetchDevice",)),
    ("RegisterPublicKeys", 202, _SAME_BULK_REQUEST, ("FetchBulkOpsRequest",)),
    ("RegisterCertificates", 202, _SAME_BULK_REQUEST, ("FetchBulkOpsRequest",)),
    ("OnboardDevices", 202, _SAME_BULK_REQUEST, ("FetchBulkOpsRequest",)),
    (
        "ClaimDeviceOwnership",
        201,
        _CLAIMED,
        ("FetchClaimedDevice", "CreateDeviceProvisioningCommand", "UnclaimDevice"),
    ),
    ("CreateDeviceProvisioningCommand", 201, _COMMAND, ("FetchDeviceProvisioningCommand",)),
    ("ListFirmware", 200, _FIRST_BUNDLE, ("FetchFirmware", "DeleteFirmware")),
    (
        "CreateFOTAJob",
        201,
        _JOB,
        ("FetchFOTAJob", "ApplyFOTAJob", "CancelFOTAJob", "DeleteFOTAJob"),
    ),
    ("CreateFOTAJob", 201, _JOB, ("ListFOTAJobExecutionStatuses",)),
    ("CreateAnchor", 202, _ANCHOR, ("FetchAnchor", "UpdateAnchor", "DeleteAnchor")),
)


def declare(
    call: str,
    name: str,
    summary: str,
    handler: Handler,
    *,
    tag: str,
    answers: Mapping[int, Schema | None],
    access: AcceptedSchemes = USER,
    parameters: Sequence[Parameter] = (),
    examples: Mapping[str, str] | None = None,
    body: Schema | None = None,
    bodies: Mapping[str, Schema] | None = None,
    body_required: bool = True,
    own_body: bool = False,
    max_body: int = DEFAULT_MAX_BODY,
    answered_as: str = JSON_TYPE,
    also: Mapping[str, Schema] | None = None,
    refusals: Sequence[int] = (),
    changes: bool = False,
    deprecated: bool = False,
) -> DeviceCloudOperation:
    """Return an operation; `call` is "METHOD /path", an answer None has no body.

    `body` is the schema of a JSON body, `bodies` those by media type. `examples` are values of
    path parameters that exist from the start. `also` are further media types of an answer with a
    body, with their schemas. `changes` says of a POST that it changes an existing resource.
    """
    method, _, path = call.partition(" ")
    seeded = {**_SEEDED, **(examples or {})}
    own = {one.name for one in parameters}
    variables = re.findall(r"{(\w+)}", path)
    implied = [_in_path(one, method, seeded) for one in variables if one not in own]
    takes_if_match = changes or method in {"PUT", "PATCH", "DELETE"}
    operation = Operation(
        method=method,
        path=path,
        name=name,
        summary=summary,
        tag=tag,
        description=f"{access.description} {_IF_MATCH if takes_if_match else ''}".strip(),
        security=access.components,
        parameters=(*parameters, *implied),
        bodies=bodies or ({JSON_TYPE: body} if body is not None else {}),
        answers={
            status: {} if schema is None else {answered_as: schema, **(also or {})}
            for status, schema in answers.items()
        },
        refusals=(*_REFUSALS, *refusals),
        links=_links(name),
        deprecated=deprecated,
        body_required=body_required,
    )
    return DeviceCloudOperation(
        operation=operation, handler=handler, access=access, max_body=max_body, own_body=own_body
    )


def _in_path(name: str, method: str, seeded: dict[str, str]) -> Parameter:
    # A seeded value is no example of what to delete.
    if name in seeded and method != "DELETE":
        return in_path(name, {**ID, "examples": [seeded[name]]})
    return in_path(name, ID)


def _links(name: str) -> tuple[Link, ...]:
    """Return the links from the answers of an operation."""
    return tuple(
        Link(status=status, to=target, parameters=parameters)
        for source, status, parameters, targets in _LINKS
        if source == name
        for target in targets
    )
