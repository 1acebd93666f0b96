"""The kits of a profile, and what two of them may not share."""

import functools
import shlex
from collections.abc import Callable, Mapping

from agent.config.profile import KitSettings, Profile
from agent.errors import UsageError
from at.ports.usb import Listing, device_of, same_port, system_ports

_OF_MANY = {"", "auto", "same", "none"}
"""Values that name no port and no device."""
_OF_ONE = (
    "port",
    # The chunks of one device are put together again by their order: two kits would break it.
    "device_id",
    # What is printed there would be of whichever kit opens it first.
    "console_port",
)
"""The keys of which no two kits have the same value."""


def kits_of(profile: Profile) -> dict[str, KitSettings]:
    """Return the kits by name. Raises UsageError."""
    kits = profile.kits or {profile.kit.slot or "kit": profile.kit}
    for name, kit in kits.items():
        # A browser takes /kits/.. for another address, and nobody sees which kit is blank.
        if not name.strip().strip("."):
            hint = "give it another name in the file: `cellagent config path` says which"
            raise UsageError(f"a kit cannot be called {name!r}", hint=hint)
        if not kit.port:
            key = f"kits.{name}.port" if profile.kits else "kit.port"
            raise UsageError(f"kit {name} has no port", hint=_set(key))
    for key in _OF_ONE:
        _check_different(kits, key)
    return kits


def port_of(profile: Profile, text: str) -> str:
    """Return the port that a person named: a port, or a kit of the table, which may lack one."""
    return profile.kits.get(text, KitSettings(port=text)).port


def name_of(profile: Profile) -> str:
    """Return the name that a profile's `kit` has in its table, "" for none."""
    return next((name for name, kit in profile.kits.items() if kit == profile.kit), "")


def require_different_ports(kits: Mapping[str, KitSettings], listing: Listing) -> None:
    """Raise UsageError where two kits have one port now, under two of its names."""
    for key in ("port", "console_port"):
        _check_different(kits, key, lambda port: device_of(port, listing))


def require_free(kits: Mapping[str, KitSettings], name: str, key: str) -> None:
    """Raise UsageError where another kit has what this one is given, and no two may have it."""
    value, listing = getattr(kits[name], key), functools.cache(system_ports)
    for other, kit in kits.items() if key in _OF_ONE and value not in _OF_MANY else ():
        its = getattr(kit, key)
        if other != name and same_port(its, value, listing):
            taken = shlex.quote(f"kits.{other}.{key}")
            raise UsageError(
                f"kit {other} has the {key} {its}: kit {name} cannot have it, too",
                hint=f"`cellagent config unset {taken}` frees it",
            )


def _check_different(
    kits: Mapping[str, KitSettings], key: str, meant: Callable[[str], str] = str
) -> None:
    seen: dict[str, str] = {}
    for name, kit in kits.items():
        value = getattr(kit, key)
        if value in _OF_MANY:
            continue
        first = seen.setdefault(meant(value), name)
        if first != name:
            names = dict.fromkeys((getattr(kits[first], key), value))
            raise UsageError(
                f"the kits {first} and {name} have the same {key} ({' is '.join(names)})",
                hint=_set(f"kits.{name}.{key}"),
            )


def _set(key: str) -> str:
    return f"`cellagent config set {shlex.quote(key)} VALUE`"
