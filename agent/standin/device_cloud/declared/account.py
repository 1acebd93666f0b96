"""Account and status: declared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent.standin.core.operation import Link, Parameter
from agent.standin.device_cloud.declared.shapes import OBJECT, WHOLE, one

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.standin.core.operation import Operation


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

# From an operation, by the status of its answer, to others, with what they get from it.
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


def linked(operations: Iterable[Operation]) -> Iterator[Operation]:
    """Yield the operations, each with what follows from its answers."""
    for operation in operations:
        found = tuple(
            Link(status=status, to=target, parameters=parameters)
            for name, status, parameters, targets in _LINKS
            if name == operation.name
            for target in targets
        )
        yield replace(operation, links=found)


def account() -> Iterator[Operation]:
    """Yield the operations of account and status."""
    tag = "Account"
    yield one(
        "GET /v1/openapi.json",
        "Schema",
        "This document.",
        tag=tag,
        security=(),
        answers={200: OBJECT},
    )
    yield one(
        "GET /v1/status",
        "FetchStatus",
        "Whether the service is up.",
        tag=tag,
        security=(),
        answers={200: OBJECT},
    )
    yield one(
        "GET /v1/account",
        "FetchAccountInfo",
        "The team, its plan, the user's role.",
        tag=tag,
        answers={200: WHOLE},
    )
    yield one(
        "GET /v1/account/service-token",
        "FetchServiceToken",
        "A service token; organization auth tokens replace it.",
        tag=tag,
        deprecated=True,
        answers={200: OBJECT},
    )
    yield one(
        "POST /v1/account/service-key-and-token", "CreateServiceKeyAndToken",
        "A new service key in place of the old one.", tag=tag, deprecated=True, changes=True,
        parameters=(
            Parameter(
                name="service",
                schema={"type": "string", "enum": ["location", "fota", "device"]},
            ),
        ),
        answers={200: OBJECT},
    )  # fmt: skip
