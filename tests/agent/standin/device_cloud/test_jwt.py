"""Who may come in with a JWT: clause D10 word by word, over a socket."""

from __future__ import annotations

import base64
import json
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from key_files import certificate, pem
from standin import StandIn

DEVICE = "nrf-352656109000002"
HEAD = b'{"alg":"ES256"}'
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(key, claims: dict, *, header: dict | None = None, signature: bytes | None = None) -> str:
    head = header or {"alg": "ES256", "typ": "JWT"}
    body = f"{encode(json.dumps(head).encode())}.{encode(json.dumps(claims).encode())}"
    if signature is None:
        r, s = decode_dss_signature(key.sign(body.encode(), ec.ECDSA(hashes.SHA256())))
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return f"{body}.{encode(signature)}"


async def upload(standin: StandIn, what: str, rows: str) -> dict:
    answer = await standin.client.post(
        f"/v1/devices/{what}" if what else "/v1/devices",
        headers=standin.bearer("api_key") | {"Content-Type": "text/csv"},
        content=rows,
    )
    assert answer.status_code == 202, answer.text
    operation = answer.json()["bulkOpsRequestId"]
    assert len(operation) == 26
    standin.clock.advance(1)
    shown = await standin.client.get(
        f"/v1/bulk-ops-requests/{operation}", headers=standin.bearer("api_key")
    )
    return shown.json()


async def fetch(standin: StandIn, text: str, device: str = DEVICE) -> int:
    answer = await standin.client.get(
        f"/v1/devices/{device}", headers={"Authorization": f"Bearer {text}"}
    )
    return answer.status_code


@pytest.mark.contract("D9.3", "D10.3", "D10.8")
async def test_a_device_jwt_opens_its_device_once_its_key_is_registered(standin: StandIn) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    good = token(key, {"sub": DEVICE, "iat": int(time.time())})
    assert await fetch(standin, good) == 401
    done = await upload(standin, "public-keys", f'{DEVICE},"{pem(key)}"\n')
    assert done["status"] == "SUCCEEDED"
    assert await fetch(standin, good) == 200
    assert await fetch(standin, good, "nrf-352656109000001") == 403


async def test_nothing_is_registered_before_the_bulk_request_is_done(standin: StandIn) -> None:
    standin.clock.freeze()
    key = ec.generate_private_key(ec.SECP256R1())
    answer = await standin.client.post(
        "/v1/devices/public-keys",
        headers=standin.bearer("api_key") | {"Content-Type": "text/plain; charset=utf-8"},
        content=f'{DEVICE},"{pem(key)}"',
    )
    operation = answer.json()["bulkOpsRequestId"]
    states = []
    for _ in range(3):
        shown = await standin.client.get(
            f"/v1/bulk-ops-requests/{operation}", headers=standin.bearer("api_key")
        )
        states.append(shown.json()["status"])
        standin.clock.advance(0.2)
    assert states == ["PENDING", "IN_PROGRESS", "SUCCEEDED"]


@pytest.mark.contract("D10.2", "D10.3", "D10.4")
async def test_every_forged_or_mixed_token_is_refused(standin: StandIn) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    await upload(standin, "public-keys", f'{DEVICE},"{pem(key)}"\n')
    good = {"sub": DEVICE, "iat": int(time.time())}
    assert await fetch(standin, token(key, good)) == 200
    body = ".".join(token(key, good).split(".")[:2])
    r, s = decode_dss_signature(key.sign(body.encode(), ec.ECDSA(hashes.SHA256())))
    whole = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    zero = bytes(32)
    order = ORDER.to_bytes(32, "big")
    head, claims, signature = token(key, good).split(".")
    forged = {
        "alg none": token(key, good, header={"alg": "none", "typ": "JWT"}, signature=b""),
        "HS256": token(key, good, header={"alg": "HS256", "typ": "JWT"}),
        "ES384": token(key, good, header={"alg": "ES384"}),
        "crit": token(key, good, header={"alg": "ES256", "crit": ["x"], "x": 1}),
        "DER": f"{body}.{encode(encode_dss_signature(r, s))}",
        "r is 0": f"{body}.{encode(zero + whole[32:])}",
        "s is 0": f"{body}.{encode(whole[:32] + zero)}",
        "r is the order": f"{body}.{encode(order + whole[32:])}",
        "cut": f"{head}.{claims}.{signature[:-2]}",
        "padded": f"{head}.{claims}.{signature}==",
        "four parts": f"{head}.{claims}.{signature}.x",
        "other device": token(key, {**good, "sub": "nrf-352656109000001"}),
        "no subject": token(key, {"iat": int(time.time())}),
        "subject is a number": token(key, {**good, "sub": 5}),
        "with the team as audience": token(key, {**good, "aud": standin.team_id}),
        "with another audience": token(key, {**good, "aud": "x"}),
        "other key": token(ec.generate_private_key(ec.SECP256R1()), good),
        "expired": token(key, {**good, "exp": int(time.time()) - 3600}),
        "from the future": token(key, {**good, "iat": int(time.time()) + 3600}),
        "exp is no number": token(key, {**good, "exp": float("nan")}),
        "exp has no end": token(key, {**good, "exp": float("inf")}),
        "exp is text": token(key, {**good, "exp": "later"}),
        "claims are a list": token(key, [1]),  # type: ignore[arg-type]
    }
    for name, text in forged.items():
        assert await fetch(standin, text) == 401, name


@pytest.mark.contract("D10.3", "D10.5")
async def test_the_uuid_in_iss_stands_for_the_device_only_where_it_is_the_id(
    standin: StandIn,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    uuid = "50363154-3930-4d96-80f9-13121cf35adc"
    rows = "".join(f'{device},,,APP,"{pem(key)}"\n' for device in (uuid, "nrf-352656109000077"))
    assert (await upload(standin, "", rows))["status"] == "SUCCEEDED"
    made = token(key, {"iss": f"nRF9161.{uuid}", "jti": "nRF9161.x"})
    assert await fetch(standin, made, uuid) == 200
    assert await fetch(standin, token(key, {"iss": uuid}), uuid) == 200
    # The id of this one is not the UUID: without `sub` the token does not say which device it is.
    assert await fetch(standin, made, "nrf-352656109000077") in {401, 403}
    named = token(key, {"iss": f"nRF9161.{uuid}", "sub": "nrf-352656109000077"})
    assert await fetch(standin, named, "nrf-352656109000077") == 200
    # Only a UUID stands in `iss`: any other id there is no subject.
    posing = token(key, {"iss": "nrf-352656109000077"})
    assert await fetch(standin, posing, "nrf-352656109000077") == 401
    assert await fetch(standin, token(key, {"iss": f"x.{uuid}.y"}), uuid) == 401


@pytest.mark.contract("D10.8")
async def test_a_jitp_certificate_is_the_last_resort(standin: StandIn) -> None:
    own, jitp = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    claims = {"sub": DEVICE}
    await upload(standin, "certificates", f'{DEVICE},"{certificate(jitp, unit="JITP")}"\n')
    assert await fetch(standin, token(jitp, claims)) == 200
    await upload(standin, "certificates", f'{DEVICE},"{certificate(own)}"\n')
    assert await fetch(standin, token(own, claims)) == 200
    assert await fetch(standin, token(jitp, claims)) == 200
    # A new key overwrites the one of the same source.
    new = ec.generate_private_key(ec.SECP256R1())
    await upload(standin, "public-keys", f'{DEVICE},"{pem(new)}"\n')
    assert await fetch(standin, token(own, claims)) == 401


@pytest.mark.contract("D10.2")
async def test_an_rsa_key_is_refused_and_the_row_is_named(standin: StandIn) -> None:
    good = ec.generate_private_key(ec.SECP256R1())
    bad = rsa.generate_private_key(65537, 2048)
    other_curve = ec.generate_private_key(ec.SECP384R1())
    rows = f'a,"{pem(good)}"\nb,"{pem(bad)}"\nc,"{pem(other_curve)}"\nd,nonsense\n'
    done = await upload(standin, "public-keys", rows)
    assert done["status"] == "FAILED"
    errors = (await standin.client.get(done["errorSummaryUrl"])).json()["errors"]
    assert [text.split("]")[0] for text in errors] == ["[1", "[2", "[3"]


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ("", 422),
        ('a,"x\n', 422),
        ("a,x\n\nb,y\n", 422),
        ("a,x\n" * 1001, 422),
        ("a,x\n" * 1000, 202),
    ],
    ids=["empty", "open quote", "blank line", "1001 rows", "1000 rows"],
)
async def test_a_csv_is_checked_before_it_is_accepted(
    standin: StandIn, rows: str, status: int
) -> None:
    answer = await standin.client.post(
        "/v1/devices/public-keys",
        headers=standin.bearer("api_key") | {"Content-Type": "application/octet-stream"},
        content=rows,
    )
    assert answer.status_code == status


@pytest.mark.contract("D10.8")
async def test_a_certificate_of_the_service_is_the_last_resort_until_the_device_is_associated(
    standin: StandIn,
) -> None:
    device, api = "kit-of-another-maker", standin.bearer("api_key")
    path = f"/v1/devices/{device}/certificates"
    made = await standin.client.post(path, content="pin-1234", headers=api)
    assert made.status_code == 201, made.text
    bundle = made.json()
    assert (bundle["clientId"], bundle["clientCert"].count("BEGIN CERTIFICATE")) == (device, 2)
    chain = x509.load_pem_x509_certificates(bundle["clientCert"].encode())
    root = x509.load_pem_x509_certificate(bundle["caCert"].encode())
    for lower, upper in zip(chain, [chain[1], root], strict=True):
        lower.verify_directly_issued_by(upper)
    key = serialization.load_pem_private_key(bundle["privateKey"].encode(), None)
    signed = token(key, {"sub": device})
    assert await fetch(standin, signed, device) == 404  # a key, and no device yet
    wrong = await standin.client.put(f"/v1/association/{device}", content="pin-1", headers=api)
    assert (wrong.status_code, wrong.json()["code"]) == (401, 40102)
    right = await standin.client.put(f"/v1/association/{device}", content="pin-1234", headers=api)
    assert right.status_code == 202
    assert await fetch(standin, signed, device) == 200
    assert (await standin.client.post(path, content=" ", headers=api)).status_code == 400


@pytest.mark.contract("D10.2")
@pytest.mark.parametrize(
    "claims",
    [
        json.dumps({"sub": DEVICE}).encode("utf-16"),
        json.dumps({"sub": DEVICE}).encode("utf-8-sig"),
        f'{{"sub":"nrf-1","sub":"{DEVICE}"}}'.encode(),
        f'{{"sub":"{DEVICE}","exp":1e999}}'.encode(),
        f'{{"sub":"{DEVICE}","iat":-1e999}}'.encode(),
        f'{{"sub":"{DEVICE}","exp":{"9" * 5000}}}'.encode(),
    ],
    ids=["UTF-16", "byte order mark", "twice", "endless", "always", "5000 digits"],
)
async def test_claims_that_two_readers_could_read_in_two_ways_are_refused(
    standin: StandIn, claims: bytes
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    await upload(standin, "public-keys", f'{DEVICE},"{pem(key)}"\n')
    assert await fetch(standin, token(key, {"sub": DEVICE})) == 200
    body = f"{encode(HEAD)}.{encode(claims)}"
    r, s = decode_dss_signature(key.sign(body.encode(), ec.ECDSA(hashes.SHA256())))
    signed = f"{body}.{encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
    assert await fetch(standin, signed) == 401


@pytest.mark.contract("D10.1", "D9.3")
@pytest.mark.parametrize("registered", [False, True], ids=["without a key", "with a key"])
async def test_no_other_team_registers_a_key_for_our_device(
    standin: StandIn, registered: bool
) -> None:
    ours, theirs = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    row = f'{DEVICE},"{pem(ours)}"\n'
    if registered:
        await upload(standin, "public-keys", row)
    rows = standin.cloud.table("api_keys").values()
    key = next(one["key"] for one in rows if one["team"] != standin.team_id)
    accepted = await standin.client.post(
        "/v1/devices/public-keys",
        headers={"Authorization": f"Bearer {key}", "Content-Type": "text/csv"},
        content=f'{DEVICE},"{pem(theirs)}"\n',
    )
    assert accepted.status_code == 202
    standin.clock.advance(1)
    assert await fetch(standin, token(theirs, {"sub": DEVICE})) == 401
    assert (await upload(standin, "public-keys", row))["status"] == "SUCCEEDED"
    assert await fetch(standin, token(ours, {"sub": DEVICE})) == 200
