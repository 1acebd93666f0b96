"""Changes the configuration and the secrets file; comments and other keys are kept."""

import os
import re
import shlex
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, get_args, get_origin

from agent.config.kits import require_free
from agent.config.load import merged, profile_table, read_config
from agent.config.nearest import nearest_key
from agent.config.parse import all_keys, key_path, key_type, profile_from, setting_of
from agent.config.profile import Profile
from agent.config.secrets import SECRETS, read_secrets_file, secrets_table, usable_secret
from agent.config.urls import is_loopback_url
from agent.errors import ConfigError, RefusedByRule, UsageError
from agent.files.paths import config_file, is_there, named_path, secrets_file
from agent.files.private_files import read_plain, sole_writer, write_private

_UNITS: Mapping[str, Mapping[str, float]] = {
    "_s": {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400},
    "_bytes": {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 1e3, "MB": 1e6},
    "_m": {"m": 1, "km": 1000},
    "_mv": {"mV": 1, "V": 1000},
}
"""The end of a key that says its unit -> what the units that a person may write are of it."""

_BASE = "standin"


def write_profile(
    name: str, values: Mapping[str, object], secrets: Mapping[str, str], *, file: Path | None = None
) -> Path:
    """Set these values and secrets of a stand-in's profile; what else is set there stays.

    `values` are the profile's sections ({"hosts": {"api": ...}, ...}), `secrets` keys of SECRETS.
    Return the file; it and that of the secrets are 0600. Raises ConfigError before anything is
    written, UsageError without a name, RefusedByRule where the profile is one for other services:
    their addresses and secrets would be lost.
    """
    if not name:  # whoever is told to use it uses the one of the file, maybe of other services
        raise UsageError("a profile without a name is used by nobody", hint="name it, as standin")
    file = file or config_file()
    own = profile_table(name, read_config(file), file) or {}
    _require_same_services(name, own, secrets_table(secrets_file(file), name), secrets)
    whole = merged(own, values)
    whole.pop("base", None)
    profile_from(whole, f"profiles.{name}")
    for key in secrets:
        if key not in SECRETS:
            raise ConfigError(f"there is no secret {key!r}")
    _edit(secrets_file(file), [name], dict(secrets))
    _edit(file, ["profiles", name], {"base": _BASE, **values})
    return file


def _require_same_services(
    name: str, own: Mapping[str, object], kept: Mapping[str, object], secrets: Mapping[str, str]
) -> None:
    """Raise RefusedByRule for a profile that holds another service's addresses or secrets."""
    if own.get("base") == _BASE:
        return
    urls = own.get("hosts")
    hold = [
        f"hosts.{key} = {url}"
        for key, url in (urls.items() if isinstance(urls, dict) else ())
        if "://" in str(url) and not is_loopback_url(str(url))
    ]
    hold += [f"the secret {key}" for key in sorted(kept.keys() & secrets.keys())]
    hold += [f"base = {own['base']}"] if "base" in own else []
    if hold:
        raise RefusedByRule(
            f"profile {name} is one for other services, which would be lost: {', '.join(hold)}",
            hint=f"choose another name, as {name}-standin",
        )


def unset_value(key: str, *, profile: str) -> bool:
    """Remove one key, or a whole section, of a profile from the file; return whether it was there.

    Raises ConfigError for what is no key.
    """
    file = config_file()
    table: object = dict(profile_table(profile, read_config(file), file) or {})
    *above, last = path = key_path(key)
    for part in above:
        table = table.get(part) if isinstance(table, dict) else None
    if not isinstance(table, dict) or last not in table:
        if key not in Profile.__struct_fields__:
            key_type(key)
        return False
    _edit(file, ["profiles", profile, *path], None)
    return True


def set_value(key: str, text: str, *, profile: str) -> object:
    """Set one key of a profile from its text form; return the value written. Raises ConfigError.

    A list is written with commas between its items. The whole profile is checked first.
    """
    file = config_file()
    _require_no_secret(key, key.rpartition(".")[2])
    try:
        kind = key_type(key)
    except ConfigError:
        # A secret, mistyped: the key that is nearest else would show it, or keep it in the open.
        _require_no_secret(key, nearest_key(key, [*all_keys(), *SECRETS]))
        raise
    if get_origin(kind) is dict:
        raise UsageError(
            f"{key} is a table: each of its values has a name", hint=setting_of(key, kind)
        )
    value, path = _parsed(kind, text, key), key_path(key)
    own = profile_table(profile, read_config(file), file) or {}
    changed = value
    for part in reversed(path):
        changed = {part: changed}
    assert isinstance(changed, dict)
    whole = {name: each for name, each in merged(own, changed).items() if name != "base"}
    whole_profile = profile_from(whole, f"{file}: profiles.{profile}")
    if path[0] == "kits":
        require_free(whole_profile.kits, *path[1:])
    for meta in getattr(kind, "__metadata__", ()) if text else ():
        extra = meta.extra or {}
        if mark := extra.get("holds"):
            _require_file_with(mark, text, key, f"{text} is not {meta.description}")
        if before := re.match(extra.get("path_after", "(?!)"), text):
            value = before[0] + _from_anywhere(text[before.end() :])
    _edit(file, ["profiles", profile, *path], value)
    return value


def _from_anywhere(path: str) -> str:
    """Return a path that leads to the same place from any folder; a URI stays as it is."""
    return path if "://" in path or path.startswith(("~", "pkcs11:")) else os.path.abspath(path)  # noqa: PTH100 - not what a link leads to


def _require_no_secret(key: str, name: str) -> None:
    if name in SECRETS:
        raise UsageError(
            f"{key} is a secret: it is no argument of a command",
            hint=f"`cellagent config set {name}` reads it from standard input",
        )


def _require_file_with(mark: str, path: str, key: str, wrong: str) -> None:
    file = named_path(path)
    content = read_plain(file, key)
    if mark.encode() not in content:
        raise ConfigError(
            f"{key}: {wrong}: it has no line that begins with {mark}", hint=_der_hint(file, content)
        )


def _der_hint(file: Path, content: bytes) -> str:
    """Return how a certificate that Windows gave out in DER becomes PEM, "" for another file."""
    from cryptography.x509 import load_der_x509_certificate

    try:
        load_der_x509_certificate(content)
    except ValueError:
        return ""
    made = ["-in", str(file), "-out", f"{file}.pem"]
    return f"`{shlex.join(['openssl', 'x509', '-inform', 'DER', *made])}` writes it in PEM"


def set_default_profile(name: str) -> None:
    """Make `name` the profile that is used when none is named."""
    _edit(config_file(), ["profile"], name)


def set_secret(name: str, value: str, *, profile: str, file: Path | None = None) -> Path:
    """Store one secret in the 0600 file; return its path. Raises ConfigError."""
    path = secrets_file(file or config_file())
    if name not in SECRETS:
        raise ConfigError(f"there is no secret {name!r}")
    usable_secret(value, SECRETS[name], name)  # else the one that is kept would be lost
    read_secrets_file(path)  # one that others can read is not added to
    _edit(path, [profile, name], value)
    return path


def drop_secret(name: str, *, profile: str, file: Path | None = None) -> bool:
    """Remove one secret from the file; return whether it was there. Raises ConfigError."""
    path = secrets_file(file or config_file())
    if name not in secrets_table(path, profile):
        return False
    _edit(path, [profile, name], None)
    return True


def _edit(file: Path, keys: list[str], value: object) -> None:
    """Set one dotted key in a TOML file, None to remove it, and replace the file as one step."""
    with sole_writer(file):
        _change(file, keys, value)


def _change(file: Path, keys: list[str], value: object) -> None:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        there = read_plain(file, "the configuration").decode("utf-8-sig") if is_there(file) else ""
        document = tomlkit.parse(there)
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}") from error
    table: MutableMapping[str, Any] = document
    *sections, last = keys
    for depth, section in enumerate(sections):
        if section not in table:
            # Tables that hold only tables need no header of their own.
            table[section] = tomlkit.table(is_super_table=depth < len(sections) - 1)
        table = table[section]
        if not isinstance(table, MutableMapping):
            raise ConfigError(f"{file}: {'.'.join(keys[: depth + 1])} is not a table")
    if value is None:
        del table[last]
    else:
        _update(table, {last: value})
    write_private(file, tomlkit.dumps(document).encode("utf-8"))


def _update(table: MutableMapping[str, Any], values: Mapping[str, object]) -> None:
    """Set the values of a table and of those in it; other keys, and comments, stay."""
    for key, value in values.items():
        below = table.get(key)
        if isinstance(value, Mapping) and isinstance(below, MutableMapping):
            _update(below, value)
        else:
            table[key] = value


def _parsed(kind: object, text: str, key: str) -> object:
    """Return `text` as a value of the key's type. Raises ConfigError."""
    args = get_args(kind)
    if get_origin(kind) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if args and all(isinstance(arg, str) for arg in args):
        return text
    plain = args[0] if args and isinstance(args[0], type) else kind
    if plain is bool:
        words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        if text.lower() not in words:
            raise ConfigError(
                f"{key}: {text!r} is neither true nor false", hint="write true or false"
            )
        return words[text.lower()]
    return _number(plain, text, key) if plain in {int, float} else text


def _number(kind: type[int] | type[float], text: str, key: str) -> float:
    """Return a number of a key; where its name ends with a unit, the text may have another."""
    units = next((units for end, units in _UNITS.items() if key.endswith(end)), {})
    match = re.fullmatch(r"(-?[0-9.]+(?:e[0-9]+)?) ?([A-Za-z]*)", text.strip())
    try:
        if match is None or (match[2] and match[2] not in units):
            raise ValueError(text)
        return kind(float(match[1]) * units[match[2]] if match[2] else kind(match[1]))
    except (ValueError, OverflowError):  # 1e400 MiB is no whole number
        what = "a whole number" if kind is int else "a number"
        hint = f"{what}, or one with a unit: {', '.join(units)}" if units else f"it must be {what}"
        raise ConfigError(f"{key}: {text!r} is no number", hint=hint) from None
