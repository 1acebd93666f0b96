"""Onboarding: devices with their keys, one by one or by CSV, and their ownership (D9.3, D10.8)."""

import contextlib
import datetime as dt
import re
from collections.abc import Iterator
from secrets import compare_digest

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.responses import Response

from agent.standin.certificates import certificate_builder, common_name, new_key, signed_pem
from agent.standin.clock import iso
from agent.standin.core.responses import JSON
from agent.standin.core.schema import MOMENT, TEXT, Schema, object_schema
from agent.standin.device_cloud import refusals
from agent.standin.device_cloud.access import PROJECT
from agent.standin.device_cloud.bundles import FIRMWARE_TYPES
from agent.standin.device_cloud.devices import bulk, credentials
from agent.standin.device_cloud.devices.registry import SUB_TYPE, TAGS, registry
from agent.standin.device_cloud.operations import Context, Handler, declare
from agent.standin.device_cloud.resource import Resource, accepted, answer_one, with_meta
from agent.standin.device_cloud.seed import ip_device
from agent.standin.device_cloud.shapes import resource
from agent.standin.device_cloud.tables import OWNERSHIP, Ownership
from agent.standin.jwt import private_pem

_PEM: Schema = {
    "type": "string",
    "format": "pem",
    "description": "A certificate or a public key of the curve P-256.",
}
_ONBOARDING_TOKEN: Schema = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$",
    "description": "The answer to `AT%REGJWT`: a JWT whose `sub` is the id of the device and whose"
    " `id` is that of the team.",
}
NEW_DEVICE: Schema = {
    "type": "object",
    "anyOf": [{"required": ["certificate"]}, {"required": ["onboardingToken"]}],
    "properties": {
        "certificate": _PEM,
        "onboardingToken": _ONBOARDING_TOKEN,
        "subType": SUB_TYPE,
        "tags": TAGS,
        "supportedFirmwareTypes": {
            "type": "array",
            "items": {"type": "string", "enum": sorted(FIRMWARE_TYPES)},
        },
    },
}
PROJECT_DEVICES = credentials.CsvTable(
    'device id,"PEM" or token',
    2,
    2,
    header="deviceId,(?:certificate|attestationToken|onboardingToken)",
)
_CREATE = "/v1/organizations/{organization}/projects/{project}/long-range/devices/bulk"
_LIFE = dt.timedelta(days=365 * 20)
_LONGEST_CODE = 128


def _from_csv(endpoint: str, table: credentials.CsvTable) -> Handler:
    async def accept(context: Context) -> Response:
        text = credentials.text_of(context.body)
        table.rows(text)
        key = bulk.start(context.cloud, context.team, endpoint, text)
        return JSON({"bulkOpsRequestId": key}, 202)

    return accept


async def _onboard_one(context: Context) -> Response:
    cloud, team, device_id = context.cloud, context.team, context.path["device_id"]
    known = registry(cloud).find(device_id)
    if known is not None and known.team == team:
        context.check_if_match(known.version)
    body = context.body
    device = bulk.NewDevice(
        device_id,
        pem=body.get("certificate"),
        token=body.get("onboardingToken"),
        sub_type=body.get("subType", ""),
        tags=body.get("tags", []),
        firmware=body.get("supportedFirmwareTypes", []),
    )
    with _bad_keys_refused():
        bulk.onboard(cloud, team, device)
    return accepted()


@contextlib.contextmanager
def _bad_keys_refused() -> Iterator[None]:
    try:
        yield
    except credentials.BadKey as error:
        raise refusals.DeviceCloudRefused(400, str(error), code=40001) from error


async def _create_in_project(context: Context) -> Response:
    head, *rest = re.split(credentials.LINE_END, credentials.text_of(context.body), maxsplit=1)
    columns, rows = head.split(","), "".join(rest)
    if not re.fullmatch(PROJECT_DEVICES.header, head):
        raise refusals.invalid(
            "the first row names the columns: deviceId and one of certificate, attestationToken "
            "and onboardingToken"
        )
    PROJECT_DEVICES.rows(rows)
    endpoint = bulk.CREATED_BY[columns[1]]
    place = _CREATE.format(**context.path)
    key = bulk.start(context.cloud, context.team, endpoint, rows, project=place)
    return Response(status_code=202, headers={"Location": f"{place}/{key}"})


async def _fetch_in_project(context: Context) -> Response:
    path = dict(context.path)
    key = path.pop("request_id")
    row = context.cloud.table(bulk.REQUESTS).get(key)
    if row is None or row.project != _CREATE.format(**path):
        raise refusals.not_found("no such bulk request")
    return answer_one(_project_request(key, row))


def _project_request(key: str, row: bulk.BulkRequest) -> Resource:
    has_begun = row.status is not bulk.BulkStatus.PENDING
    ids = [fields[0] for fields in credentials.parse_rows(row.text)]
    # Where some of the rows are done, it has succeeded, and names the others.
    partly = row.has_ended and len(row.errors) < len(ids)
    status = bulk.BulkStatus.SUCCEEDED if partly else row.status
    resource: dict[str, object] = {
        "bulkOpsRequestId": key,
        # A released tool takes any other status for the end.
        "status": status if has_begun else bulk.BulkStatus.IN_PROGRESS,
        "requestedAt": iso(row.requested_at),
    }
    if row.errors:
        parsed = (error.removeprefix("[").partition("]: ") for error in row.errors)
        resource["errorSummary"] = {
            "errors": [
                {"row": int(number), "deviceId": ids[int(number)], "error": text}
                for number, _, text in parsed
            ]
        }
    return with_meta(resource, iso(row.requested_at), iso(row.due) if row.has_ended else "")


async def _create_certificate(context: Context) -> Response:
    cloud, device_id = context.cloud, context.path["device_id"]
    code = context.raw.decode("utf-8", "replace").strip()
    if not 1 <= len(code) <= _LONGEST_CODE:
        raise refusals.bad_request("the body is the ownership code")
    made = certificate_for(device_id, cloud.clock.now())
    with _bad_keys_refused():
        credentials.register(cloud, context.team, device_id, made["clientCert"])
    cloud.table(OWNERSHIP).put(device_id.casefold(), Ownership(context.team, code))
    return JSON({"clientId": device_id, **made}, 201)


def certificate_for(device_id: str, now: dt.datetime) -> dict[str, str]:
    """Return the CA, the bundle of device and intermediate certificate, and the private key."""
    root, intermediate, device = (new_key() for _ in range(3))
    unit = x509.NameAttribute(x509.NameOID.ORGANIZATIONAL_UNIT_NAME, credentials.JITP_MARK)
    top = common_name("Stand-in root, test only")
    middle = common_name("Stand-in, test only", unit)

    def pem(
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        issuer: x509.Name,
        by: ec.EllipticCurvePrivateKey,
    ) -> str:
        builder = certificate_builder(subject, key.public_key(), issuer, now, now + _LIFE)
        return signed_pem(builder, by).decode()

    bundle = [
        pem(common_name(device_id), device, middle, intermediate),
        pem(middle, intermediate, top, root),
    ]
    return {
        "caCert": pem(top, root, top, root),
        "clientCert": "".join(bundle),
        "privateKey": private_pem(device),
    }


async def _associate(context: Context) -> Response:
    cloud, team, device_id = context.cloud, context.team, context.path["device_id"]
    code = context.raw.decode("utf-8", "replace").strip()
    known = registry(cloud).find(device_id)
    if known is not None:
        context.check_if_match(known.version)
        if known.team != team:
            raise refusals.DeviceCloudRefused(401, "owned by another account", code=40101)
        return accepted()
    owned = cloud.table(OWNERSHIP).get(device_id.casefold())
    if owned is not None and owned.team != team:
        raise refusals.DeviceCloudRefused(401, "owned by another account", code=40101)
    # The code of a device that got its certificate elsewhere is not known here.
    if not code or (owned is not None and not compare_digest(owned.code.encode(), code.encode())):
        raise refusals.DeviceCloudRefused(401, "the ownership code is wrong", code=40102)
    registry(cloud).create(team, ip_device(device_id, "Generic"))
    return accepted()


async def _dissociate(context: Context) -> Response:
    devices, device_id = registry(context.cloud), context.path["device_id"]
    known = devices.find(device_id)
    if known is None:
        raise refusals.DeviceCloudRefused(404, "device not found", code=40413)
    if known.team != context.team:
        raise refusals.no_device(device_id)
    context.check_if_match(known.version)
    devices.delete(known)
    return accepted()


_OPERATION_ID = object_schema(bulkOpsRequestId={"type": "string", "minLength": 26, "maxLength": 26})
_CERTIFICATE = object_schema(clientId=TEXT, caCert=TEXT, clientCert=TEXT, privateKey=TEXT)
_ROW = object_schema(row={"type": "integer"}, deviceId=TEXT, error=TEXT)
_IN_PROJECT = resource(
    "errorSummary",
    bulkOpsRequestId=TEXT,
    status=TEXT,
    requestedAt=MOMENT,
    errorSummary=object_schema(errors={"type": "array", "items": _ROW}),
)
_ASSOCIATION = "/v1/association/{device_id}"
OPERATIONS = (
    declare(
        "POST /v1/devices/public-keys", "RegisterPublicKeys", "Upload public keys.",
        _from_csv("REGISTER_PUBLIC_KEYS", credentials.KEYS),
        tag="Onboarding", bodies=credentials.KEYS.bodies, answers={202: _OPERATION_ID},
    ),
    declare(
        "POST /v1/devices/certificates", "RegisterCertificates", "Upload certificates.",
        _from_csv("REGISTER_CERTIFICATES", credentials.KEYS),
        tag="Onboarding", bodies=credentials.KEYS.bodies, answers={202: _OPERATION_ID},
    ),
    declare(
        "POST /v1/devices", "OnboardDevices", "Add devices with their keys.",
        _from_csv("ONBOARD_DEVICES", credentials.NEW_DEVICES),
        tag="Onboarding", bodies=credentials.NEW_DEVICES.bodies, answers={202: _OPERATION_ID},
    ),
    declare(
        "POST /v1/devices/{device_id}", "OnboardDevice", "Add a device.", _onboard_one,
        tag="Onboarding", changes=True, body=NEW_DEVICE, answers={202: None},
    ),
    declare(
        "POST /v1/devices/{device_id}/certificates", "CreateDeviceCertificate",
        "A certificate for just-in-time provisioning, for the ownership code.",
        _create_certificate, tag="Onboarding", deprecated=True, own_body=True,
        bodies={"text/plain": {"type": "string", "pattern": "^[!-~]{1,128}$"}},
        answers={201: _CERTIFICATE},
    ),
    declare(
        f"PUT {_ASSOCIATION}", "AssociateDevice", "Claim a device with its ownership code.",
        _associate, tag="Onboarding", bodies={"text/plain": TEXT}, body_required=False,
        own_body=True, answers={202: None},
    ),
    declare(
        f"DELETE {_ASSOCIATION}", "DissociateDevice", "Let go of a device.", _dissociate,
        tag="Onboarding", answers={202: None},
    ),
    declare(
        f"POST {_CREATE}", "CreateProjectDevices",
        "Make devices of their certificates or tokens; `Location` tells how far it is.",
        _create_in_project, tag="Onboarding", access=PROJECT, bodies=PROJECT_DEVICES.bodies,
        answers={202: None},
    ),
    declare(
        f"GET {_CREATE}/{{request_id}}", "FetchProjectDevices",
        "How far the making of devices is.", _fetch_in_project,
        tag="Onboarding", access=PROJECT, answers={200: _IN_PROJECT},
    ),
)  # fmt: skip
