"""A key file for the tests of credentials."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.cloud.credential_calls import pem


@pytest.fixture
def p256(tmp_path: Path) -> Path:
    return pem(tmp_path / "key.pem", ec.generate_private_key(ec.SECP256R1()))
