"""Onboarding and provisioning: declared."""

from __future__ import annotations

from collections.abc import Iterator

from agent.standin.core.operation import Operation, Parameter
from agent.standin.core.schema import Schema
from agent.standin.device_cloud.declared import shapes
from agent.standin.device_cloud.devices.claiming import CLAIM, CLAIMS, COMMAND, rule_schema
from agent.standin.device_cloud.devices.credentials import KEYS, NEW_DEVICES
from agent.standin.device_cloud.devices.onboarding import NEW_DEVICE, PROJECT_DEVICES

CLAIMED: Schema = {
    "type": "object",
    "required": ["claimedIds", "failed"],
    "properties": {
        "claimedIds": {"type": "array", "items": shapes.TEXT},
        "failed": {"type": "array", "items": shapes.OBJECT},
    },
}
OPERATION_ID: Schema = {
    "type": "object",
    "required": ["bulkOpsRequestId"],
    "properties": {"bulkOpsRequestId": {"type": "string", "minLength": 26, "maxLength": 26}},
}
CERTIFICATE: Schema = {
    "type": "object",
    "required": ["clientId", "caCert", "clientCert", "privateKey"],
    "properties": dict.fromkeys(("clientId", "caCert", "clientCert", "privateKey"), shapes.TEXT),
}


def onboarding() -> Iterator[Operation]:
    """Yield the operations of onboarding."""
    tag = "Onboarding"
    for call, name, summary, table in (
        ("POST /v1/devices/public-keys", "RegisterPublicKeys", "Upload public keys.", KEYS),
        ("POST /v1/devices/certificates", "RegisterCertificates", "Upload certificates.", KEYS),
        ("POST /v1/devices", "OnboardDevices", "Add devices with their keys.", NEW_DEVICES),
    ):
        csv = dict.fromkeys(("text/csv", "text/plain", shapes.BYTES), table.schema)
        yield shapes.declare(call, name, summary, tag=tag, bodies=csv, answers={202: OPERATION_ID})
    yield shapes.declare(
        "POST /v1/devices/{device_id}",
        "OnboardDevice",
        "Add a device.",
        tag=tag,
        changes=True,
        body=NEW_DEVICE,
        answers={202: None},
    )
    yield shapes.declare(
        "POST /v1/devices/{device_id}/certificates", "CreateDeviceCertificate",
        "A certificate for just-in-time provisioning, for the ownership code.", tag=tag,
        deprecated=True, bodies={"text/plain": {"type": "string", "pattern": "^[!-~]{1,128}$"}},
        answers={201: CERTIFICATE},
    )  # fmt: skip
    yield from _association(tag)
    yield from _bulk_requests(tag)
    yield from _below_a_project(tag)
    yield shapes.declare(
        "GET /v1/bulk-ops-files/{request_id}/{name}", "FetchBulkOpsFile",
        "A file of a bulk request: its upload, or its errors.", tag=tag, security=(),
        answers={200: {}},
    )  # fmt: skip


def _association(tag: str) -> Iterator[Operation]:
    association = "/v1/association/{device_id}"
    yield shapes.declare(
        f"PUT {association}",
        "AssociateDevice",
        "Claim a device with its ownership code.",
        tag=tag,
        bodies={"text/plain": shapes.TEXT},
        body_required=False,
        answers={202: None},
    )
    yield shapes.declare(
        f"DELETE {association}",
        "DissociateDevice",
        "Let go of a device.",
        tag=tag,
        answers={202: None},
    )


def _bulk_requests(tag: str) -> Iterator[Operation]:
    yield shapes.declare(
        "GET /v1/bulk-ops-requests",
        "ListBulkOpsRequests",
        "Bulk requests, newest first.",
        tag=tag,
        parameters=shapes.PAGES,
        answers={200: shapes.LIST},
    )
    yield shapes.declare(
        "GET /v1/bulk-ops-requests/{request_id}",
        "FetchBulkOpsRequest",
        "How far a bulk request is.",
        tag=tag,
        answers={200: shapes.WHOLE},
    )


def _below_a_project(tag: str) -> Iterator[Operation]:
    place = "/v1/organizations/{organization}/projects/{project}/long-range/devices/bulk"
    yield shapes.declare(
        f"POST {place}", "CreateProjectDevices",
        "Make devices of their certificates; `Location` tells how far it is.", tag=tag,
        security=(shapes.ORGANIZATION_TOKEN,), bodies={"text/csv": PROJECT_DEVICES.schema},
        answers={202: None},
    )  # fmt: skip
    yield shapes.declare(
        f"GET {place}/{{request_id}}", "FetchProjectDevices",
        "How far the making of devices is.", tag=tag,
        security=(shapes.ORGANIZATION_TOKEN,), answers={200: shapes.WHOLE},
    )  # fmt: skip


def provisioning() -> Iterator[Operation]:
    """Yield the operations of provisioning."""
    tag = "Provisioning"
    yield shapes.declare(
        "POST /v1/claimed-devices",
        "ClaimDeviceOwnership",
        "Claim by attestation token.",
        tag=tag,
        parameters=(Parameter(name="dryrun", schema=shapes.FLAG),),
        bodies={shapes.JSON: CLAIM, "text/csv": CLAIMS.schema},
        refusals=(409,),
        answers={200: CLAIMED, 201: {"anyOf": [shapes.WHOLE, CLAIMED]}, 202: None},
    )
    yield shapes.declare(
        "GET /v1/claimed-devices",
        "ListClaimedDevices",
        "Claimed devices.",
        tag=tag,
        parameters=shapes.PAGES,
        answers={200: shapes.LIST},
    )
    base = "/v1/claimed-devices/{device}"
    yield shapes.declare(
        f"GET {base}", "FetchClaimedDevice", "One.", tag=tag, answers={200: shapes.WHOLE}
    )
    yield shapes.declare(f"DELETE {base}", "UnclaimDevice", "Let go.", tag=tag, answers={204: None})
    yield from _commands(tag, base + "/provisioning")
    yield from _rules(tag)


def _commands(tag: str, many: str) -> Iterator[Operation]:
    yield shapes.declare(
        f"POST {many}",
        "CreateDeviceProvisioningCommand",
        "A command for a device.",
        tag=tag,
        body=COMMAND,
        answers={201: shapes.WHOLE},
    )
    yield shapes.declare(
        f"GET {many}",
        "ListDeviceProvisioningCommands",
        "A device's commands.",
        tag=tag,
        parameters=shapes.PAGES,
        answers={200: shapes.LIST},
    )
    yield shapes.declare(
        f"GET {many}/{{command}}",
        "FetchDeviceProvisioningCommand",
        "A command.",
        tag=tag,
        answers={200: shapes.WHOLE},
    )


def _rules(tag: str) -> Iterator[Operation]:
    for path, key in (("/v1/provisioning-rules", "name"), ("/v1/provisioning/tags", "tag")):
        word = key.capitalize()
        yield shapes.declare(
            f"GET {path}",
            f"ListProvisioningBy{word}",
            "What was stored.",
            tag=tag,
            parameters=shapes.PAGES,
            answers={200: shapes.LIST},
        )
        yield shapes.declare(
            f"POST {path}", f"CreateProvisioningBy{word}", "Store one.", tag=tag,
            body=rule_schema(key),
            answers={201: shapes.WHOLE},
        )  # fmt: skip
