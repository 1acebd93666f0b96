"""A CA that is made for a bench: its key is encrypted, and openssl takes what it signs."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pkcs11
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from pkcs11 import Attribute, ObjectClass

from agent.errors import AgentError, CredentialError, UsageError
from agent.files.private_files import write_private
from agent.provisioning.ca import bench_ca
from agent.provisioning.ca.bench_ca import create_ca, create_ca_on_token
from agent.provisioning.ca.certificates import pem_of
from agent.provisioning.ca.device_ca import DeviceCa
from tests.support.keys.operator_ca import openssl_verifies_all
from tests.support.keys.soft_token import PIN, SoftToken, right_pin, uri_of

NOW = datetime.now(UTC)
LIFE = timedelta(days=7300)


def test_its_key_is_encrypted_and_private_and_openssl_takes_what_it_signs(tmp_path: Path) -> None:
    certificate, key = create_ca(tmp_path / "new", "my bench", lambda: "pass phrase é", NOW, LIFE)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert b"ENCRYPTED PRIVATE KEY" in key.read_bytes()
    with pytest.raises(CredentialError):
        DeviceCa.load(certificate, key, lambda: "another")
    authority = DeviceCa.load(certificate, key, lambda: "pass phrase é")
    assert authority.certificate.subject.rfc4514_string() == "CN=my bench"
    board = ec.generate_private_key(ec.SECP256R1()).public_key()
    leaf = authority.sign(board, "nrf-1", NOW, timedelta(days=3650))
    openssl_verifies_all(certificate, [pem_of(leaf)])


@pytest.mark.parametrize("there", ["ca.pem", "ca.key"])
def test_nothing_is_overwritten(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(UsageError, match="never overwritten"):
        create_ca(tmp_path, "my bench", lambda: "x", NOW, LIFE)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(there, "mine")]


def test_a_key_whose_certificate_finds_no_room_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next try is refused, and says to use a CA that is none."""

    def written(file: Path, content: bytes) -> None:
        if file.suffix == ".pem":
            raise OSError(28, "No space left on device")
        write_private(file, content)

    monkeypatch.setattr(bench_ca, "write_private", written)
    with pytest.raises(AgentError, match="No space left"):
        create_ca(tmp_path, "my bench", lambda: "x", NOW, LIFE)
    assert not list(tmp_path.iterdir())


def made_on(token: SoftToken, folder: Path, name: str = "device-ca") -> Path:
    named = uri_of(token, token=token.label, object=name)
    return create_ca_on_token(folder, "my bench", named, right_pin, NOW, LIFE)


def keys_on(token: SoftToken) -> list[tuple[str, bool]]:
    """Return the private keys of a token: what each is called, and whether it can leave."""
    opened = pkcs11.lib(token.module).get_token(token_label=token.label)
    with opened.open(user_pin=PIN) as session:
        found = session.get_objects({Attribute.CLASS: ObjectClass.PRIVATE_KEY})
        return [(key[Attribute.LABEL], not key[Attribute.NEVER_EXTRACTABLE]) for key in found]


def test_on_a_token_its_key_never_leaves_and_openssl_takes_what_it_signs(
    token: SoftToken, tmp_path: Path
) -> None:
    certificate = made_on(token, tmp_path / "new")
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["ca.pem"]
    assert keys_on(token) == [("device-ca", False)]
    named = uri_of(token, token=token.label, object="device-ca")
    authority = DeviceCa.on_token(certificate, named, right_pin)
    assert authority.certificate.subject.rfc4514_string() == "CN=my bench"
    board = ec.generate_private_key(ec.SECP256R1()).public_key()
    leaf = authority.sign(board, "nrf-1", NOW, timedelta(days=3650))
    openssl_verifies_all(certificate, [pem_of(leaf)])


def test_on_a_token_nothing_is_overwritten_and_no_key_is_left_without_a_certificate(
    token: SoftToken, tmp_path: Path
) -> None:
    certificate = made_on(token, tmp_path / "new")
    before = certificate.read_bytes()
    with pytest.raises(UsageError, match=r"ca\.pem is there already: a CA is never overwritten"):
        made_on(token, tmp_path / "new", "another")
    with pytest.raises(UsageError, match="holds that key already: a CA is never overwritten"):
        made_on(token, tmp_path / "elsewhere")
    (tmp_path / "file").write_text("in the way of a folder")
    with pytest.raises(AgentError, match="is no folder"):
        made_on(token, tmp_path / "file", "another")
    with pytest.raises(UsageError, match="what to call the key"):
        create_ca_on_token(
            tmp_path / "elsewhere", "x", uri_of(token, token=token.label), right_pin, NOW, LIFE
        )
    assert keys_on(token) == [("device-ca", False)]
    assert certificate.read_bytes() == before
    assert not (tmp_path / "elsewhere").exists()
