"""JWTs that the stand-in refuses: clause D10.2, word by word."""

from __future__ import annotations

import json
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from tests.support.cloud.device_tokens import DEVICE, encode, fetch, token, upload
from tests.support.cloud.raw_requests import answers
from tests.support.cloud.standin import StandIn
from tests.support.keys.key_files import pem

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


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


HEAD = b'{"alg":"ES256"}'


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
        f'{{"sub":"{DEVICE}","level":NaN}}'.encode(),
    ],
    ids=["UTF-16", "byte order mark", "twice", "endless", "always", "5000 digits", "NaN"],
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


async def test_a_token_of_hostile_json_is_refused(standin: StandIn) -> None:
    for hostile in ("." * 3, "a.b.c", "W" * 60_000 + ".e30.AA", "e30.e30.", "\x7f.x.y"):
        answer = await standin.client.get(
            "/v1/devices", headers={"Authorization": f"Bearer {hostile}"}
        )
        assert answer.status_code in {400, 401, 431}
    assert await answers(standin)
