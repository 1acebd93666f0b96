"""Where a device's public key comes from: uploads and certificates (clauses D9.3, D10.8).

Table `device_keys`: device id -> {device_id, team, public, source, jitp}. `public` verifies JWTs;
`jitp`, the key of a certificate from just-in-time provisioning, only when `public` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.standin.device_cloud.devices.registry import registry
from agent.standin.device_cloud.onboarding.credentials_csv import BadKey
from agent.standin.jwt import public_pem

if TYPE_CHECKING:
    from agent.standin.state import Cloud

JITP_MARK = "jitp"
"""In the organizational unit of the issuer: how this stand-in knows a JITP certificate."""


def register(cloud: Cloud, team: str, device_id: str, pem: str) -> None:
    """Store the key of an upload or a certificate; a new one overwrites. Raises BadKey."""
    public, jitp = read_pem(pem)
    table = cloud.table("device_keys")
    record = table.get(device_id.casefold())
    # Whoever has the device, or had its key first: no other team speaks for it.
    if {one["team"] for one in (record, registry(cloud).find(device_id)) if one} - {team}:
        raise BadKey("the device belongs to another team")
    field = "jitp" if jitp else "public"
    known: dict[str, Any] = record or {"public": "", "jitp": ""}
    table.put(device_id.casefold(), {**known, "device_id": device_id, "team": team, field: public})


def read_pem(pem: str) -> tuple[str, bool]:
    """Return the public key in a PEM, and whether it stood in a JITP certificate."""
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
    return public_pem(key), jitp
