"""A key on a token signs as certificates are signed; a token that is gone keeps nobody."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from agent.provisioning.ca import token_keys
from agent.provisioning.ca.token_keys import TokenError
from tests.support.keys.soft_token import BOARD, KEYS, LIFE, NOW, SoftToken, ca_on


def test_a_token_that_is_pulled_fails_each_board_by_name(token: SoftToken, tmp_path: Path) -> None:
    ca, _ = ca_on(token, tmp_path)
    ca.sign(BOARD, "before", NOW, LIFE)
    token.pull()
    for _ in range(2):
        with pytest.raises(TokenError, match="bench did not sign: it was taken out") as failed:
            ca.sign(BOARD, "after", NOW, LIFE)
        assert "run again" in failed.value.hint
        assert failed.value.exit_code == 1


def test_a_token_that_does_not_answer_keeps_nobody(
    token: SoftToken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first board waits for the deadline, the others not even for that."""
    ca, _ = ca_on(token, tmp_path)
    lost = threading.Event()
    monkeypatch.setattr(token_keys, "ANSWERS_WITHIN_S", 0.05)
    monkeypatch.setattr(ca._key._ask.__self__._key, "sign", lambda *_, **__: lost.wait())
    try:
        for _ in range(3):
            with pytest.raises(TokenError, match="bench did not sign within"):
                ca.sign(BOARD, "board", NOW, LIFE)
        assert [one.name for one in threading.enumerate()].count("pkcs11") == 1
    finally:
        lost.set()


def test_a_key_on_a_token_does_nothing_but_sign(token: SoftToken, tmp_path: Path) -> None:
    key = ca_on(token, tmp_path)[0]._key
    for forbidden in (key.private_numbers, key.private_bytes, key.__copy__):
        with pytest.raises(UnsupportedAlgorithm, match="does not leave"):
            forbidden()
    assert (key.key_size, key.curve.name) == (256, "secp256r1")


def test_an_rsa_key_signs_as_certificates_are_signed_and_no_other_way(
    token: SoftToken, tmp_path: Path
) -> None:
    key = ca_on(token, tmp_path, KEYS["RSA"]())[0]._key
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 2048
    with pytest.raises(UnsupportedAlgorithm, match="PKCS #1"):
        key.sign(b"data", padding.PKCS1v15(), hashes.SHA512())
