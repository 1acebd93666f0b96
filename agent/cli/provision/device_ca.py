"""Where the bench's commands get the operator's CA, and what opens its key."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import ConfigError, CredentialMissing

if TYPE_CHECKING:
    from agent.config.load import Configuration
    from agent.config.secrets import Secret
    from agent.provisioning.device_ca import DeviceCa
    from agent.provisioning.goal import Goal
    from agent.provisioning.token.pin import Pin


def device_ca(goal: Goal, configuration: Configuration) -> DeviceCa | None:
    """Return the operator's CA where certificates are to be signed by it.

    It may ask a question on the terminal: not from within an event loop, which Ctrl-C would not
    reach. Raises UsageError, CredentialError.
    """
    from agent.config.pkcs11_uri import is_pkcs11, parse_pkcs11
    from agent.provisioning.device_ca import DeviceCa
    from agent.provisioning.goal import Certificate

    if goal.certificate is not Certificate.OPERATOR_CA:
        return None
    profile = configuration.profile.provisioning
    file, key = Path(profile.device_ca_file).expanduser(), profile.device_ca_key_file
    if is_pkcs11(key):
        uri = parse_pkcs11(key, "provisioning.device_ca_key_file")
        authority = DeviceCa.on_token(file, uri, partial(_pin, configuration, uri.pin_file))
    else:
        authority = DeviceCa.load(file, Path(key).expanduser(), partial(_passphrase, configuration))
    authority.require_valid(datetime.now(UTC))
    return authority


def _passphrase(configuration: Configuration) -> str:
    stored = configuration.secrets.get("device_ca_passphrase")
    secret = stored or _typed(
        "the device CA's key is encrypted",
        "passphrase of the device CA's key: ",
        "CELLAGENT_DEVICE_CA_PASSPHRASE",
    )
    return secret.reveal()


def _pin(configuration: Configuration, pin_file: str, token: str) -> Pin:
    """Return the PIN of a token: the environment goes before a file, as everywhere."""
    from agent.config.private_files import read_private
    from agent.config.secrets import Secret
    from agent.provisioning.token.pin import Pin

    if stored := configuration.secrets.get("device_ca_pin"):
        origin = configuration.secrets.origin("device_ca_pin")
        return Pin(stored, f"from {origin.where if origin else 'the secrets'}")
    if pin_file:
        path = Path(pin_file).expanduser()
        pin = read_private(path, "pin-source").rstrip("\r\n")
        if not pin:
            raise ConfigError(f"pin-source: {path} is empty")
        return Pin(Secret(pin), f"from {path}")
    typed = _typed(
        f"the token {token} wants its PIN", f"PIN of the token {token}: ", "CELLAGENT_DEVICE_CA_PIN"
    )
    return Pin(typed, "that was typed", typed=True)


def _typed(why: str, prompt: str, variable: str) -> Secret:
    """Ask for a secret on the terminal. Raises CredentialMissing where nobody gives one."""
    import getpass
    import sys

    from agent.config.secrets import Secret

    if not sys.stdin.isatty():
        raise CredentialMissing(f"{why}, and nobody is there to ask", hint=f"set {variable}")
    try:
        answer = getpass.getpass(prompt)
    except EOFError:
        answer = ""
    if not answer:
        raise CredentialMissing(f"{why}, and nothing was typed", hint=f"set {variable}")
    return Secret(answer)
