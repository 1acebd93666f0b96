"""Loads a configuration: flags take precedence over environment, file, built-in, default."""

import functools
import os
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent.config.kits import port_of
from agent.config.nearest import nearest
from agent.config.parse import leaves, profile_from, set_keys
from agent.config.profile import OF_ONE_KIT, OLDER_SECTIONS, KitSettings, Profile
from agent.config.secrets import Origin, Secrets, advice_if_secret
from agent.errors import ConfigError
from agent.files.paths import config_file, is_there, secrets_file, state_dir
from agent.files.private_files import MAX_BYTES, require_trusted_config
from at.ports.usb import same_kit, same_port, system_ports

NEUTRAL = "custom"

BUILT_IN: Mapping[str, Mapping[str, object]] = {
    # The names of the contract, no host: what a profile of one's own starts from.
    NEUTRAL: {},
    # `cellagent cloud serve --write-profile NAME` fills in the URLs of the one that runs.
    "standin": {
        "account": {"project_key_header": "Service-Project-Key"},
        "fota": {"hosts": ["127.0.0.1"]},
    },
    # The real services: complete but for the user's slugs, email and secrets.
    "public": {
        "hosts": {
            "device_cloud": "https://api.nrfcloud.com",
            "provisioning": "https://api.provisioning.nrfcloud.com",
            "api": "https://api.memfault.com",
            "chunks": "https://chunks.memfault.com",
            "ingress": "https://ingress.memfault.com",
            "files": "https://files.memfault.com",
        },
        "account": {"project_key_header": "Memfault-Project-Key"},
        "fota": {"hosts": ["firmware.nrfcloud.com", "bundles.nrfcloud.com"]},
    },
}


class Configuration(Struct, frozen=True):
    """One complete profile, with the origin of each value."""

    name: str
    name_origin: Origin
    profile: Profile
    origins: Mapping[str, Origin]
    """Dotted key -> its source; every key of the profile is there."""
    secrets: Secrets
    file: Path
    state_dir: Path


def load(
    profile: str | None = None, *, port: str | None = None, environ: Mapping[str, str] | None = None
) -> Configuration:
    """Return the configuration that a command runs with. Raises ConfigError.

    `profile` and `port` are the command line's; `environ` is the process's unless given. A port may
    be told by the name of its kit in the profile's table.
    """
    environ = os.environ if environ is None else environ
    file = config_file(environ)
    if environ.get("CELLAGENT_CONFIG") and not is_there(file):
        raise ConfigError(
            f"CELLAGENT_CONFIG names {file}, which does not exist",
            hint="`unset CELLAGENT_CONFIG` returns to the usual file; "
            "`cellagent config set KEY VALUE` makes this one",
        )
    document = read_config(file)
    name, name_origin = _name(profile, environ, document, file)
    own, base = _tables(name, document, file, name_origin)
    table = merged(BUILT_IN[base], own)
    origins: dict[str, Origin] = dict.fromkeys(
        set_keys(BUILT_IN[base]), Origin("built-in", f"profile {base}")
    )
    for key in set_keys(own):
        origins[key] = Origin("file", f"{file}: profiles.{name}.{key}")
    for key, section in OLDER_SECTIONS.items():
        if (old := f"{section}.{key}") in origins:
            origins.setdefault(f"kit.{key}", origins[old])
    complete = profile_from(table, f"{file}: profiles.{name}" if own else f"profile {name}")
    for name_of_kit, kit in complete.kits.items():
        for key in KitSettings.__struct_fields__:
            if f"kit.{key}" in origins and getattr(kit, key) == getattr(complete.kit, key):
                origins.setdefault(f"kits.{name_of_kit}.{key}", origins[f"kit.{key}"])
    if named := port or environ.get("CELLAGENT_PORT"):
        chosen_by = Origin("flag", "--port") if port else Origin("environment", "CELLAGENT_PORT")
        before, complete = dict(leaves(complete)), _on_port(complete, port_of(complete, named))
        for key, value in leaves(complete):
            if value != before[key]:
                origins[key] = chosen_by if key.endswith(".port") else Origin("default")
        origins["kit.port"] = chosen_by
    return Configuration(
        name=name,
        name_origin=name_origin,
        profile=complete,
        origins={key: origins.get(key, Origin("default")) for key, _ in leaves(complete)},
        secrets=Secrets(
            name, secrets_file(file), environ=environ, use_keyring=complete.credentials.keyring
        ),
        file=file,
        state_dir=state_dir(environ),
    )


def _on_port(profile: Profile, port: str) -> Profile:
    """Return the profile with a port that was named elsewhere; a kit with one of its own keeps it.

    Where it is another kit's than `kit.port`, what was set for that one is not said of it. What
    opens the port says what is wrong with it.
    """
    own, fota = profile.kit.port, profile.fota
    changes: dict[str, object] = {"port": port}
    listing = functools.cache(system_ports)  # once for all of them
    kits = {name: kit for name, kit in profile.kits.items() if same_port(kit.port, own, listing)}
    others = [kit for name, kit in profile.kits.items() if name not in kits]
    is_theirs = any(same_port(kit.port, port, listing) for kit in others)
    if is_theirs:
        kits = {}
    if own and not same_kit(own, port, listing):
        by_mcuboot = any(kit.mcuboot_port for kit in (profile.kit, *kits.values()))
        if by_mcuboot and not is_theirs and fota.installer == "auto" and not fota.command:
            fota = replace(fota, installer="mcuboot")  # it says what it lacks
        unset = KitSettings()
        changes |= {key: getattr(unset, key) for key in OF_ONE_KIT}
    moved = {name: replace(kit, **changes) for name, kit in kits.items()}
    kit, kits = replace(profile.kit, **changes), profile.kits | moved
    return replace(profile, kit=kit, kits=kits, fota=fota)


def profile_name(flag: str | None = None, document: Mapping[str, object] | None = None) -> str:
    """Return the name of the profile in use, which need not exist yet. Raises ConfigError.

    `document` is the content of the file, if it was read before.
    """
    file = config_file()
    return _name(flag, os.environ, read_config(file) if document is None else document, file)[0]


def profile_names(document: Mapping[str, object]) -> list[str]:
    """Return the names of all profiles: of the file, then those that are built in."""
    return list(dict.fromkeys([*_profiles(document), *BUILT_IN]))


def read_config(file: Path) -> dict[str, object]:
    """Return the tables of a configuration file, {} if there is none. Raises ConfigError."""
    try:
        with file.open("rb") as opened:
            require_trusted_config(file, "the configuration", os.fstat(opened.fileno()))
            content = opened.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read {file} ({error.strerror})") from error
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{file} is larger than {MAX_BYTES} bytes")
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        moved = shlex.join(["mv", str(file), f"{file}.wrong"])
        why = "no text in UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise ConfigError(
            f"{file} is not TOML: {why}", hint=f"correct it, or begin anew: `{moved}`"
        ) from error
    for key in document:
        if key not in {"profile", "profiles"}:
            hint = advice_if_secret(key) or nearest(key, ("profile", "profiles"))
            raise ConfigError(f"{file}: there is no key {key!r}", hint=hint)
    if not isinstance(document.get("profiles", {}), dict):
        raise ConfigError(f"{file}: `profiles` is not a table", hint="write [profiles.NAME]")
    return document


def merged(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Return both tables in one; where both have a key, `above` wins."""
    result = dict(below)
    for key, value in above.items():
        lower = result.get(key)
        if isinstance(value, dict) and isinstance(lower, dict):
            result[key] = merged(lower, value)
        else:
            result[key] = value
    return result


def profile_table(
    name: str, document: Mapping[str, object], file: Path
) -> dict[str, object] | None:
    """Return the own table of a profile, None where the file has none. Raises ConfigError."""
    own = _profiles(document).get(name)
    if own is not None and not isinstance(own, dict):
        raise ConfigError(f"{file}: profiles.{name} is not a table")
    return own


def _profiles(document: Mapping[str, object]) -> Mapping[str, object]:
    found = document.get("profiles", {})
    return found if isinstance(found, dict) else {}


def _name(
    flag: str | None, environ: Mapping[str, str], document: Mapping[str, object], file: Path
) -> tuple[str, Origin]:
    if flag:
        return flag, Origin("flag", "--profile")
    if name := environ.get("CELLAGENT_PROFILE"):
        return name, Origin("environment", "CELLAGENT_PROFILE")
    chosen = document.get("profile")
    if chosen is None:
        return NEUTRAL, Origin("default")
    if not isinstance(chosen, str):
        raise ConfigError(f"{file}: `profile` is not a text")
    return chosen, Origin("file", f"{file}: profile")


_NAMED_AGAIN = {
    "environment": "`export CELLAGENT_PROFILE={}`",
    "file": "`cellagent config use {}`",
    "flag": "{!r}",
}
"""How a profile is named in the place that names one that is not there."""


def _tables(
    name: str, document: Mapping[str, object], file: Path, named: Origin
) -> tuple[dict[str, object], str]:
    """Return the profile's own table, and the name of the built-in that it starts from."""
    own = profile_table(name, document, file)
    if own is None:
        if name not in BUILT_IN:
            raise ConfigError(
                f"there is no profile {name!r} in {file}",
                hint=nearest(name, profile_names(document), _NAMED_AGAIN[named.kind]),
            )
        return {}, name
    return {key: value for key, value in own.items() if key != "base"}, base_of(name, own, file)


def base_of(name: str, own: Mapping[str, object] | None, file: Path) -> str:
    """Return the built-in profile that a profile starts from. Raises ConfigError."""
    base = (own or {}).get("base", name if name in BUILT_IN else NEUTRAL)
    if not isinstance(base, str) or base not in BUILT_IN:
        raise ConfigError(
            f"{file}: profiles.{name}.base: there is no built-in profile {base!r}",
            hint=nearest(str(base), BUILT_IN),
        )
    return base
