"""Public keys and onboarding: CSV in, a bulk request that is polled (clauses D9.3, D10.8)."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.call import Call, Request, Response, Scheme, StatusCall
from agent.cloud.conventions import device_path, path_segment
from agent.errors import BadAnswer, UsageError
from agent.json_value import JSONValue

MOST_ROWS = 1000
_PEM = re.compile(r"-----BEGIN (CERTIFICATE|PUBLIC KEY)-----.*-----END \1-----", re.DOTALL)
PENDING = frozenset({"PENDING", "IN_PROGRESS"})


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A device and the public key that its tokens are verified with."""

    device_id: str
    pem: str


@dataclass(frozen=True, slots=True)
class NewDevice:
    """A device to bring into the team, with its certificate or public key."""

    device_id: str
    pem: str
    sub_type: str = ""
    tags: tuple[str, ...] = ()
    firmware_types: tuple[str, ...] = ("APP", "MODEM")


@dataclass(frozen=True, slots=True)
class BulkOperation:
    """What became of a bulk request; `raw` is everything that came."""

    raw: Mapping[str, JSONValue]
    id: str
    status: str
    error_summary_url: str | None

    @property
    def done(self) -> bool:
        """Whether it has ended, either way."""
        return self.status not in PENDING


@dataclass(frozen=True, slots=True)
class _BulkCall(Call[str]):
    """A call whose answer is the id of a bulk request."""

    schemes = (Scheme.API_KEY,)

    def parse(self, response: Response) -> str:
        """Return the id of the bulk request. Raises BadAnswer."""
        request_id = response.decode(dict[str, JSONValue]).get("bulkOpsRequestId")
        if not isinstance(request_id, str):
            raise BadAnswer("the answer names no bulk request")
        return request_id


@dataclass(frozen=True, slots=True)
class RegisterPublicKeys(_BulkCall):
    """Upload public keys; the answer is the id of a bulk request. A new key replaces the old."""

    keys: tuple[PublicKey, ...]

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        rows = [[key.device_id, _pem(key.pem, key.device_id)] for key in self.keys]
        return csv_request("/v1/devices/public-keys", rows)


@dataclass(frozen=True, slots=True)
class OnboardDevices(_BulkCall):
    """Bring devices into the team; the answer is the id of a bulk request.

    The same rows once more leave the same devices with the same keys.
    """

    devices: tuple[NewDevice, ...]

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        rows = [
            [
                new.device_id,
                new.sub_type,
                _parted(new.tags, new.device_id),
                "|".join(new.firmware_types),
                _pem(new.pem, new.device_id),
            ]
            for new in self.devices
        ]
        return csv_request("/v1/devices", rows)


@dataclass(frozen=True, slots=True)
class OnboardByToken(StatusCall):
    """Bring one device into the team by its registration token, which is a secret for an hour.

    The token is what an nRF93M1 answers to AT%REGJWT for this team.
    """

    schemes = (Scheme.API_KEY,)

    device_id: str
    token: str = field(repr=False)
    sub_type: str = ""
    tags: tuple[str, ...] = ()
    firmware_types: tuple[str, ...] = ("MODEM",)

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        body = {
            "onboardingToken": self.token,
            "subType": self.sub_type,
            "tags": list(self.tags),
            "supportedFirmwareTypes": list(self.firmware_types),
        }
        return Request("POST", device_path(self.device_id), json=body)


@dataclass(frozen=True, slots=True)
class FetchBulkOperation(Call[BulkOperation]):
    """The state of a bulk request."""

    schemes = (Scheme.API_KEY,)

    request_id: str

    def request(self) -> Request:
        """Return what to send."""
        inner = path_segment(self.request_id, "the id of a bulk request")
        return Request("GET", f"/v1/bulk-ops-requests/{inner}")

    def parse(self, response: Response) -> BulkOperation:
        """Return its state. Raises BadAnswer."""
        body = response.decode(dict[str, JSONValue])
        status = body.get("status")
        if not isinstance(status, str):
            raise BadAnswer("the bulk request has no status")
        url = body.get("errorSummaryUrl")
        return BulkOperation(body, self.request_id, status, url if isinstance(url, str) else None)


def csv_request(path: str, rows: Sequence[Sequence[str]], heading: Sequence[str] = ()) -> Request:
    """Return the POST of rows that each begin with a device id. Raises UsageError."""
    if not 1 <= len(rows) <= MOST_ROWS:
        raise UsageError(f"{len(rows)} devices at once: it takes 1 to {MOST_ROWS}")
    for device_id, *_ in rows:
        path_segment(device_id, "a device id")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heading, *rows] if heading else rows)
    content = text.getvalue().encode()
    return Request("POST", path, headers={"content-type": "text/csv"}, content=content)


def _parted(tags: Sequence[str], device_id: str) -> str:
    """Return tags as one column. Raises UsageError for one that would be read as two."""
    if any("|" in tag for tag in tags):
        raise UsageError(f"{device_id}: a tag cannot hold `|`, which stands between two tags")
    return "|".join(tags)


def _pem(text: str, device_id: str) -> str:
    """Return PEM text as it is sent. Raises UsageError for a private key above all.

    What stands around it is left out (RFC 7468, 2): `openssl ca` writes a certificate in words. Its
    last line ends, as its maker's tools end it: they say that the service requires it.
    """
    if "PRIVATE KEY" in text:
        raise UsageError(
            f"{device_id}: this is a private key: it never leaves its device",
            hint="`openssl pkey -in KEY -pubout -out PUBLIC` writes its public half into a file",
        )
    found = _PEM.search(text)
    if found is None:
        raise UsageError(
            f"{device_id}: neither a public key nor a certificate in PEM form",
            hint="a line of it is -----BEGIN PUBLIC KEY----- or -----BEGIN CERTIFICATE-----",
        )
    _refuse_other_keys(found[0].encode(), device_id)
    return found[0] + "\n"


def _refuse_other_keys(pem: bytes, device_id: str) -> None:
    """Raise UsageError for a key that ES256 cannot be verified with (clause D10.2)."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    from agent.auth.key_files import RSA_ADVICE

    key: object
    try:
        if pem.startswith(b"-----BEGIN CERTIFICATE"):
            key = load_pem_x509_certificate(pem).public_key()
        else:
            key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        return  # the service says row by row what it cannot read
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != "secp256r1":
        kind = type(key).__name__.removeprefix("_")
        raise UsageError(f"{device_id}: {kind} is no P-256 key", hint=RSA_ADVICE)
