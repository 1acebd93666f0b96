"""The operator's CA from files: what may sign is accepted, all else is named before any write."""

from __future__ import annotations

import os
import shlex
from base64 import b64decode, encodebytes
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

from agent.errors import CredentialError, UsageError
from agent.files.private_files import MAX_BYTES
from agent.provisioning.ca.certificates import pem_of
from agent.provisioning.ca.device_ca import DeviceCa, ends_before, read_ca
from tests.support.keys.operator_ca import make_ca, openssl_verifies

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
LIFE = 3650 * DAY
BOARD = ec.generate_private_key(ec.SECP256R1()).public_key()
PASSPHRASE = "test passphrase"


def no_passphrase() -> str:
    pytest.fail("asked for a passphrase that is not needed")


def pem(key: object) -> bytes:
    assert isinstance(
        key, ec.EllipticCurvePrivateKey | dsa.DSAPrivateKey | ed25519.Ed25519PrivateKey
    )
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.mark.contract("D10.8")
@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP384R1()),
        rsa.generate_private_key(65537, 2048),
    ],
    ids=["P-256", "P-384", "RSA"],
)
@pytest.mark.parametrize("identifier", [None, b"made by another rule"], ids=["usual", "own"])
def test_openssl_accepts_what_the_operators_ca_signed(
    tmp_path: Path, key: ec.EllipticCurvePrivateKey, identifier: bytes | None
) -> None:
    """Also where the CA's maker did not digest the key for its identifier: RFC 5280 leaves that."""
    files = make_ca(tmp_path, key=key, key_identifier=identifier)
    ca = DeviceCa.load(*files, no_passphrase)
    openssl_verifies(files[0], pem_of(ca.sign(BOARD, "nrf-350457791234567", NOW, LIFE)))


def test_an_encrypted_key_asks_for_its_passphrase_once(tmp_path: Path) -> None:
    asked: list[None] = []

    def passphrase() -> str:
        asked.append(None)
        return PASSPHRASE

    DeviceCa.load(*make_ca(tmp_path, password=PASSPHRASE.encode()), passphrase)
    assert len(asked) == 1


@pytest.mark.parametrize("wrong", ["wrong", "", "x" * 5000, "\udcff"], ids=len)
def test_a_wrong_passphrase_is_told_from_a_wrong_file(tmp_path: Path, wrong: str) -> None:
    files = make_ca(tmp_path, password=PASSPHRASE.encode())
    with pytest.raises(CredentialError, match="the passphrase does not open the CA key") as refused:
        DeviceCa.load(*files, lambda: wrong)
    assert refused.value.exit_code == 5
    assert str(files[1]) in str(refused.value)
    assert refused.value.hint == "run the same command again, and type it again"


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    certificate, key = make_ca(tmp_path)
    key.chmod(0o644)
    with pytest.raises(UsageError, match="others can read") as refused:
        DeviceCa.load(certificate, key, no_passphrase)
    assert "chmod 600" in refused.value.hint


def fifo(file: Path) -> None:
    os.mkfifo(file, 0o600)


def folder(file: Path) -> None:
    file.mkdir(0o700)


def huge(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(MAX_BYTES + 1)
    file.chmod(0o600)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (fifo, "is no plain file"),
        (folder, "is no plain file"),
        (huge, "is larger than"),
        (lambda _file: None, "No such file"),
    ],
    ids=["fifo", "folder", "huge", "missing"],
)
@pytest.mark.parametrize("which", [0, 1], ids=["certificate", "key"])
def test_what_is_no_plain_file_is_named_and_keeps_nobody(
    tmp_path: Path, make: Callable[[Path], None], says: str, which: int
) -> None:
    files = list(make_ca(tmp_path))
    files[which] = tmp_path / "odd"
    make(files[which])
    with pytest.raises(UsageError, match=says) as refused:
        DeviceCa.load(files[0], files[1], no_passphrase)
    assert str(files[which]) in str(refused.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no private key"),
        (b"\x30\x82\x01\x00", "holds no private key"),
        (b"-----BEGIN PRIVATE KEY-----\nMIGHAgEA\n-----END PRIVATE KEY-----\n", "holds no private"),
        (pem(ed25519.Ed25519PrivateKey.generate()), "neither an elliptic-curve nor an RSA key"),
        (pem(dsa.generate_private_key(1024)), "neither an elliptic-curve nor an RSA key"),
        (pem(ec.generate_private_key(ec.SECP256R1())), "is not that of the CA in"),
    ],
    ids=["empty", "DER", "cut", "ed25519", "DSA", "another"],
)
def test_a_key_file_that_does_not_fit_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    certificate, key = make_ca(tmp_path)
    key.write_bytes(content)
    with pytest.raises(UsageError, match=says) as refused:
        DeviceCa.load(certificate, key, no_passphrase)
    assert str(key) in str(refused.value)


def test_the_command_that_tells_more_of_a_key_file_can_be_pasted(tmp_path: Path) -> None:
    (folder := tmp_path / "of the plant").mkdir()
    certificate, key = make_ca(folder)
    key.write_bytes(b"")
    with pytest.raises(UsageError) as refused:
        DeviceCa.load(certificate, key, no_passphrase)
    command = refused.value.hint.split("`")[1]
    assert shlex.split(command) == ["openssl", "pkey", "-in", str(key), "-noout", "-check"]


def test_a_key_on_a_curve_that_is_not_known_is_named(tmp_path: Path) -> None:
    certificate, key = make_ca(tmp_path)
    # By hand: 1.2.840.10045.3.1.7 (P-256) becomes .6 (prime239v3).
    der = b64decode(b"".join(key.read_bytes().splitlines()[1:-1]))
    odd = der.replace(bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d030106"))
    assert odd != der
    key.write_bytes(
        b"-----BEGIN PRIVATE KEY-----\n" + encodebytes(odd) + b"-----END PRIVATE KEY-----\n"
    )
    with pytest.raises(UsageError, match="of a kind that is not known here") as refused:
        DeviceCa.load(certificate, key, no_passphrase)
    assert str(key) in str(refused.value)


def test_a_certificate_that_may_not_sign_is_named(tmp_path: Path) -> None:
    for settings, says in (
        ({"ca": False}, "does not say CA:TRUE"),
        ({"cert_sign": False}, "lacks keyCertSign"),
    ):
        with pytest.raises(UsageError, match=says) as refused:
            DeviceCa.load(*make_ca(tmp_path, **settings), no_passphrase)
        assert refused.value.hint


@pytest.mark.parametrize(
    ("begin", "end", "says", "hint"),
    [
        (NOW - 9 * DAY, NOW - DAY, "expired on", "`cellagent provision ca create FOLDER` makes"),
        (NOW + DAY, NOW + 9 * DAY, "this host's clock says", "timedatectl"),
    ],
    ids=["expired", "not yet"],
)
def test_a_ca_that_does_not_hold_now_signs_nothing(
    tmp_path: Path, begin: datetime, end: datetime, says: str, hint: str
) -> None:
    file, key = make_ca(tmp_path, begin=begin, end=end)
    ca = DeviceCa.load(file, key, no_passphrase)
    for attempt in (
        lambda: ends_before(read_ca(file), NOW, LIFE),
        lambda: ca.sign(BOARD, "board", NOW, LIFE),
    ):
        with pytest.raises(UsageError, match=says) as refused:
            attempt()
        assert hint in refused.value.hint


@pytest.mark.parametrize(
    ("ca_days", "life_days", "ends_after", "says"),
    [
        (14600, 3650, 3650, None),
        (3650, 3650, 3650, None),
        (400, 3650, 400, "the CA ends on"),
        (29, 3650, 29, "renew the CA: the CA ends on"),
        (29, 7, 7, None),
    ],
)
def test_a_certificate_holds_as_long_as_asked_and_never_longer_than_its_ca(
    tmp_path: Path, ca_days: int, life_days: int, ends_after: int, says: str | None
) -> None:
    now = NOW.replace(microsecond=0)
    begin, end = now - timedelta(hours=1), now + ca_days * DAY
    files = make_ca(tmp_path, begin=begin, end=end)
    ca = DeviceCa.load(*files, no_passphrase)
    note = ca.shortens(now, life_days * DAY)
    assert note == "" if says is None else says in note
    assert note.startswith("warning: ") == (says is not None and "renew" in says)
    leaf = ca.sign(BOARD, "nrf-350457791234567", now, life_days * DAY)
    assert leaf.not_valid_after_utc == now + ends_after * DAY
    assert leaf.not_valid_before_utc == begin  # a day back, yet not before the CA's own begin
    openssl_verifies(files[0], pem_of(leaf))


def test_a_certificate_file_is_read_as_one_certificate(tmp_path: Path) -> None:
    certificate, key = make_ca(tmp_path)
    (tmp_path / "other").mkdir()
    other = make_ca(tmp_path / "other")[0]
    both = tmp_path / "both.pem"
    both.write_bytes(certificate.read_bytes() + other.read_bytes())
    with pytest.raises(UsageError, match="holds 2 certificates"):
        DeviceCa.load(both, key, no_passphrase)
    for content in (b"", b"no certificate", key.read_bytes(), b"-----BEGIN CERTIFICATE-----\nAA=="):
        both.write_bytes(content)
        both.chmod(0o600)
        with pytest.raises(UsageError, match="holds no certificate in PEM form"):
            DeviceCa.load(both, key, no_passphrase)


def test_a_certificate_file_that_holds_the_key_is_kept_like_a_key(tmp_path: Path) -> None:
    certificate, key = make_ca(tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    both.chmod(0o644)
    with pytest.raises(UsageError, match="holds a private key: others can read") as refused:
        DeviceCa.load(both, both, no_passphrase)
    assert "chmod 600" in refused.value.hint
    both.chmod(0o600)
    assert isinstance(DeviceCa.load(both, both, no_passphrase).certificate, x509.Certificate)
