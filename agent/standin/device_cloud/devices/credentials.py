"""Public keys and certificates of devices, and the CSV that brings them (clauses D9.3, D10.8)."""

import csv
import io
import re
from dataclasses import dataclass
from itertools import islice

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.standin import jwt
from agent.standin.core.schema import Schema
from agent.standin.device_cloud.devices.registry import registry
from agent.standin.device_cloud.refusals import bad_request, invalid
from agent.standin.principal import DEVICE_KEYS, DeviceKeys
from agent.standin.state import Cloud

MOST_ROWS = 1000
_FIELD = r'(?:"(?:[^"\x00]|"")*"|[^",\r\n\x00][^,\r\n\x00]*|)'
LINE_END = r"(?:\r\n|\r|\n)"
JITP_MARK = "jitp"
"""In the organizational unit of the issuer: how this stand-in knows a JITP certificate."""


class BadKey(Exception):
    """A row or a device that is not taken: its key, its registration token or what describes it."""


@dataclass(frozen=True, slots=True)
class CsvTable:
    """The columns of a CSV: how many, the values of the first, and a header, if any."""

    columns: str
    """In words."""
    least: int
    most: int
    first: str = ".*"
    """A pattern of the value of the first column."""
    header: str = ""
    """A pattern of the first line, if it names the columns."""

    @property
    def schema(self) -> Schema:
        """The schema of the text; JSON, which could be read as rows, is excluded."""
        first = _FIELD if self.first == ".*" else f'(?:"{self.first}"|{self.first})'
        row = f"{first}(?:,{_FIELD}){{{self.least - 1},{self.most - 1}}}"
        head = f"{self.header}{LINE_END}" if self.header else ""
        pattern = rf"^\ufeff?{head}{row}(?:{LINE_END}{row})*{LINE_END}?$"
        return {
            "type": "string",
            "description": f"CSV of 1 to {MOST_ROWS} rows: {self.columns}.",
            "pattern": pattern,
            "not": {"pattern": r"^[\[{][\s\S]*[\]}]$"},
        }

    @property
    def bodies(self) -> dict[str, Schema]:
        """The schema by media type: a CSV comes as any of these."""
        return dict.fromkeys(("text/csv", "text/plain", "application/octet-stream"), self.schema)

    def rows(self, text: str) -> list[list[str]]:
        """Return the rows below the header. Raises 422 if they do not fit the schema."""
        rows = parse_rows(text)
        # Not by the pattern: a hostile text of quotes would take half a gigabyte of memory.
        for number, row in enumerate(rows):
            fits = self.least <= len(row) <= self.most
            if not fits or not re.fullmatch(self.first, row[0], re.DOTALL):
                raise invalid(f"[{number}]: the columns are {self.columns}")
        if "\x00" in text or (text[0] in "[{" and text[-1] in "]}"):
            raise invalid("that is no CSV")
        return rows


KEYS = CsvTable('device id,"PEM"', 2, 2)
NEW_DEVICES = CsvTable('device id,[sub-type],[tag|tag],[APP|MODEM],"PEM"', 5, 5)


def text_of(body: bytes) -> str:
    """Return the text of a CSV upload. Raises 400 if it is no UTF-8."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise bad_request("the body is not UTF-8") from error


def parse_rows(text: str) -> list[list[str]]:
    """Return the rows of a CSV text. Raises 422 on a blank line and on too many rows."""
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        rows = list(islice(reader, MOST_ROWS + 1))
    except csv.Error as error:
        raise invalid(f"the CSV is malformed: {error}") from error
    if not rows:
        raise invalid("the CSV has no rows")
    if len(rows) > MOST_ROWS:
        raise invalid(f"more than {MOST_ROWS} rows")
    if any(not row for row in rows):
        raise invalid("a row is blank")
    return rows


def register(cloud: Cloud, team: str, device_id: str, pem: str) -> None:
    """Store the key of an upload or a certificate in place of an older one. Raises BadKey."""
    public, jitp = read_pem(pem)
    table = cloud.table(DEVICE_KEYS)
    keys = _keys(cloud, team, device_id) or DeviceKeys(device_id=device_id, team=team)
    keys.device_id = device_id
    if jitp:
        keys.jitp = public
    else:
        keys.public = public
    table.put(device_id.casefold(), keys)


def check_registration(cloud: Cloud, team: str, device_id: str, text: str) -> None:
    """Check a registration token: a JWT by which a device names its team. Raises BadKey.

    The maker of the device knows its key, this stand-in only one that was registered: without one
    the signature is not verified.
    """
    keys = _keys(cloud, team, device_id)
    try:
        token = jwt.parse(text.strip(), cloud.clock.time(), ("sub", "id"))
    except jwt.BadToken as error:
        raise BadKey(f"the onboarding token: {error}") from error
    if token.claims.get("sub", "").casefold() != device_id.casefold():
        raise BadKey("sub of the onboarding token is not the id of the device")
    if token.claims.get("id") != team:
        raise BadKey("id of the onboarding token is not the id of the team")
    if keys and keys.public and not token.is_signed_by(keys.public):
        raise BadKey("the key of the device did not sign the onboarding token")


def _keys(cloud: Cloud, team: str, device_id: str) -> DeviceKeys | None:
    """Return the keys of a device. Raises BadKey if it belongs to another team."""
    known = cloud.table(DEVICE_KEYS).get(device_id.casefold())
    device = registry(cloud).find(device_id)
    # The team that owns the device, or that registered a key first, keeps it.
    if (known and known.team != team) or (device and device.team != team):
        raise BadKey("the device belongs to another team")
    return known


def read_pem(pem: str) -> tuple[str, bool]:
    """Return the public key in a PEM, and whether the PEM is a JITP certificate."""
    data = pem.strip().encode()
    key: object
    if b"PRIVATE KEY" in data:
        raise BadKey("a private key was sent: it is no longer private")
    try:
        if b"BEGIN CERTIFICATE-" in data:
            certificate = x509.load_pem_x509_certificate(data)
            key = certificate.public_key()
            units = certificate.issuer.get_attributes_for_oid(x509.NameOID.ORGANIZATIONAL_UNIT_NAME)
            jitp = any(str(unit.value).casefold() == JITP_MARK for unit in units)
        else:
            key, jitp = serialization.load_pem_public_key(data), False
    except (ValueError, TypeError) as error:
        raise BadKey("the PEM is malformed") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != "secp256r1":
        raise BadKey("only keys of the curve P-256 are taken: ES256 is the only algorithm")
    return jwt.public_pem(key), jitp
