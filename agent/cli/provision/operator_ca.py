"""The operator's CA of a run, and the secrets that open its key, asked for where none is stored."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from agent.cli.framework.command import note
from agent.cli.framework.silent_terminal import typed_secret
from agent.config.pkcs11_uri import is_pkcs11, parse_pkcs11
from agent.config.secrets import SECRETS, Secret
from agent.errors import ConfigError, CredentialError, CredentialMissing, UsageError
from agent.files.paths import named_path
from agent.files.private_files import read_private
from agent.provisioning.ca.device_ca import DeviceCa, require_key
from agent.provisioning.planning.goal import CertificateSource, Goal

if TYPE_CHECKING:
    from agent.config.load import Configuration
    from agent.config.pkcs11_uri import Pkcs11Uri
    from agent.provisioning.ca.token import AskPin, Pin


def load_operator_ca(goal: Goal, configuration: Configuration) -> DeviceCa | None:
    """Return the operator's CA, None where it signs no certificates.

    May ask for a PIN or a passphrase on the terminal; call it outside of an event loop, where
    Ctrl-C ends the question. Raises UsageError, CredentialError.
    """
    if goal.certificate is not CertificateSource.OPERATOR_CA:
        return None
    profile = configuration.profile.provisioning
    file, key = named_path(profile.device_ca_file), profile.device_ca_key_file
    if is_pkcs11(key):
        uri = parse_pkcs11(key, "provisioning.device_ca_key_file")
        authority = DeviceCa.on_token(file, uri, asking_pin(configuration, uri))
    else:
        try:
            authority = DeviceCa.load(file, named_path(key), partial(_passphrase, configuration))
        except CredentialError as error:
            stored = configuration.secrets.replacing("device_ca_passphrase", unattended=False)
            error.hint = stored or error.hint  # one that is stored is not asked for
            raise
    if shortened := authority.shortens(datetime.now(UTC), goal.certificate_life):
        note(shortened)
    return authority


def require_operator_ca(goal: Goal, configuration: Configuration) -> None:
    """Check the files of the operator's CA, and ask nobody. Raises UsageError."""
    profile = configuration.profile.provisioning
    key = profile.device_ca_key_file
    if goal.certificate is CertificateSource.OPERATOR_CA and not is_pkcs11(key):
        require_key(named_path(profile.device_ca_file), named_path(key))


def _passphrase(configuration: Configuration) -> str:
    stored = configuration.secrets.get("device_ca_passphrase")
    secret = stored or _ask_secret(
        "the device CA's key is encrypted",
        "passphrase of the device CA's key: ",
        "device_ca_passphrase",
    )
    return secret.reveal()


def new_passphrase(configuration: Configuration) -> str:
    """Return the passphrase of a key that is about to be made: the stored one, else typed twice.

    Raises CredentialMissing, UsageError.
    """
    name = "device_ca_passphrase"
    if stored := configuration.secrets.get(name):
        return stored.reveal()
    why = "the CA's key is to be encrypted"
    first = _ask_secret(why, "new passphrase of the CA's key: ", name).reveal()
    if first != _ask_secret(why, "the same again: ", name).reveal():
        raise UsageError("the two passphrases differ: nothing was made")
    return first


def asking_pin(configuration: Configuration, uri: Pkcs11Uri) -> AskPin:
    """Return what gives the PIN of the token of a URI; it may ask for it on the terminal."""
    return partial(_pin, configuration, uri.pin_file)


def _pin(configuration: Configuration, pin_file: str, token: str) -> Pin:
    """Return the PIN of a token: a stored secret takes precedence over the PIN file."""
    from agent.provisioning.ca.token import Pin  # needs the extra bench

    if stored := configuration.secrets.get("device_ca_pin"):
        origin = configuration.secrets.origin("device_ca_pin")
        return Pin(stored, f"from {origin.where if origin else 'the secrets'}")
    if pin_file:
        path = named_path(pin_file)
        pin = read_private(path, "pin-source").rstrip("\r\n")
        if not pin:
            raise ConfigError(f"pin-source: {path} is empty")
        return Pin(Secret(pin), f"from {path}")
    typed = _ask_secret(
        f"the token {token} wants its PIN", f"PIN of the token {token}: ", "device_ca_pin"
    )
    return Pin(typed, "that was typed", typed=True)


def _ask_secret(why: str, prompt: str, name: str) -> Secret:
    """Ask for a secret on the terminal. Raises CredentialMissing if none is typed."""
    keeps = f"`cellagent config set {name}` keeps it, or set {SECRETS[name].variable}"
    if not sys.stdin.isatty():
        raise CredentialMissing(f"{why}, and nobody is there to ask", hint=keeps)
    if not (answer := typed_secret(prompt)):
        raise CredentialMissing(f"{why}, and nothing was typed", hint=keeps)
    return Secret(answer)
