"""What the virtual modem signs, judged by OpenSSL and by the words of the standards."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import cbor2
import pytest
from openssl import openssl
from virtual_modems import printed, quoted, switched_on, unpadded

from at.virtual.command_line import BadRequest
from at.virtual.modem import VirtualModem
from at.virtual.signing import load_key, new_key, signing_request

NULL_IN_ALGORITHM = bytes.fromhex("300c06082a8648ce3d0403020500")


def der_signature(raw: bytes) -> bytes:
    def integer(part: bytes) -> bytes:
        part = part.lstrip(b"\0") or b"\0"
        part = b"\0" + part if part[0] & 0x80 else part
        return bytes([2, len(part)]) + part

    body = integer(raw[:32]) + integer(raw[32:])
    return bytes([0x30, len(body)]) + body


def openssl_verifies(folder: Path, public_pem: str, message: bytes, raw: bytes) -> bool:
    (folder / "key.pem").write_text(public_pem)
    (folder / "message").write_bytes(message)
    (folder / "signature").write_bytes(der_signature(raw))
    asked = ("-verify", "key.pem", "-signature", "signature", "message")
    return openssl(folder, "dgst", "-sha256", *asked).returncode == 0


def identity_pem(modem: VirtualModem) -> str:
    return printed(modem, "AT%CMNG=2,4294967294,6").split('"')[3]


@pytest.mark.parametrize("attributes", ["", ',"O=Test,L=Trondheim,C=NO,CN=a-kit"'])
def test_openssl_accepts_the_request_with_its_null(attributes: str, tmp_path: Path) -> None:
    modem = switched_on()
    body = unpadded(quoted(printed(modem, f"AT%KEYGEN=7,2,0{attributes}")).split(".")[0])
    assert NULL_IN_ALGORITHM in body
    (tmp_path / "request").write_bytes(body)
    asked = ("-inform", "DER", "-in", "request", "-verify", "-noout", "-text")
    judged = openssl(tmp_path, "req", *asked)
    assert "verify OK" in judged.stdout + judged.stderr
    assert ("a-kit" if attributes else modem.kit.saved.uuid) in judged.stdout
    assert "Digital Signature, Non Repudiation, Key Encipherment, Key Agreement" in judged.stdout


@pytest.mark.parametrize(("model", "signs_body"), [("nrf9160", True), ("nrf9151", False)])
@pytest.mark.parametrize("content", [0, 1])
def test_the_identity_key_signed_what_was_generated(
    model: str, signs_body: bool, content: int, tmp_path: Path
) -> None:
    modem = switched_on(model=model)
    body, cose = map(unpadded, quoted(printed(modem, f"AT%KEYGEN=16842753,2,{content}")).split("."))
    message = cbor2.loads(cose)
    protected, unprotected, payload, signature = message.value
    assert message.tag == 18
    assert protected == bytes.fromhex("a10126")
    assert unprotected == {4: b"\x21"}
    assert payload.startswith(bytes.fromhex("d9d9f785"))
    fields = cbor2.loads(payload)  # it takes the self-described tag off
    assert fields[0] == (9 if content == 0 else 8)
    assert fields[2] == bytes.fromhex("1a01010001")
    assert fields[3] == hashlib.sha256(body).digest()
    to_sign = cbor2.dumps(["Signature1", protected, body if signs_body else b"", payload])
    assert openssl_verifies(tmp_path, identity_pem(modem), to_sign, signature)


def test_the_attestation_is_signed_over_null_with_its_body_beside(tmp_path: Path) -> None:
    modem = switched_on(model="nrf9151")
    challenge = "000102030405060708090a0b0c0d0e0f"
    body, cose = map(unpadded, quoted(printed(modem, f'AT%ATTESTTOKEN="{challenge}"')).split("."))
    kind, device, chip, _, nonce = cbor2.loads(body)
    assert (kind, chip, nonce.hex()) == (1, 6, challenge)
    assert device.hex() == modem.kit.saved.uuid.replace("-", "")
    protected, _, payload, signature = cbor2.loads(cose).value
    assert payload is None
    to_sign = cbor2.dumps(["Signature1", protected, body, None])
    assert openssl_verifies(tmp_path, identity_pem(modem), to_sign, signature)


@pytest.mark.contract("D10.3", "D10.5")
def test_a_token_is_signed_and_says_who_and_for_whom(tmp_path: Path) -> None:
    modem = switched_on()
    printed(modem, "AT+CFUN=1")
    token = quoted(printed(modem, 'AT%JWT=0,600,"nrf-123","team"'))
    assert "=" not in token
    header, payload, signature = token.split(".")
    assert len(header) % 4 == len(payload) % 4 == 0
    public = identity_pem(modem)
    raw = unpadded(signature)
    assert len(raw) == 64
    assert openssl_verifies(tmp_path, public, f"{header}.{payload}".encode(), raw)
    spki = base64.b64decode("".join(public.split("-----")[2].split()))
    assert json.loads(unpadded(header)) == {
        "typ": "JWT",
        "alg": "ES256",
        "kid": hashlib.sha256(spki).hexdigest(),
    }
    claims = json.loads(unpadded(payload))
    assert claims["iss"] == f"nRF9161.{modem.kit.saved.uuid}"
    assert (claims["sub"], claims["aud"]) == ("nrf-123", "team")
    assert claims["exp"] - claims["iat"] == 600
    assert claims["iat"] == 1_700_000_000


@pytest.mark.parametrize("attributes", ["CN", "CN=", "XX=1", "C=NOR", "CN=a,,O=b"])
def test_a_subject_that_no_certificate_can_have_is_refused(attributes: str) -> None:
    key = load_key(new_key())
    assert key is not None
    with pytest.raises(BadRequest):
        signing_request(key, attributes, "a-kit")


@pytest.mark.parametrize("pem", ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_what_is_no_key_is_none(pem: str) -> None:
    assert load_key(pem) is None
