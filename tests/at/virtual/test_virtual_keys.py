"""What the virtual modem signs, judged by OpenSSL and by the standards' own words."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import cbor2
import pytest
from openssl import openssl

from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions

NULL_IN_ALGORITHM = bytes.fromhex("300c06082a8648ce3d0403020500")


def kit(model: str = "nrf9161", **options: object) -> VirtualModem:
    given = VirtualOptions(model=model, instant=True, **options)  # type: ignore[arg-type]
    return VirtualModem(given, now=0.0, unix_time=1_700_000_000.0)


def ask(modem: VirtualModem, line: str) -> str:
    modem.receive(line.encode("latin-1") + b"\r", now=modem.kit.now)
    return modem.data_to_send().decode("latin-1")


def quoted(answer: str) -> str:
    return answer.split('"')[1]


def unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


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
    return ask(modem, "AT%CMNG=2,4294967294,6").split('"')[3]


@pytest.mark.parametrize("attributes", ["", ',"O=Test,L=Trondheim,C=NO,CN=a-kit"'])
def test_openssl_accepts_the_request_with_its_null(attributes: str, tmp_path: Path) -> None:
    modem = kit()
    body = unpadded(quoted(ask(modem, f"AT%KEYGEN=7,2,0{attributes}")).split(".")[0])
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
    modem = kit(model)
    body, cose = map(unpadded, quoted(ask(modem, f"AT%KEYGEN=16842753,2,{content}")).split("."))
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
    modem = kit("nrf9151")
    challenge = "000102030405060708090a0b0c0d0e0f"
    body, cose = map(unpadded, quoted(ask(modem, f'AT%ATTESTTOKEN="{challenge}"')).split("."))
    kind, device, chip, _, nonce = cbor2.loads(body)
    assert (kind, chip, nonce.hex()) == (1, 6, challenge)
    assert device.hex() == modem.kit.saved.uuid.replace("-", "")
    protected, _, payload, signature = cbor2.loads(cose).value
    assert payload is None
    to_sign = cbor2.dumps(["Signature1", protected, body, None])
    assert openssl_verifies(tmp_path, identity_pem(modem), to_sign, signature)


@pytest.mark.contract("D10.3", "D10.5")
def test_a_token_is_signed_and_says_who_and_for_whom(tmp_path: Path) -> None:
    modem = kit()
    ask(modem, "AT+CFUN=1")
    token = quoted(ask(modem, 'AT%JWT=0,600,"nrf-123","team"'))
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


def test_without_a_time_a_token_comes_without_its_times() -> None:
    modem = kit(faults=("no-time",))
    ask(modem, "AT+CFUN=1")
    assert ask(modem, "AT+CCLK?") == "ERROR\r\n"
    claims = json.loads(unpadded(quoted(ask(modem, "AT%JWT=0,600")).split(".")[1]))
    assert set(claims) == {"iss", "jti"}
    assert ask(modem, 'AT+CCLK="23/11/14,23:13:20+04"') == "OK\r\n"
    claims = json.loads(unpadded(quoted(ask(modem, "AT%JWT=0,600")).split(".")[1]))
    assert claims["iat"] == 1_700_000_000


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("AT%JWT=1,600", 50),
        ('AT%JWT=0,600,"",""' + ",7", 50),
        ('AT%JWT=0,600,"","",7,2', 513),
        ('AT%JWT=0,600,"","",7,3', 50),
        ('AT%JWT=0,600,"","",8,2', 514),
        ("AT%JWT=0,600,bare", 50),
    ],
)
def test_a_token_that_cannot_be_made_is_refused_by_number(line: str, error: int) -> None:
    modem = kit()
    ask(modem, "AT+CMEE=1")
    ask(modem, 'AT%CMNG=0,8,2,"no key at all"')
    assert ask(modem, line) == f"+CME ERROR: {error}\r\n"


def test_the_store_keeps_the_manuals_rules() -> None:
    modem = kit()
    ask(modem, "AT+CMEE=1")
    written = "-----BEGIN TEST-----\r\nA\nB\r\n-----END TEST-----\r\n"
    assert ask(modem, f'AT%CMNG=0,7,0,"{written}"') == "OK\r\n"
    sha = hashlib.sha256(written.encode()).hexdigest().upper()
    assert ask(modem, "AT%CMNG=1,7") == f'%CMNG: 7,0,"{sha}"\r\nOK\r\n'
    assert ask(modem, "AT%CMNG=2,7,0") == f'%CMNG: 7,0,"{sha}","{written}"\r\nOK\r\n'
    assert ask(modem, "AT%CMNG=3,7,1") == "+CME ERROR: 513\r\n"
    ask(modem, "AT%KEYGEN=7,2,0")
    assert ask(modem, "AT%KEYGEN=7,2,0") == "+CME ERROR: 519\r\n"
    assert ask(modem, 'AT%CMNG=0,7,2,"x"') == "+CME ERROR: 519\r\n"
    assert ask(modem, "AT%CMNG=2,7,2") == "+CME ERROR: 514\r\n"
    ask(modem, "AT+CFUN=1")
    for line in ('AT%CMNG=0,7,1,"x"', "AT%CMNG=3,7,0", "AT%KEYGEN=8,2,0"):
        assert ask(modem, line) == "+CME ERROR: 518\r\n"
    assert ask(modem, "AT%CMNG=1,7,0").endswith("OK\r\n")
    ask(modem, "AT+CFUN=4")
    assert ask(modem, "AT%CMNG=3,7,0") == "OK\r\n"
    assert ask(modem, "AT%CMNG=1,7,0") == "OK\r\n"
    assert ask(modem, "AT%CMNG=3,4294967294,6") == "ERROR\r\n"


def test_firmware_before_its_time_knows_no_keys() -> None:
    modem = kit(faults=("old-firmware",))
    ask(modem, "AT+CMEE=1")
    assert ask(modem, "AT+CGMR").startswith("mfw_nrf9160_1.2.8")
    for line in ("AT%JWT", "AT%KEYGEN=7,2,0", "AT%ATTESTTOKEN"):
        assert ask(modem, line) == "+CME ERROR: 0\r\n"
