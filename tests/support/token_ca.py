"""One CA twice: its key on a SoftHSM token, and in the file that it was imported from."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from operator_ca import CaKey, make_ca
from soft_token import PIN, SoftToken

from agent.config.pkcs11_uri import Pkcs11Uri, parse_pkcs11
from agent.config.secrets import Secret
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.ca.token import Pin

NOW = datetime.now(UTC)
LIFE = timedelta(days=3650)
BOARD = ec.generate_private_key(ec.SECP256R1()).public_key()
KEYS = {
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
}


def uri_of(made: SoftToken, /, **attributes: str) -> Pkcs11Uri:
    return parse_pkcs11(made.uri(**attributes), "test")


def right_pin(_label: str) -> Pin:
    return Pin(Secret(PIN), "from the test")


def ca_on(token: SoftToken, folder: Path, key: CaKey | None = None) -> tuple[DeviceCa, DeviceCa]:
    """Return one CA twice: its key on the token, and in the file that it was imported from."""
    files = make_ca(folder, key=key)
    token.import_key(files[1])
    on_token = DeviceCa.on_token(files[0], uri_of(token), right_pin)
    return on_token, DeviceCa.load(*files, lambda: pytest.fail("asked for a passphrase"))
