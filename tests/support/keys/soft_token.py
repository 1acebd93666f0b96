"""A PKCS #11 token of a test's own: SoftHSM in a temporary folder, and a spy on what it is asked.

And a CA whose key is on it. Skips where SoftHSM or the extra is not installed, with the command
that would help.
"""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from agent.config.pkcs11_uri import Pkcs11Uri, parse_pkcs11
from agent.config.secrets import Secret
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.ca.token import Pin
from tests.support.keys.operator_ca import CaKey, make_ca

# This process's own: softhsm2-util takes a PIN as an argument, and a test that looks for its PIN in
# every command line of the machine must not find the one of a test beside it.
PIN = f"canary-pin-{os.getpid()}"
WRONG_PIN = f"canary-wrong-{os.getpid()}"
SO_PIN = "test-so-pin"
_MODULES = (
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib64/pkcs11/libsofthsm2.so",
    "/usr/local/lib/softhsm/libsofthsm2.so",
    "/opt/homebrew/lib/softhsm/libsofthsm2.so",
)


@dataclass(frozen=True)
class SoftToken:
    """One token, labelled `label`, in `folder`; `environment` lets a process see it."""

    folder: Path
    module: str
    label: str = "bench"

    @property
    def environment(self) -> dict[str, str]:
        return {"SOFTHSM2_CONF": str(self.folder / "softhsm2.conf")}

    def initialize(self, label: str) -> None:
        """Make a token in the next free slot."""
        self._util("--init-token", "--free", "--label", label, "--so-pin", SO_PIN, "--pin", PIN)

    def import_key(self, file: Path, label: str = "ca", number: str = "01") -> None:
        """Put the private key in an unencrypted PKCS #8 file on the token."""
        self._util(
            *("--import", str(file), "--token", self.label, "--pin", PIN),
            *("--label", label, "--id", number),
        )

    def uri(self, query: str = "", /, **attributes: str) -> str:
        """Return the URI of the key `ca`; `attributes` replace what names it, `query` is added."""
        named = attributes or {"token": self.label, "object": "ca"}
        path = ";".join(f"{name}={quote(value)}" for name, value in named.items())
        return f"pkcs11:{path}?module-path={self.module}{query}"

    def configure(self, line: str) -> None:
        """Add a line to the configuration of SoftHSM."""
        with (self.folder / "softhsm2.conf").open("a") as conf:
            conf.write(f"{line}\n")

    def pull(self) -> None:
        """Take the token out, while a process may have a session with it."""
        for token in (self.folder / "tokens").iterdir():
            shutil.rmtree(token)

    def _util(self, *arguments: str) -> None:
        subprocess.run(
            ["softhsm2-util", *arguments],
            env={**os.environ, **self.environment},
            check=True,
            capture_output=True,
        )


@contextlib.contextmanager
def soft_token(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SoftToken]:
    """Make a token, and let this process and what it starts see it until the block ends."""
    pkcs11 = pytest.importorskip("pkcs11", reason="needs the extra: pip install 'cellagent[bench]'")
    module = next((path for path in _MODULES if Path(path).exists()), None)
    if module is None or shutil.which("softhsm2-util") is None:
        pytest.skip("needs a PKCS #11 token in software: apt-get install softhsm2")
    place = folder / "softhsm"
    (place / "tokens").mkdir(parents=True)
    token = SoftToken(place, module)
    token.configure(f"directories.tokendir = {place / 'tokens'}")
    token.configure("objectstore.backend = file")
    monkeypatch.setenv("SOFTHSM2_CONF", token.environment["SOFTHSM2_CONF"])
    token.initialize(token.label)
    try:
        yield token
    finally:
        # The next test of this process has another folder, which the module reads at its start.
        pkcs11.unload(module)


@dataclass(frozen=True)
class Spy:
    """OpenSC's spy between a program and the token: notes every call."""

    module: str
    log: Path
    environment: dict[str, str]

    def calls(self, function: str) -> int:
        """Return how often a function of the module was called."""
        noted = self.log.read_text(errors="replace")
        return len(re.findall(rf"^\d+: {function}$", noted, re.MULTILINE))


def spy_on(token: SoftToken) -> Spy:
    """Return a spy, to be named as the module instead of the token's own."""
    found = sorted(Path("/usr/lib").glob("*/pkcs11-spy.so"))
    if not found:
        pytest.skip("needs the PKCS #11 spy: apt-get install opensc-pkcs11")
    log = token.folder / "spy.log"
    return Spy(str(found[0]), log, {"PKCS11SPY": token.module, "PKCS11SPY_OUTPUT": str(log)})


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
