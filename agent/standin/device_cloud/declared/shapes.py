"""What the declarations of the device cloud share: schemes, shapes, links, a short form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.standin.core.operation import Link, Operation, Parameter
from agent.standin.core.schema import Schema
from agent.standin.device_cloud.paging import TOKEN
from agent.standin.device_cloud.seed import GENERIC
from agent.standin.state import ORGANIZATION, PROJECT

SIMPLE_TOKEN = "Simple Token"
JSON_WEB_TOKEN = "JSON Web Token"
EVALUATION_TOKEN = "Evaluation Token"
ORGANIZATION_TOKEN = "Organization Auth Token"
KEY = (SIMPLE_TOKEN,)
BOTH = (SIMPLE_TOKEN, JSON_WEB_TOKEN)
JSON = "application/json"
BYTES = "application/octet-stream"
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"enum": [True, False, 0, 1]}
OBJECT: Schema = {"type": "object"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
WHOLE: Schema = {
    "type": "object",
    "required": ["$meta"],
    "properties": {
        "$meta": {
            "type": "object",
            "required": ["version", "createdAt", "updatedAt"],
            "properties": {
                "version": TEXT,
                "createdAt": MOMENT,
                "updatedAt": MOMENT,
            },
        }
    },
}
LIST: Schema = {
    "type": "object",
    "required": ["items", "total"],
    "properties": {
        "items": {"type": "array"},
        "total": {"type": "integer"},
        "pageNextToken": TEXT,
    },
}
PAGES = (
    Parameter(name="pageLimit", schema={"type": "integer", "minimum": 1, "maximum": 100}),
    Parameter(name="pageNextToken", schema={"type": "string", "pattern": f"^{TOKEN}$"}),
    Parameter(name="pageSort", schema={"type": "string", "enum": ["asc", "desc"]}),
)
_IF_MATCH = "Takes an optional `If-Match`; another version than the latest is refused with 412."
_SEEDED = {"organization": ORGANIZATION, "project": PROJECT, "device_id": GENERIC}
_REFUSALS = (400, 401, 403, 404, 412, 413, 415, 422)
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
    call: str, name: str, summary: str, *, answers: dict[int, Schema | None], **more: Any
) -> Operation:
    """Return an operation; `call` is "METHOD /path", an answer None has no body.

    `seeded` are examples of path parameters, values that exist from the start. `also` are further
    media types of an answer with a body, with their schemas.
    """
    method, _, path = call.partition(" ")
    seeded = {**_SEEDED, **more.pop("seeded", {})}
    own = {p.name for p in more.get("parameters", ())}
    parameters = [*more.pop("parameters", ())]
    for part in path.split("/"):
        if part.startswith("{") and part[1:-1] not in own:
            parameters += [_in_path(part[1:-1], method, seeded)]
    changes = method in {"PUT", "PATCH", "DELETE"} or more.pop("changes", False)
    body = more.pop("body", None)
    also = more.get("also", {})
    bodies = more.pop("bodies", {JSON: body} if body is not None else {})
    return Operation(
        method=method,
        path=path,
        name=name,
        summary=summary,
        tag=more.pop("tag"),
        description=_IF_MATCH if changes else "",
        security=more.pop("security", KEY),
        parameters=tuple(parameters),
        bodies=bodies,
        answers={
            status: {} if schema is None else {more.get("kind", JSON): schema, **also}
            for status, schema in answers.items()
        },
        refusals=(*_REFUSALS, *more.pop("refusals", ())),
        links=_links(name),
        deprecated=more.get("deprecated", False),
        body_required=more.get("body_required", True),
    )


def _in_path(name: str, method: str, seeded: dict[str, str]) -> Parameter:
    schema: Schema = {"type": "string", "pattern": "^[^\\x00-\\x1f\\x7f]{1,128}$"}
    # A seeded value is no example of what to delete.
    if name in seeded and method != "DELETE":
        schema["examples"] = [seeded[name]]
    return Parameter(name=name, schema=schema, where="path", required=True)


def _links(name: str) -> tuple[Link, ...]:
    """Return the links from the answers of an operation."""
    return tuple(
        Link(status=status, to=target, parameters=parameters)
        for source, status, parameters, targets in _LINKS
        if source == name
        for target in targets
    )
