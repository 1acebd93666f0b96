"""The keys that sign attestations: where they are read from, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config.identity_keys import IdentityKeys, UntrustedSignature, load_identity_keys
from agent.errors import ConfigError
from at.tokens.attestation import AttestationToken, read_attestation, read_generated_key
from at.tokens.key_formats import key_pem
from tests.support.modem.signed_tokens import IDENTITY, OTHER, attest, keygen, public, request

PEM = key_pem(IDENTITY.public_key())
OTHER_PEM = key_pem(OTHER.public_key())


def verified(keys: IdentityKeys, token: str | None = None) -> bool | None:
    answer: AttestationToken = keys.check(read_attestation(token or attest()))
    return answer.verified


def test_keys_are_read_from_a_file_of_one_or_many_and_from_a_folder(tmp_path: Path) -> None:
    one, many, folder = tmp_path / "one.pem", tmp_path / "many.pem", tmp_path / "keys"
    one.write_text(PEM)
    many.write_text(f"# the lot of March\n{OTHER_PEM}\n{PEM}")
    folder.mkdir()
    (folder / "a.der").write_bytes(public(IDENTITY))
    (folder / "b.pem").write_text(OTHER_PEM)
    (folder / "README").write_text("no key")
    for named in (one, many, folder, folder / "a.der"):
        assert verified(load_identity_keys(str(named))) is True
    assert verified(load_identity_keys(str(folder / "b.pem"))) is False


def test_without_a_key_nothing_is_checked_and_nothing_refused() -> None:
    answer = load_identity_keys("").require(read_attestation(attest()), "it")
    assert (answer.verified, answer.reason.count("not checked")) == (None, 1)


@pytest.mark.parametrize(
    "content",
    [b"", b"no key", PEM[:80].encode(), b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END "],
    ids=["nothing", "words", "half a key", "a private key"],
)
def test_a_file_that_holds_anything_else_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    bad = tmp_path / "bad.pem"
    bad.write_bytes(content)
    with pytest.raises(ConfigError, match=r"provisioning\.attestation_keys: .*bad\.pem"):
        load_identity_keys(str(bad))


def test_a_folder_without_a_key_is_refused_as_is_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no"):
        load_identity_keys(str(tmp_path))
    with pytest.raises(ConfigError, match="cannot read") as missing:
        load_identity_keys(str(tmp_path / "none.pem"))
    assert missing.value.hint == f"`ls {tmp_path}` shows what is there"


@pytest.mark.parametrize(
    "answer",
    [
        read_attestation(attest(key=OTHER)),
        read_attestation(attest().partition(".")[0]),
        read_generated_key(keygen(request(), key=OTHER)),
        read_generated_key(keygen(request(), digest=bytes(32))),
    ],
    ids=["another key", "no signature", "another key's request", "another body"],
)
def test_with_a_key_all_that_it_did_not_sign_is_refused(answer: AttestationToken) -> None:
    keys = IdentityKeys((IDENTITY.public_key(),), "keys.pem")
    with pytest.raises(UntrustedSignature, match="of it") as refused:
        keys.require(answer, "it")
    assert (refused.value.exit_code, "keys.pem" in refused.value.hint) == (4, True)
    assert keys.require(read_attestation(attest()), "it").verified is True
