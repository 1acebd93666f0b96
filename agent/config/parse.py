"""Reads a profile from TOML tables, and names its keys: an error names the nearest one."""

import functools
import re
from collections.abc import Iterator, Mapping
from typing import TypeGuard, get_args, get_origin, get_type_hints

import msgspec

from agent.config.nearest import nearest, nearest_key
from agent.config.pkcs11_uri import is_pkcs11, parse_pkcs11
from agent.config.profile import (
    OF_ONE_KIT,
    OLDER_SECTIONS,
    HostSettings,
    KitSettings,
    Profile,
    Section,
)
from agent.config.secrets import advice_if_secret
from agent.config.urls import check_base_url
from agent.config.value_types import ServiceUrl
from agent.errors import ConfigError
from at.ports.usb import Listing, same_port, system_ports

_AT = re.compile(r" - at `\$\.?([^`]*)`$")


_IN_WORDS = {
    "Expected `int`": "it must be a whole number",
    "Expected `float`": "it must be a number",
    "Expected `bool`": "it must be true or false",
    "Expected `str`": "it must be a text",
    "Expected `array`": "it must be a list",
    "Expected `object`": "it must be a table",
    "`int`": "a whole number",
    "`str`": "a text",
    "`float`": "a number",
    "Invalid enum value": "there is no value",
}


def profile_from(table: Mapping[str, object], place: str) -> Profile:
    """Return the profile that `table` describes. Raises ConfigError, naming `place` and key.

    The keys of `kit` are the defaults of each kit of `kits`; where `kit` names a port, those that
    are right for one kit alone are so of the kit on that port.
    """
    for key, known in _unknown_keys(table, Profile):
        unset = f"{nearest(key, known)} `cellagent config unset {key}` takes this one out"
        hint = advice_if_secret(key) or unset
        raise ConfigError(f"{place}: there is no key {key!r}", hint=hint)
    common, kits = table.get("kit", {}), table.get("kits", {})
    if isinstance(common, dict) and isinstance(kits, dict):
        common = {**_by_older_names(table), **common}
        shared = {key: value for key, value in common.items() if key not in OF_ONE_KIT}
        port, listing = common.get("port"), functools.cache(system_ports)
        own = {
            name: {**(common if _is_on(kit.get("port", port), port, listing) else shared), **kit}
            for name, kit in kits.items()
            if isinstance(kit, dict)
        }
        table = {**table, "kit": common, "kits": {**kits, **own}}
    try:
        profile = msgspec.convert(table, Profile)
    except msgspec.ValidationError as error:
        key, text = _in_words(str(error))
        named = f"{key}: " if key else ""
        raise ConfigError(f"{place}: {named}{text}", hint=_choices(key)) from error
    for field, kind in get_type_hints(HostSettings, include_extras=True).items():
        if kind == ServiceUrl and (url := getattr(profile.hosts, field)):
            check_base_url(url, f"{place}: hosts.{field}")
    if is_pkcs11(profile.provisioning.device_ca_key_file):
        # Checked before it is written or shown: it may contain a PIN.
        parse_pkcs11(
            profile.provisioning.device_ca_key_file, f"{place}: provisioning.device_ca_key_file"
        )
    _check_pattern(profile.provisioning.label_pattern, f"{place}: provisioning.label_pattern")
    return profile


def _is_on(port: object, common: object, listing: Listing) -> bool:
    """Whether a kit is that on the port of `kit`, or any kit is: `kit` names none."""
    if not common or port == common:
        return True
    return isinstance(port, str) and isinstance(common, str) and same_port(port, common, listing)


def _by_older_names(table: Mapping[str, object]) -> dict[str, object]:
    """Return the keys of `kit` that a table sets by the names which they had before."""
    sections = ((key, table.get(section)) for key, section in OLDER_SECTIONS.items())
    return {key: old[key] for key, old in sections if isinstance(old, dict) and key in old}


def _in_words(problem: str) -> tuple[str, str]:
    """Return the key that msgspec names, "" for none, and its problem in our words."""
    match = _AT.search(problem)
    key = match.group(1) if match else ""
    if "matching regex" in problem:
        return key, "not a value that it may have"
    text = _AT.sub("", problem)
    for theirs, ours in _IN_WORDS.items():
        text = text.replace(theirs, ours)
    return key, text


def _check_pattern(pattern: str, named: str) -> None:
    """Check that a value is a regular expression. Raises ConfigError."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:
        raise ConfigError(
            f"{named}: {pattern!r} is no regular expression: {error}",
            hint="`cellagent config set provisioning.label_pattern '[A-Z]{2}[0-9]{6}'`",
        ) from error


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each key of a profile, dotted, with its value, in the order of the schema."""
    if isinstance(value, Section):
        for field in value.__struct_fields__:
            yield from leaves(getattr(value, field), f"{path}.{field}" if path else field)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}")
    else:
        yield path, value


def set_keys(table: Mapping[str, object], path: str = "") -> Iterator[str]:
    """Yield the dotted keys that a table sets."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from set_keys(value, f"{path}{key}.")
        else:
            yield f"{path}{key}"


def key_type(key: str) -> object:
    """Return the type of a dotted key. Raises ConfigError with the nearest name."""
    *_, (_, kind) = _way_to(key)
    if kind is None or _is_section(kind):
        raise ConfigError(f"there is no key {key!r}", hint=_meant(key))
    return kind


def _meant(key: str) -> str:
    """Return a hint that names the nearest key: of a table with the name in it."""
    parts = key.split(".")
    if parts[0] == "kits" and len(parts) > 3 and parts[-1] in KitSettings.__struct_fields__:
        return "a kit whose name has a dot is set in the file alone: `cellagent config path`"
    if parts[0] == "kits" and len(parts) == 2:
        return f"did you mean '{key}.port'?"
    if parts[0] == "kits" and len(parts) > 2:
        return nearest(key, all_keys(KitSettings, f"kits.{parts[1]}."))
    for at in range(1, len(parts)):
        near = nearest_key(".".join(parts[:at]), all_keys(Profile))
        if near and get_origin(key_type(near)) is dict:
            return f"did you mean '{near}.{'.'.join(parts[at:])}'?"
    return nearest(key, all_keys(Profile))


def key_path(key: str) -> list[str]:
    """Return the names of the tables that a dotted key leads through, its own last.

    What stands in a table of texts may have dots in its name, as a place on the hub has.
    """
    return [name for name, _ in _way_to(key)]


def setting_of(key: str, kind: object) -> str:
    """Return a hint that tells how a value is set that stands in a table of names."""
    name = f"{key}.NAME.KEY" if _is_section(get_args(kind)[1]) else f"{key}.NAME"
    return f"`cellagent config set {name} VALUE` sets each of its values"


def _way_to(key: str) -> Iterator[tuple[str, object]]:
    """Yield each name of a dotted key with the type of what it names, None where nothing is."""
    kind: object = Profile
    rest = key.split(".")
    while rest:
        inner = get_args(kind)[1] if get_origin(kind) is dict else None
        if inner is not None and not _is_section(inner):
            rest = [".".join(rest)]
        name, *rest = rest
        kind = get_type_hints(kind, include_extras=True).get(name) if _is_section(kind) else inner
        yield name, kind


def _is_section(kind: object) -> TypeGuard[type[Section]]:
    return isinstance(kind, type) and issubclass(kind, Section)


def all_keys(kind: type[Section] = Profile, path: str = "") -> Iterator[str]:
    """Yield every key of a section, dotted."""
    for name, inner in get_type_hints(kind).items():
        if _is_section(inner):
            yield from all_keys(inner, f"{path}{name}.")
        elif get_origin(inner) is dict and get_args(inner)[1] is KitSettings:
            yield from all_keys(KitSettings, f"{path}{name}.NAME.")
        elif not name.startswith("__"):
            yield f"{path}{name}"


def _unknown_keys(
    table: Mapping[str, object], kind: type[Section], path: str = ""
) -> Iterator[tuple[str, list[str]]]:
    """Yield each key that `kind` does not have, dotted, with the keys that it has."""
    hints = {name: inner for name, inner in get_type_hints(kind).items() if name[:2] != "__"}
    for key, value in table.items():
        inner = hints.get(key)
        if inner is None:
            here = [f"{path}{name}" for name in hints]
            yield f"{path}{key}", here if path else [*here, *all_keys(kind)]
        elif isinstance(value, dict):
            if _is_section(inner):
                yield from _unknown_keys(value, inner, f"{path}{key}.")
            elif get_origin(inner) is dict and get_args(inner)[1] is KitSettings:
                for name, kit in value.items():
                    if isinstance(kit, dict):
                        yield from _unknown_keys(kit, KitSettings, f"{path}{key}.{name}.")


def _choices(key: str) -> str:
    """Return a hint with the values that a key may have, where they are few or of a form."""
    whole = not key.endswith("]")
    key = re.sub(r"\[[^]]*\]", "", key.replace("kits[...]", "kit"))
    try:
        kind = key_type(key)
    except ConfigError:
        return ""
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    elif get_origin(kind) is dict and whole:
        return f"`cellagent config unset {key}` takes it out; then {setting_of(key, kind)}"
    elif get_origin(kind) is dict:
        kind = get_args(kind)[1]
    for meta in getattr(kind, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.description:
            return f"it may be {meta.description}"
    values = get_args(kind)
    if not values or not all(isinstance(value, str) for value in values):
        default = dict(leaves(Profile())).get(key)
        return f"by default it is {str(default).lower()}" if default not in {None, "", ()} else ""
    return "it may be " + ", ".join(repr(value) for value in values)
