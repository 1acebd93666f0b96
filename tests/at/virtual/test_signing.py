"""What the virtual modem signs, judged by OpenSSL and by the words of the standards."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import cbor2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from at.tokens.csr import elements
from at.virtual.command_line import BadRequest
from at.virtual.modem import VirtualModem
from at.virtual.signing import load_key, new_key, signing_request
from tests.support.keys.openssl import openssl
from tests.support.modem.virtual_modems import printed, quoted, switched_on, unpadded

OIDS = {
    "CN": NameOID.COMMON_NAME,
    "cn": NameOID.COMMON_NAME,
    "C": NameOID.COUNTRY_NAME,
    "L": NameOID.LOCALITY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "SN": NameOID.SURNAME,
    "SERIALNUMBER": NameOID.SERIAL_NUMBER,
    "EMAILADDRESS": NameOID.EMAIL_ADDRESS,
}
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


@pytest.mark.parametrize(
    ("asked", "usage"),
    [
        ("101010000", "Digital Signature, Key Encipherment, Key Agreement"),
        ("000000001", "Decipher Only"),
        ("", "Digital Signature, Non Repudiation, Key Encipherment, Key Agreement"),
    ],
)
def test_the_request_is_for_the_usage_that_was_asked_for(
    asked: str, usage: str, tmp_path: Path
) -> None:
    answer = quoted(printed(switched_on(), f'AT%KEYGEN=7,2,0,"","{asked}"'))
    (tmp_path / "request").write_bytes(unpadded(answer.split(".")[0]))
    told = openssl(tmp_path, "req", "-inform", "DER", "-in", "request", "-noout", "-text").stdout
    assert told.partition("X509v3 Key Usage: \n")[2].splitlines()[0].strip() == usage


@pytest.mark.parametrize("wrong", ["000000000", "1010", "1110100000", "11101000x"])
def test_a_usage_that_is_none_is_refused_and_no_key_is_made(wrong: str) -> None:
    modem = switched_on()
    assert printed(modem, f'AT%KEYGEN=7,2,0,"","{wrong}"') == "ERROR\r\n"
    assert printed(modem, "AT%CMNG=1,7") == "OK\r\n"


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


@pytest.mark.parametrize(
    "attributes",
    [
        "",
        "CN=a=b",
        " cn = b ",
        "SN=\u00e9,SERIALNUMBER=1 2,C=NO",
        "EMAILADDRESS=a@b,OU=c,ST=d,O=e",
        "L=" + 300 * "l",
    ],
)
def test_the_request_is_the_one_that_cryptography_builds(attributes: str) -> None:
    key = load_key(new_key())
    assert key is not None
    names = [piece.partition("=")[::2] for piece in (attributes or "CN=a-kit").split(",")]
    subject = x509.Name([x509.NameAttribute(OIDS[name.strip()], text) for name, text in names])
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=True, key_encipherment=True, key_agreement=True,
        data_encipherment=False, key_cert_sign=False, crl_sign=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    built = builder.add_extension(usage, critical=False).sign(key, hashes.SHA256())
    assert elements(signing_request(key, attributes, "a-kit"))[0] == built.tbs_certrequest_bytes


def test_the_first_key_imports_nothing_that_only_certificates_need() -> None:
    code = (
        "import sys; from at.virtual.signing import *;"
        "signing_request(load_key(new_key()), '', 'a-kit');"
        "print('cryptography.x509' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout == "False\n"


@pytest.mark.parametrize(
    "attributes",
    [
        "CN",
        "CN=",
        "XX=1",
        "C=NOR",
        "CN=a,,O=b",
        "C=N",
        f"CN={65 * 'n'}",
        f"CN={33 * chr(233)}",
        "SERIALNUMBER=1_2",
        "C=\u00e9",
    ],
)
def test_a_subject_that_no_certificate_can_have_is_refused(attributes: str) -> None:
    key = load_key(new_key())
    assert key is not None
    with pytest.raises(BadRequest):
        signing_request(key, attributes, "a-kit")


@pytest.mark.parametrize("pem", ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_what_is_no_key_is_none(pem: str) -> None:
    assert load_key(pem) is None
