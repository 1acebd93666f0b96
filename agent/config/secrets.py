"""Looks up secrets: in the environment, systemd credentials, a 0600 file, a keyring.

A secret is never an argument of a command, never printed, never a key of a profile.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Literal, NoReturn

from msgspec import Struct

from agent.config.nearest import nearest
from agent.errors import ConfigError
from agent.extras import require
from agent.files.paths import is_there
from agent.files.private_files import read_private
from agent.redact import HIDDEN, MIN_LENGTH, hide


class Origin(Struct, frozen=True):
    """The source of a value, in order of precedence: flag, environment, file, built-in, default.

    Secrets also come from "credentials" (systemd) and from a "keyring". `where` is the option,
    the variable, or file and key.
    """

    kind: Literal["flag", "environment", "credentials", "file", "keyring", "built-in", "default"]
    where: str = ""


# What may stand in an HTTP header: visible ASCII. A line break would start another header.
_ONE_LINE = re.compile(r"[\x21-\x7e]+")


class Secret:
    """A secret text. Its repr, str and format hide it, it cannot be pickled, logs redact it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        hide(value)

    @classmethod
    def one_line(cls, value: str, what: str) -> Secret:
        """Return a secret that fits a header. Raises ConfigError, naming `what`, not the value."""
        if not _ONE_LINE.fullmatch(value):
            raise ConfigError(
                f"{what} holds a space, a line break or a character that is not ASCII",
                hint="it may have been cut or joined when it was copied: copy it again",
            )
        if len(value) < MIN_LENGTH:
            raise ConfigError(f"{what} is shorter than {MIN_LENGTH} characters")
        return cls(value)

    def reveal(self) -> str:
        """Return the value, for the code that sends it or signs with it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


class SecretName(Struct, frozen=True):
    """One kind of secret: its variable, its purpose, and whether it is sent in a header."""

    variable: str
    about: str
    one_line: bool = True


SECRETS: Mapping[str, SecretName] = {
    "api_key": SecretName("CELLAGENT_API_KEY", "API key of the device cloud"),
    "organization_token": SecretName("CELLAGENT_ORG_TOKEN", "organization auth token"),
    "project_key": SecretName("CELLAGENT_PROJECT_KEY", "project key, for pushing data"),
    "modem_project_key": SecretName(
        "CELLAGENT_MODEM_PROJECT_KEY", "project key of the project with the modem's releases"
    ),
    "user_api_key": SecretName("CELLAGENT_USER_API_KEY", "user API key, with account.email"),
    "user_password": SecretName(
        "CELLAGENT_USER_PASSWORD", "password, with account.email", one_line=False
    ),
    "service_token": SecretName("CELLAGENT_SERVICE_TOKEN", "deprecated service token (location)"),
    "evaluation_token": SecretName(
        "CELLAGENT_EVALUATION_TOKEN", "deprecated evaluation token (location)"
    ),
    "control_token": SecretName("CELLAGENT_CONTROL_TOKEN", "control of the stand-in"),
    "device_ca_passphrase": SecretName(
        "CELLAGENT_DEVICE_CA_PASSPHRASE",
        "passphrase of provisioning.device_ca_key_file",
        one_line=False,
    ),
    "device_ca_pin": SecretName(
        "CELLAGENT_DEVICE_CA_PIN", "PIN of the token that holds the device CA's key", one_line=False
    ),
    "ledger_password": SecretName(
        "CELLAGENT_LEDGER_PASSWORD", "password of provisioning.ledger", one_line=False
    ),
}
"""Name in the secrets file -> what it is."""
_CREDENTIAL = "cellagent."
"""How the names of systemd's credentials begin that are ours: beside them may be others."""


class Secrets:
    """The secrets of one profile, each looked up when it is asked for."""

    def __init__(
        self, profile: str, file: Path, *, environ: Mapping[str, str], use_keyring: bool = False
    ) -> None:
        self.profile = profile
        self.file = file
        self._environ = environ
        self._use_keyring = use_keyring

    def get(self, name: str) -> Secret | None:
        """Return the secret called `name` (a key of SECRETS), None where no source has it.

        Raises ConfigError where a source has it and it cannot be used.
        """
        secret_and_origin = self._find(name)
        return secret_and_origin[0] if secret_and_origin else None

    def origin(self, name: str) -> Origin | None:
        """Return the source that `get` takes the secret from, None if there is none."""
        secret_and_origin = self._find(name)
        return secret_and_origin[1] if secret_and_origin else None

    def preceding(self, name: str, *, in_keyring: bool = False) -> Origin | None:
        """Return the source that takes precedence over the file, or the keyring; None if none."""
        origin = self.origin(name)
        before = ("environment", "credentials", "file")[: 3 if in_keyring else 2]
        return origin if origin is not None and origin.kind in before else None

    def replacing(self, name: str, *, unattended: bool) -> str:
        """Return where a secret that was refused came from, and how it is replaced.

        `unattended`: for an agent that runs, and reads it again at a reload.
        """
        origin = self.origin(name)
        return "" if origin is None else self._replaced(name, origin, unattended=unattended)

    def _replaced(self, name: str, origin: Origin, *, unattended: bool) -> str:
        reload = ", then `cellagent reload`" if unattended else ""
        # The agent adds its own profile.
        profile = "" if unattended else f" --profile {shlex.quote(self.profile)}"
        match origin.kind:
            case "environment":
                again = ", then start `cellagent run` again" if unattended else ""
                return f"{name} is of the environment: set {origin.where} to a valid one{again}"
            case "credentials":
                return f"{name} is systemd's {origin.where}: replace it, then restart the service"
            case "keyring":
                command = f"keyring set cellagent {shlex.quote(origin.where)}"
            case _:
                command = f"cellagent config set {name}{profile}"
        return f"{name} is of {origin.where}: replace it with `{command}`{reload}"

    def _find(self, name: str) -> tuple[Secret, Origin] | None:
        known = SECRETS[name]
        value, origin = self._source(name, known) or ("", None)
        value = value.rstrip("\r\n")  # that editors add
        if origin is not None and origin.kind == "credentials" and not value:
            raise ConfigError(
                f"the credential {origin.where} is empty",
                hint=self._replaced(name, origin, unattended=False),
            )
        if not value or origin is None:
            return None
        try:
            return usable_secret(value, known, f"{known.about} ({origin.where})"), origin
        except ConfigError as error:
            error.hint = self._replaced(name, origin, unattended=False)
            raise

    def _source(self, name: str, known: SecretName) -> tuple[str, Origin] | None:
        """Return the value as the first source has it. Raises ConfigError."""
        if value := self._environ.get(known.variable):
            return value, Origin("environment", known.variable)
        if credential := self._credentials.get(name):
            # The folder is systemd's, private to the service: no mode to check.
            origin = Origin("credentials", credential.name)
            try:
                return credential.read_text(encoding="utf-8"), origin
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(
                    f"cannot read the credential {credential.name}",
                    hint=self._replaced(name, origin, unattended=False),
                ) from error
        stored = self._file_table.get(name)
        if stored is not None:
            if not isinstance(stored, str):
                raise ConfigError(f"{self.file}: {self.profile}.{name} is not a text")
            return stored, Origin("file", f"{self.file}: {self.profile}.{name}")
        if self._use_keyring and (value := _from_keyring(f"{self.profile}:{name}")):
            return value, Origin("keyring", f"{self.profile}:{name}")
        return None

    @cached_property
    def _credentials(self) -> Mapping[str, Path]:
        """Return the files of the secrets that systemd gives. Raises ConfigError for another."""
        folder = self._environ.get("CREDENTIALS_DIRECTORY")
        named = Path(folder).glob(f"{_CREDENTIAL}*") if folder else ()
        files = {file.name.removeprefix(_CREDENTIAL): file for file in named}
        for name in files.keys() - SECRETS.keys():
            raise ConfigError(
                f"there is no secret {name}, which the credential {_CREDENTIAL}{name} names",
                hint=nearest(name, SECRETS, f"{_CREDENTIAL}{{}}"),
            )
        return files

    @cached_property
    def _file_table(self) -> Mapping[str, object]:
        table = secrets_table(self.file, self.profile)
        for key in table:
            if key not in SECRETS:
                raise ConfigError(
                    f"{self.file}: there is no secret {self.profile}.{key}",
                    hint=nearest(key, SECRETS),
                )
        return table


def advice_if_secret(key: str) -> str:
    """Return what to do with a secret that stands in the profiles' file; "" for another key."""
    if key not in SECRETS:
        return ""
    return (
        f"it is a secret, and this file is none: take it out; then `cellagent config set {key}` "
        "asks for it"
    )


def read_secrets_file(path: Path) -> dict[str, object]:
    """Return the tables of a secrets file by profile, {} if there is none. Raises ConfigError."""
    if not is_there(path):
        return {}
    try:
        return tomllib.loads(read_private(path, "secrets"))
    except tomllib.TOMLDecodeError as error:
        # The parser's text gives a position, never the line itself.
        raise ConfigError(f"{path} is not TOML: {error}") from error


def secrets_table(path: Path, profile: str) -> dict[str, object]:
    """Return a profile's table of a secrets file, {} if there is none. Raises ConfigError."""
    table = read_secrets_file(path).get(profile, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {profile} is not a table")
    return table


def usable_secret(value: str, known: SecretName, what: str) -> Secret:
    """Return a text as a secret of that kind. Raises ConfigError, naming `what`, not the value."""
    return Secret.one_line(value, what) if known.one_line else Secret(value)


def keep_in_keyring(name: str, value: str) -> None:
    """Store a secret in the keyring. Raises ConfigError."""
    with _desktop_keyring() as keyring:
        keyring.set_password("cellagent", name, value)
        kept = keyring.get_password("cellagent", name)
    if kept != value:
        raise _unusable("it does not keep what it is given")


def drop_from_keyring(name: str) -> None:
    """Remove a secret from the keyring, if it is there. Raises ConfigError."""
    with _desktop_keyring() as keyring:
        if keyring.get_password("cellagent", name) is not None:
            keyring.delete_password("cellagent", name)


def _unusable(error: Exception | str) -> ConfigError:
    return ConfigError(
        f"the keyring cannot be used: {error}",
        hint="a machine without a desktop has none: `cellagent config unset credentials.keyring`; "
        "`cellagent login` without --keyring keeps secrets in the 0600 file",
    )


def _from_keyring(name: str) -> str | None:
    with _desktop_keyring() as keyring:
        found: str | None = keyring.get_password("cellagent", name)
    return found


@contextmanager
def _desktop_keyring() -> Iterator[ModuleType]:
    """Give the library to ask in the block. Raises ConfigError where it cannot be used."""
    require("credentials.keyring", "keyring")
    import keyring
    import keyring.errors

    try:
        yield keyring
    except keyring.errors.KeyringError as error:
        raise _unusable(error) from error
