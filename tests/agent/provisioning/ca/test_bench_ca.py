"""A CA that is made for a bench: its key is encrypted, and openssl takes what it signs."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from operator_ca import openssl_verifies_all

from agent.errors import CredentialError, UsageError
from agent.provisioning.ca.bench_ca import create_ca
from agent.provisioning.ca.certificates import pem_of
from agent.provisioning.ca.device_ca import DeviceCa

NOW = datetime.now(UTC)
LIFE = timedelta(days=7300)


def test_its_key_is_encrypted_and_private_and_openssl_takes_what_it_signs(tmp_path: Path) -> None:
    certificate, key = create_ca(tmp_path / "new", "my bench", "pass phrase é", NOW, LIFE)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert b"ENCRYPTED PRIVATE KEY" in key.read_bytes()
    with pytest.raises(CredentialError):
        DeviceCa.load(certificate, key, lambda: "another")
    authority = DeviceCa.load(certificate, key, lambda: "pass phrase é")
    authority.require_valid(NOW)
    assert authority.certificate.subject.rfc4514_string() == "CN=my bench"
    board = ec.generate_private_key(ec.SECP256R1()).public_key()
    leaf = authority.sign(board, "nrf-1", NOW, timedelta(days=3650))
    openssl_verifies_all(certificate, [pem_of(leaf)])


@pytest.mark.parametrize("there", ["ca.pem", "ca.key"])
def test_nothing_is_overwritten(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(UsageError, match="never overwritten"):
        create_ca(tmp_path, "my bench", "x", NOW, LIFE)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(there, "mine")]
