"""Values of the formats that the stand-in's documents name, for schemathesis.

A schema can say that a text is a JSONata expression, a PEM, a zip with a manifest, or chunks in
parts; it cannot say what those are. `schemathesis.toml` beside this file loads it.
"""

from __future__ import annotations

import base64
import io
import json
import uuid
import zipfile
from datetime import UTC, datetime, timedelta
from typing import Any

import requests
import schemathesis
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import strategies as st
from schemathesis.transport import register_serializer
from schemathesis.transport.serialization import Binary

# What the service looks into; any bytes will do for the other kinds.
CONTENTS = {"COREDUMP": b"CORE, and no more", "MAR": b"PK\x05\x06" + bytes(18)}
BOUNDARY = "made-by-a-test"
NAMES = st.sampled_from(["id", "name", "type", "tags", "state.reported", "`$meta`.version"])


def expressions() -> st.SearchStrategy[str]:
    """Return JSONata that any device can be given to."""
    literals = st.integers(0, 99).map(str) | st.sampled_from(["'a'", '"b"', "true", "null"])
    return st.recursive(
        NAMES | literals,
        lambda inner: st.one_of(
            st.builds('{{"a": {}, "b": {}}}'.format, inner, inner),
            st.builds("[{}, {}]".format, inner, inner),
            st.builds("({})".format, inner),
            st.builds("type = 'BLE' ? {} : {}".format, inner, inner),
            st.builds("$map(tags, function($tag) {{ {} }})".format, inner),
            st.just("$keys(state)"),
            st.just("state.*.characteristics.*"),
        ),
        max_leaves=4,
    )


def pems() -> st.SearchStrategy[str]:
    """Return a public key or a certificate of a key that was made now, for nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test only")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return st.sampled_from([certificate.decode(), public.decode()])


def bundle(image: bytes, version: str, kind: str) -> bytes:
    """Return a zip with one image and the manifest that names it."""
    manifest = {"fwversion": version, "files": [{"file": "app.bin", "type": kind}]}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("app.bin", image)
    return packed.getvalue()


def multipart(chunks: list[bytes]) -> bytes:
    """Return chunks as the parts of a body."""
    parts = b"".join(b"--%b\r\n\r\n%b\r\n" % (BOUNDARY.encode(), chunk) for chunk in chunks)
    return parts + b"--%b--\r\n" % BOUNDARY.encode()


BUNDLES = st.builds(
    bundle,
    st.binary(min_size=1, max_size=64),
    st.from_regex(r"[a-zA-Z0-9._-]{1,60}", fullmatch=True),
    st.sampled_from(["application", "mcuboot", "modem"]),
)
CHUNKS = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=4).map(multipart)

schemathesis.openapi.format("jsonata", expressions())
schemathesis.openapi.format("pem", pems())
schemathesis.openapi.format("firmware-bundle", BUNDLES.map(Binary))
schemathesis.openapi.format(
    "firmware-bundle-base64", BUNDLES.map(lambda packed: base64.b64encode(packed).decode())
)
schemathesis.openapi.format("chunks", CHUNKS.map(Binary))


def mixed(_context: Any, value: Any) -> dict[str, Any]:
    """Send parts as they are; the tool by itself would make a form of them."""
    data = value.data if isinstance(value, Binary) else str(value).encode()
    return {"data": data, "headers": {"Content-Type": f"multipart/mixed; boundary={BOUNDARY}"}}


register_serializer(mixed, "multipart/mixed")


def upload(case: Any, kind: str) -> str:
    """Prepare an upload of that kind as whoever sends `case`, put its bytes, return its token."""
    path = case.formatted_path
    place, inside, _ = path.partition("/projects/")
    project = f"{place}{inside}{path.split('/projects/')[1].split('/')[0]}" if inside else "/api/v0"
    content = CONTENTS.get(kind, b"made by a test")
    names = {"authorization", "service-project-key"}
    key = {name: value for name, value in case.headers.items() if name.lower() in names}
    with requests.Session() as session:
        session.trust_env = False
        prepared = session.post(
            case.operation.base_url.rstrip("/") + f"{project}/upload",
            json={"kind": kind, "size": len(content)},
            headers=key,
        )
        if not prepared.ok:  # as this commit will be told, too
            return "x" * 32
        told = prepared.json()["data"]
        session.put(told["upload_url"], data=content).raise_for_status()
        return str(told["token"])


def registration_token(case: Any) -> str:
    """Let a case name a new device, and return its token for the team of whoever sends it."""
    with requests.Session() as session:
        session.trust_env = False
        url = case.operation.base_url.rstrip("/") + "/v1/account"
        answer = session.get(url, headers={"Authorization": case.headers["Authorization"]})
    team = answer.json()["team"]["tenantId"] if answer.ok else ""
    case.path_parameters["device_id"] = str(uuid.uuid4())
    claims = {"sub": case.path_parameters["device_id"], "id": team}
    parts = [json.dumps(part).encode() for part in ({"alg": "ES256", "typ": "JWT"}, claims)]
    parts.append(b"\x01" * 64)  # there is no key of a new device to verify it with
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: dict[str, Any]) -> None:
    """Name what is there where a request, well formed, would name what is not.

    Releases are looked for with hardware and software that some device has, and what is committed
    was uploaded before.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    operation = case.operation.definition.raw
    name = operation.get("operationId", "")
    if name == "OnboardDevice" and "onboardingToken" in case.body:
        case.body["onboardingToken"] = registration_token(case)
    if name.startswith("LatestRelease"):
        case.query |= {"hardware_version": "nrf9161dk", "software_type": "zephyr-app"}
    elif name.startswith("Commit"):
        case.body["file"] = {"token": upload(case, operation["summary"].split()[-1])}
    elif name == "PushCoredump" and case.media_type == "application/json":
        case.body["file"] = {"token": upload(case, "COREDUMP")}
