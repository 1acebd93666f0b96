"""The provisioning host: claimed devices, provisioning commands, rules and tags.

A kit with a provisioning client fetches its commands (`kit_commands`). Until one has, the stand-in
plays the claimed device, because released tools wait for the answers: a command that it answered
carries `answeredBy`, and changed nothing on any kit. With `Settings.play_claimed_devices` off,
commands stay pending.
"""

import base64
import uuid

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.responses import Response

from agent.json_value import JSONValue
from agent.standin.clock import iso
from agent.standin.core.operation import in_query
from agent.standin.core.responses import JSON
from agent.standin.core.schema import MOMENT, OBJECT, TEXT, Schema, body_schema, object_schema
from agent.standin.core.serving import JSON_TYPE
from agent.standin.device_cloud.devices.attestation import TOKEN_PATTERN, attested_device
from agent.standin.device_cloud.devices.credentials import CsvTable
from agent.standin.device_cloud.devices.kit_commands import FOR_KITS
from agent.standin.device_cloud.operations import Context, DeviceCloudOperation, declare
from agent.standin.device_cloud.paging import PAGES
from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request, not_found
from agent.standin.device_cloud.resource import Resource, answer_one, require, with_meta
from agent.standin.device_cloud.shapes import FLAG, TEXTS, list_of, resource
from agent.standin.device_cloud.tables import CLAIMED, COMMANDS, Claimed, Command, Rule
from agent.standin.state import Cloud
from agent.standin.store import TableOf

CLAIMS = CsvTable("claim token[,tags joined by commas]", 1, 2, first=r"[A-Za-z0-9_.=-]{30,}")
# Unlike the tag of a device at the other host, one may hold "=": location=Trondheim.
_TAG: Schema = {"type": "string", "maxLength": 799, "pattern": "^[a-zA-Z0-9_.@:#=-]+$"}
_TAGS: Schema = {"type": "array", "items": _TAG}
CLAIM = body_schema(
    "claimToken",
    claimToken={
        "type": "string",
        "maxLength": 4096,
        "pattern": TOKEN_PATTERN,
        "description": "What AT%ATTESTTOKEN answers.",
    },
    tags=_TAGS,
)
# Attributes of a distinguished name as RFC 4514 writes them, those that need no escape.
_ASCII = "[A-Za-z0-9]([A-Za-z0-9 ._:@/-]{0,62}[A-Za-z0-9])?"
_ATTRIBUTE = f"(C=[A-Za-z]{{2}}|(CN|O|OU|L|ST|STREET|UID)={_ASCII})"
_SEC_TAG: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}


_REQUESTS = {
    "certificateSigningRequest": body_schema(
        "secTag",
        secTag=_SEC_TAG,
        attributes={
            "type": "string",
            "maxLength": 512,
            "pattern": f"^({_ATTRIBUTE}(,{_ATTRIBUTE})*)?$",
        },
        keyUsage={"type": "string", "pattern": "^[01]{9}$"},
    ),
    "clientCertificate": object_schema(secTag=_SEC_TAG, content=TEXT),
    "serverCertificate": object_schema(secTag=_SEC_TAG, content=TEXT),
    "clientPrivateKeyGeneration": object_schema(secTag=_SEC_TAG),
    "cloudAccessKeyGeneration": object_schema(secTag=_SEC_TAG),
    "finished": {"type": "object", "required": [], "properties": {}},
}
COMMAND = body_schema(
    "request",
    description={"type": "string", "maxLength": 1024},
    request={
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": _REQUESTS,
    },
)


async def _claim(context: Context) -> Response:
    cloud, dry = context.cloud, context.query.get("dryrun", False)
    # A released tool sends CSV with no content type at all, so the body decides.
    if not context.raw.lstrip().startswith(b"{"):
        return _claim_csv(context, dry=dry)
    body = context.json_body
    token, tags = body["claimToken"], body.get("tags", [])
    device = _claim_one(cloud, context.team, token, tags, dry=dry)
    if dry:
        return Response(status_code=202)
    return answer_one(_to_resource(device, cloud.table(CLAIMED)[device]), 201)


async def _listed(context: Context) -> Response:
    claimed = context.owned(CLAIMED).items()
    return context.page().answer(claimed, lambda item: _to_resource(*item))


async def _fetch(context: Context) -> Response:
    return answer_one(_to_resource(context.path["device"], _find(context)))


async def _unclaim(context: Context) -> Response:
    device, row = context.path["device"], _find(context)
    context.check_if_match(_to_resource(device, row).version)
    for command in row.commands:
        context.cloud.table(COMMANDS).delete(command)
    context.cloud.table(CLAIMED).delete(device)
    return Response(status_code=204)


def _find(context: Context) -> Claimed:
    """Return the claimed device of the path. Raises a 404 where there is none."""
    return context.own(CLAIMED, context.path["device"], not_found("the device is not claimed"))


def _rules(path: str, key: str) -> tuple[DeviceCloudOperation, ...]:
    """Return the operations of a list of objects, each identified by one field."""
    table, word = TableOf(path.rpartition("/")[2], Rule), key.capitalize()

    async def listed(context: Context) -> Response:
        return context.page().answer(row.shown for row in context.owned(table).values())

    async def create(context: Context) -> Response:
        rules, body = context.cloud.table(table), context.body
        row = f"{context.team}/{body[key]}"
        known = rules.get(row)
        if known is not None:
            context.check_if_match(known.version)
        tags = list(dict.fromkeys(body.get("tags", [])))
        content = {"id": str(uuid.uuid4()), **body, "tags": tags}
        resource = with_meta(content, context.cloud.clock.iso())
        rules.put(row, Rule(context.team, resource))
        return answer_one(resource, 201)

    name: Schema = {"type": "string", "minLength": 1}
    rule = body_schema(key, **{key: name, "tags": _TAGS})
    shown = resource(**{"id": TEXT, key: name, "tags": _TAGS})
    return (
        declare(
            f"GET {path}", f"ListProvisioningBy{word}", "What was stored.", listed,
            tag="Provisioning", parameters=PAGES, answers={200: list_of(shown)},
        ),
        declare(
            f"POST {path}", f"CreateProvisioningBy{word}", "Store one.", create,
            tag="Provisioning", body=rule, answers={201: shown},
        ),
    )  # fmt: skip


def _claim_csv(context: Context, *, dry: bool) -> Response:
    """Claim each row of a CSV: a token, and tags joined by commas; the answer lists failures."""
    try:
        text = context.raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise bad_request("the body is neither JSON nor CSV") from error
    rows = CLAIMS.rows(text)
    claimed: list[str] = []
    failed: list[dict[str, object]] = []
    for number, (token, *rest) in enumerate(rows):
        tags = [tag for tag in ",".join(rest).split(",") if tag]
        try:
            require({"claimToken": token, "tags": tags}, CLAIM)
            claimed.append(_claim_one(context.cloud, context.team, token, tags, dry=dry))
        except DeviceCloudRefused as error:
            failed.append({"row": number, "message": error.message})
    return JSON({"claimedIds": claimed, "failed": failed}, 201 if claimed and not dry else 200)


def _claim_one(cloud: Cloud, team: str, token: str, tags: list[str], *, dry: bool) -> str:
    """Claim a device; return its UUID. Refuses one that is claimed already."""
    device = attested_device(token)
    assert device is not None, "the form of the token is checked with the request"
    if device in cloud.table(CLAIMED):
        raise DeviceCloudRefused(409, "the device is claimed already")
    if not dry:
        now = cloud.clock.time()
        claimed = Claimed(team=team, tags=list(dict.fromkeys(tags)), claimed_at=now)
        cloud.table(CLAIMED).put(device, claimed)
    return device


def _to_resource(device: str, row: Claimed) -> Resource:
    resource = {"id": device, "tenantId": row.team, "tags": row.tags, "commands": row.commands}
    return with_meta(resource, iso(row.claimed_at))


async def _create_command(context: Context) -> Response:
    cloud, device = context.cloud, context.path["device"]
    claimed = _find(context)
    body = context.body
    command = str(uuid.uuid4())
    now = cloud.clock.time()
    row = Command(
        device=device,
        description=body.get("description", ""),
        request=body["request"],
        created_at=now,
        due=now + cloud.settings.bulk_s,
    )
    cloud.table(COMMANDS).put(command, row)
    claimed.commands.append(command)
    cloud.table(CLAIMED).put(device, claimed)
    return answer_one(_command_resource(cloud, command), 201)


async def _list_commands(context: Context) -> Response:
    commands = _find(context).commands
    return context.page().answer(commands, lambda one: _command_resource(context.cloud, one))


async def _fetch_command(context: Context) -> Response:
    command = context.path["command"]
    if command not in _find(context).commands:
        raise not_found("no such command")
    return answer_one(_command_resource(context.cloud, command))


def _command_resource(cloud: Cloud, command: str) -> Resource:
    row, now = cloud.table(COMMANDS)[command], cloud.clock.time()
    plays = cloud.settings.play_claimed_devices and not _is_for_kit(cloud, row)
    if plays and now >= row.due and row.response is None:
        row.response = _answer_of_kit(row.request)
        cloud.table(COMMANDS).put(command, row)
    done = row.response is not None
    half = (row.created_at + row.due) / 2
    waiting = "IN_PROGRESS" if plays and now >= half else "PENDING"
    resource: dict[str, object] = {
        "id": command,
        "deviceId": row.device,
        "description": row.description,
        "request": row.request,
        "status": ("FAILED" if row.failed else "SUCCEEDED") if done else waiting,
        "createdAt": iso(row.created_at),
    }
    if done:
        resource["response"] = row.response
        if not row.by_kit:
            resource["answeredBy"] = "stand-in"
    return with_meta(resource, iso(row.created_at), iso(row.due) if done else "")


def _is_for_kit(cloud: Cloud, row: Command) -> bool:
    claimed = cloud.table(CLAIMED).get(row.device)
    return claimed is not None and claimed.has_kit and not FOR_KITS.isdisjoint(row.request)


def _answer_of_kit(command: dict[str, dict[str, JSONValue]]) -> dict[str, dict[str, JSONValue]]:
    """Return what a kit would answer to a command; no kit has carried it out."""
    ((kind, content),) = command.items()
    if kind != "certificateSigningRequest":
        return {kind: {}}
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name.from_rfc4514_string(str(content.get("attributes", "")))
    builder = x509.CertificateSigningRequestBuilder(name)
    signed = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    return {kind: {"csr": base64.urlsafe_b64encode(signed).rstrip(b"=").decode()}}


_FAILED: Schema = {"type": "array", "items": object_schema(row={"type": "integer"}, message=TEXT)}
_CLAIMED = object_schema(claimedIds=TEXTS, failed=_FAILED)
_SHOWN = resource(id=TEXT, tenantId=TEXT, tags=TEXTS, commands=TEXTS)
_SHOWN_COMMAND = resource(
    "response",
    "answeredBy",
    id=TEXT,
    deviceId=TEXT,
    description=TEXT,
    request=OBJECT,
    status=TEXT,
    createdAt=MOMENT,
    response=OBJECT,
    answeredBy=TEXT,
)
_ONE = "/v1/claimed-devices/{device}"
_COMMANDS = _ONE + "/provisioning"
OPERATIONS = (
    declare(
        "POST /v1/claimed-devices", "ClaimDeviceOwnership", "Claim by attestation token.", _claim,
        tag="Provisioning", parameters=in_query(dryrun=FLAG),
        bodies={JSON_TYPE: CLAIM, "text/csv": CLAIMS.schema}, own_body=True, refusals=(409,),
        answers={200: _CLAIMED, 201: {"anyOf": [_SHOWN, _CLAIMED]}, 202: None},
    ),
    declare(
        "GET /v1/claimed-devices", "ListClaimedDevices", "Claimed devices.", _listed,
        tag="Provisioning", parameters=PAGES, answers={200: list_of(_SHOWN)},
    ),
    declare(
        f"GET {_ONE}", "FetchClaimedDevice", "One.", _fetch,
        tag="Provisioning", answers={200: _SHOWN},
    ),
    declare(
        f"DELETE {_ONE}", "UnclaimDevice", "Let go.", _unclaim,
        tag="Provisioning", answers={204: None},
    ),
    declare(
        f"POST {_COMMANDS}", "CreateDeviceProvisioningCommand", "A command for a device.",
        _create_command, tag="Provisioning", body=COMMAND,
        answers={201: _SHOWN_COMMAND},
    ),
    declare(
        f"GET {_COMMANDS}", "ListDeviceProvisioningCommands", "A device's commands.",
        _list_commands, tag="Provisioning", parameters=PAGES,
        answers={200: list_of(_SHOWN_COMMAND)},
    ),
    declare(
        f"GET {_COMMANDS}/{{command}}", "FetchDeviceProvisioningCommand", "A command.",
        _fetch_command, tag="Provisioning", answers={200: _SHOWN_COMMAND},
    ),
    *_rules("/v1/provisioning-rules", "name"),
    *_rules("/v1/provisioning/tags", "tag"),
)  # fmt: skip
