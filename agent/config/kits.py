"""The kits of a profile, each completed by the keys that all kits share."""

from __future__ import annotations

import msgspec

from agent.config.profile import KitSettings, Profile
from agent.errors import UsageError


def kits_of(profile: Profile) -> dict[str, KitSettings]:
    """Return the kits by name, each complete. Raises UsageError."""
    common = profile.kit
    kits = profile.kits or {common.slot or "kit": common}
    complete = {name: _over(common, kit) for name, kit in kits.items()}
    for name, kit in complete.items():
        if not kit.port:
            raise UsageError(
                f"kit {name} has no port", hint=f"`cellagent config set kits.{name}.port PORT`"
            )
    _check_different(complete, "port")
    # The chunks of one device are put together again by their order: two kits would break it.
    _check_different(complete, "device_id")
    return complete


def _check_different(kits: dict[str, KitSettings], key: str) -> None:
    seen: dict[str, str] = {}
    for name, kit in kits.items():
        value = getattr(kit, key)
        if value in seen:
            raise UsageError(
                f"the kits {seen[value]} and {name} have the same {key} ({value})",
                hint=f"set kits.{name}.{key}",
            )
        if value:
            seen[value] = name


def _over(common: KitSettings, kit: KitSettings) -> KitSettings:
    """Return `kit`; keys that it leaves at their default are taken from `common`."""
    default = type(kit)()
    own = {
        name: value
        for name in kit.__struct_fields__
        if (value := getattr(kit, name)) != getattr(default, name)
    }
    return msgspec.structs.replace(common, **own)
