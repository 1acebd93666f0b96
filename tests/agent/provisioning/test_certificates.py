"""Certificates of the bench, judged by OpenSSL; keys and files that others cannot read."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from operator_ca import make_ca

from agent.errors import AgentError, RefusedByRule, UsageError
from agent.provisioning.certificates import (
    DeviceCa,
    pem_of,
    private_pem,
    public_pem,
    self_signed,
)
from agent.provisioning.host_keys import keep_host_key, kept_host_key, load_host_key

NOW = datetime.now(UTC)


def no_passphrase() -> str:
    pytest.fail("asked for a passphrase that is not needed")


@pytest.mark.contract("D10.8")
def test_openssl_accepts_what_the_operators_ca_signed(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs an independent judge: apt-get install openssl")
    files = make_ca(tmp_path)
    ca = DeviceCa.load(*files, no_passphrase)
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "leaf.pem").write_text(
        pem_of(ca.sign(key.public_key(), "nrf-350457791234567", NOW))
    )
    verified = subprocess.run(
        ["openssl", "verify", "-x509_strict", "-CAfile", files[0], tmp_path / "leaf.pem"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert verified.returncode == 0, verified.stderr


def test_an_encrypted_key_asks_for_its_passphrase_once(tmp_path: Path) -> None:
    asked: list[None] = []

    def passphrase() -> str:
        asked.append(None)
        return "test passphrase"

    DeviceCa.load(*make_ca(tmp_path, password=b"test passphrase"), passphrase)
    assert len(asked) == 1
    with pytest.raises(UsageError, match="passphrase is another"):
        DeviceCa.load(tmp_path / "ca.pem", tmp_path / "ca.key", lambda: "wrong")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    certificate, key = make_ca(tmp_path)
    key.chmod(0o644)
    with pytest.raises(UsageError, match="can be read by others") as refused:
        DeviceCa.load(certificate, key, no_passphrase)
    assert "chmod 600" in refused.value.hint


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = make_ca(tmp_path / "a"), make_ca(tmp_path / "b", ca=False)
    with pytest.raises(UsageError, match="not that of the CA"):
        DeviceCa.load(first[0], second[1], no_passphrase)
    with pytest.raises(UsageError, match="may not sign others"):
        DeviceCa.load(*second, no_passphrase)
    with pytest.raises(UsageError, match="No such file"):
        DeviceCa.load(tmp_path / "none", first[1], no_passphrase)
    with pytest.raises(UsageError, match="holds no certificate"):
        DeviceCa.load(first[1], first[1], no_passphrase)
    odd = tmp_path / "odd.key"
    odd.write_bytes(
        ed25519.Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    odd.chmod(0o600)
    with pytest.raises(UsageError, match="neither an elliptic-curve nor an RSA key"):
        DeviceCa.load(first[0], odd, no_passphrase)


def test_a_host_key_is_private_from_the_first_moment_and_never_overwritten(tmp_path: Path) -> None:
    folder, key = tmp_path / "keys", kept_host_key(tmp_path / "keys", "")
    file = folder / "board.pem"
    before = os.umask(0)
    try:
        keep_host_key(key, file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert file.read_text() == private_pem(key)
    assert [path.name for path in folder.iterdir()] == ["board.pem"]
    keep_host_key(key, file)  # the same once more: a run that was cut off goes on
    with pytest.raises(RefusedByRule, match="never overwritten"):
        keep_host_key(kept_host_key(folder, ""), file)
    assert file.read_text() == private_pem(key)
    certificate = self_signed(key, "device-1", NOW)
    certificate.verify_directly_issued_by(certificate)
    assert public_pem(key.public_key()).startswith("-----BEGIN PUBLIC KEY-----")


def test_a_run_that_was_cut_off_goes_on_with_the_key_that_it_noted(tmp_path: Path) -> None:
    key = kept_host_key(tmp_path, "board.pem")
    keep_host_key(key, tmp_path / "board.pem")
    again = kept_host_key(tmp_path, "../elsewhere/board.pem")  # a name, never a path
    assert private_pem(again) == private_pem(key)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot be read"), (b"no key", "holds no private key")],
)
def test_a_host_key_that_is_not_there_is_told(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "board.pem").write_bytes(content)
    with pytest.raises(AgentError, match=reason):
        load_host_key(tmp_path / "board.pem")
