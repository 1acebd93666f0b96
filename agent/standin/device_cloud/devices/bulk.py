"""Bulk requests: accepted at once, processed a little later."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from msgspec import UNSET, Struct, UnsetType, field
from starlette.responses import Response

from agent.standin.clock import iso
from agent.standin.core.responses import JSON
from agent.standin.core.schema import MOMENT, TEXT, check, first_error
from agent.standin.device_cloud.access import OPEN
from agent.standin.device_cloud.bundles import FIRMWARE_TYPES
from agent.standin.device_cloud.devices import credentials
from agent.standin.device_cloud.devices.attestation import attested_device
from agent.standin.device_cloud.devices.registry import SUB_TYPE, TAGS, registry
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.device_cloud.paging import PAGES
from agent.standin.device_cloud.refusals import not_found
from agent.standin.device_cloud.resource import Resource, answer_one, with_meta
from agent.standin.device_cloud.seed import ip_device
from agent.standin.device_cloud.shapes import ID, list_of, resource
from agent.standin.state import Cloud
from agent.standin.store import TableOf

TEXT_ONLY_TOOLS = ("nrfcloud-utils/", "python-requests/")
"""The user agents of nrfcloud-utils, from 3.3 on and before, which writes each value of an ended
request as text and fails on an object, so it gets no `$meta`."""
CREATE_DEVICES = "CREATE_DEVICES"
CREATE_BY_TOKEN = "CREATE_DEVICES_BY_TOKEN"
CREATE_BY_ATTESTATION = "CREATE_DEVICES_BY_ATTESTATION"
CREATED_BY = {
    "certificate": CREATE_DEVICES,
    "attestationToken": CREATE_BY_ATTESTATION,
    "onboardingToken": CREATE_BY_TOKEN,
}
"""The requests of a project, by their second column."""
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class BulkStatus(StrEnum):
    """The status of a bulk request."""

    PENDING = "PENDING"
    IN_PROGRESS = "IN_PROGRESS"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class BulkEvent(Enum):
    """What happens to a bulk request."""

    BEGIN = auto()
    SUCCEED = auto()
    FAIL = auto()


TRANSITIONS: dict[tuple[BulkStatus, BulkEvent], BulkStatus] = {
    (BulkStatus.PENDING, BulkEvent.BEGIN): BulkStatus.IN_PROGRESS,
    (BulkStatus.IN_PROGRESS, BulkEvent.SUCCEED): BulkStatus.SUCCEEDED,
    (BulkStatus.IN_PROGRESS, BulkEvent.FAIL): BulkStatus.FAILED,
}
"""A bulk request at the stand-in. It begins when half of its time is over, and its rows are
processed at the end of it: one row with an error makes it fail."""


class BulkRequest(Struct, kw_only=True):
    """A bulk request of a team: the CSV, and an error for each row that failed."""

    team: str
    endpoint: str
    text: str
    requested_at: float
    due: float
    project: str = ""
    """The path of the project that it was sent to; "" for a team's."""
    errors: list[str] = field(default_factory=list)
    status: BulkStatus = BulkStatus.PENDING
    done: bool | UnsetType = UNSET
    """Of a record of 0.1.0, which names no status."""

    def __post_init__(self) -> None:
        """Tell the status of a record of 0.1.0."""
        if self.done is True:
            self.status = BulkStatus.FAILED if self.errors else BulkStatus.SUCCEEDED
        self.done = UNSET

    @property
    def has_ended(self) -> bool:
        """Whether its rows were processed."""
        return all(before is not self.status for before, _ in TRANSITIONS)


REQUESTS = TableOf("bulk", BulkRequest)


def start(cloud: Cloud, team: str, endpoint: str, text: str, project: str = "") -> str:
    """Accept a bulk request, whose rows are processed after a delay; return its id."""
    now = cloud.clock.time()
    key = _ulid(now)
    due = now + cloud.settings.bulk_s
    request = BulkRequest(
        team=team, endpoint=endpoint, text=text, requested_at=now, due=due, project=project
    )
    cloud.table(REQUESTS).put(key, request)
    _pending(cloud).add(key)
    return key


def process_due(cloud: Cloud) -> None:
    """Begin the requests whose time it is, and process those that are due."""
    now = cloud.clock.time()
    for key in sorted(_pending(cloud)):
        row = cloud.table(REQUESTS)[key]
        if row.status is BulkStatus.PENDING and now >= (row.requested_at + row.due) / 2:
            _advance(cloud, key, row, BulkEvent.BEGIN)
        if now >= row.due:
            _pending(cloud).discard(key)
            row.errors = _process(cloud, row)
            _advance(cloud, key, row, BulkEvent.FAIL if row.errors else BulkEvent.SUCCEED)


def _advance(cloud: Cloud, key: str, row: BulkRequest, event: BulkEvent) -> None:
    row.status = TRANSITIONS[row.status, event]
    cloud.table(REQUESTS).put(key, row)


async def _fetch(context: Context) -> Response:
    key = context.path["request_id"]
    row = context.own(REQUESTS, key, not_found("no such bulk request"))
    resource = _to_resource(context.cloud, key, row)
    if context.headers.get("user-agent", "").startswith(TEXT_ONLY_TOOLS):
        del resource["$meta"]
        return JSON(resource, headers={"ETag": resource.version})
    return answer_one(resource)


async def _listed(context: Context) -> Response:
    cloud = context.cloud
    requests = context.owned(REQUESTS).items()
    page = context.page(descending=True)
    return page.answer(requests, lambda item: _to_resource(cloud, *item))


async def _file(context: Context) -> Response:
    # Like the signed links of the real service: the id is the secret, no header is needed.
    row = context.cloud.table(REQUESTS).get(context.path["request_id"])
    if row is None:
        raise not_found("no such bulk request")
    if context.path["name"] == "errors":
        return JSON({"errors": row.errors})
    if context.path["name"] == "upload":
        return Response(row.text, media_type="text/csv")
    raise not_found("no such file")


def _to_resource(cloud: Cloud, key: str, row: BulkRequest) -> Resource:
    base = f"{cloud.urls['device_cloud']}/v1/bulk-ops-files/{key}"
    requested, completed = iso(row.requested_at), iso(row.due) if row.has_ended else ""
    resource = {
        "bulkOpsRequestId": key,
        # A request of a project does the same under another path.
        "endpoint": "ONBOARD_DEVICES" if row.project else row.endpoint,
        "status": row.status,
        "requestedAt": requested,
        "uploadedDataUrl": f"{base}/upload",
    }
    if completed:
        resource["completedAt"] = completed
    if row.errors:
        resource["errorSummaryUrl"] = f"{base}/errors"
    return with_meta(resource, requested, completed)


def _process(cloud: Cloud, row: BulkRequest) -> list[str]:
    """Process every row; return an error for each that failed."""
    errors = []
    for number, fields in enumerate(credentials.parse_rows(row.text)):
        try:
            if check(fields[0], ID):
                raise credentials.BadKey(f"{fields[0][:40]!r} is no device id")
            _ROWS[row.endpoint](cloud, row.team, *fields)
        except credentials.BadKey as error:
            errors.append(f"[{number}]: {error}")
    return errors


def _create(cloud: Cloud, team: str, device_id: str, pem: str) -> None:
    if not pem.endswith("\n"):
        raise credentials.BadKey("the last line of the certificate does not end")
    onboard(cloud, team, NewDevice(device_id, pem=pem))


def _create_by_token(cloud: Cloud, team: str, device_id: str, token: str) -> None:
    onboard(cloud, team, NewDevice(device_id, token=token))


def _create_by_attestation(cloud: Cloud, team: str, device_id: str, token: str) -> None:
    if attested_device(token) != device_id.lower():
        raise credentials.BadKey("the attestation token is none of this device")
    onboard(cloud, team, NewDevice(device_id))


def _onboard(
    cloud: Cloud, team: str, device_id: str, sub_type: str, tags: str, firmware: str, pem: str
) -> None:
    described = NewDevice(
        device_id, pem=pem, sub_type=sub_type, tags=_parts(tags), firmware=_parts(firmware)
    )
    onboard(cloud, team, described)


@dataclass(frozen=True, slots=True)
class NewDevice:
    """A device as its onboarding describes it."""

    device_id: str
    pem: str | None = None
    """A certificate or a public key."""
    token: str | None = None
    """A registration token, in place of a PEM or beside one."""
    sub_type: str = ""
    tags: Sequence[str] = ()
    firmware: Sequence[str] = ()


def onboard(cloud: Cloud, team: str, device: NewDevice) -> None:
    """Add a device with its key, its registration token or both. Raises BadKey on a bad value."""
    device_id, firmware = device.device_id, list(device.firmware)
    unknown = [name for name in firmware if name not in FIRMWARE_TYPES]
    if unknown:
        raise credentials.BadKey(f"no firmware type {unknown[0][:40]!r}")
    for value, schema in ((device.sub_type, SUB_TYPE), (list(device.tags), TAGS)):
        if wrong := check(value, schema):
            raise credentials.BadKey(f"{value!r}: {first_error(wrong)}")
    if device.token is not None:
        credentials.check_registration(cloud, team, device_id, device.token)
    if device.pem is not None:
        credentials.register(cloud, team, device_id, device.pem)
    devices = registry(cloud)
    known = devices.find(device_id)
    fields = known.fields if known else ip_device(device_id, "Generic")
    fields.tags = list(dict.fromkeys(device.tags))
    fields.firmware.supports = firmware
    if device.sub_type:
        fields.sub_type = device.sub_type
    if known:
        devices.change(known)
    else:
        devices.create(team, fields)


def _parts(text: str) -> list[str]:
    return [part for part in text.split("|") if part]


_ROWS: Mapping[str, Callable[..., None]] = {
    "REGISTER_PUBLIC_KEYS": credentials.register,
    "REGISTER_CERTIFICATES": credentials.register,
    "ONBOARD_DEVICES": _onboard,
    CREATE_DEVICES: _create,
    CREATE_BY_TOKEN: _create_by_token,
    CREATE_BY_ATTESTATION: _create_by_attestation,
}
"""What is done with a row, whose columns were counted when it was sent."""


class _Pending(set[str]):
    """The ids of the requests that are not done."""


def _pending(cloud: Cloud) -> _Pending:
    """Return the ids of the requests that are not done; collected once, after a start."""
    rows = cloud.table(REQUESTS).items
    return cloud.of_tables(
        _Pending, lambda: _Pending(key for key, row in rows() if not row.has_ended)
    )


def _ulid(now_s: float) -> str:
    number = (int(now_s * 1000) << 80) | secrets.randbits(80)
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


_FIELDS = {
    "bulkOpsRequestId": TEXT,
    "endpoint": TEXT,
    "status": {"type": "string", "enum": [*BulkStatus]},
    "requestedAt": MOMENT,
    "completedAt": MOMENT,
    "uploadedDataUrl": TEXT,
    "errorSummaryUrl": TEXT,
}
_SHOWN = resource("completedAt", "errorSummaryUrl", **_FIELDS)
OPERATIONS = (
    declare(
        "GET /v1/bulk-ops-requests", "ListBulkOpsRequests", "Bulk requests, newest first.",
        _listed, tag="Onboarding", parameters=PAGES, answers={200: list_of(_SHOWN)},
    ),
    declare(
        "GET /v1/bulk-ops-requests/{request_id}", "FetchBulkOpsRequest",
        "How far a bulk request is.", _fetch, tag="Onboarding",
        answers={200: resource("$meta", "completedAt", "errorSummaryUrl", **_FIELDS)},
    ),
    declare(
        "GET /v1/bulk-ops-files/{request_id}/{name}", "FetchBulkOpsFile",
        "A file of a bulk request: its upload, or its errors.", _file,
        tag="Onboarding", access=OPEN, answers={200: {}},
    ),
)  # fmt: skip
