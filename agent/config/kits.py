"""The kits of a profile: one, or a table of them over what they have in common. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.config.profile import Kit, Profile


def kits_of(profile: Profile) -> dict[str, Kit]:
    """Return the kits by name, each complete. Raises UsageError."""
    common = profile.kit
    kits = profile.kits or {common.slot or "kit": common}
    complete = {name: _over(common, kit) for name, kit in kits.items()}
    for name, kit in complete.items():
        if not kit.port:
            raise UsageError(
                f"kit {name} has no port", hint=f"set kits.{name}.port, or --port PORT"
            )
    _check_different(complete, "port")
    # The chunks of one device are put together again by their order: two kits would break it.
    _check_different(complete, "device_id")
    return complete


def _check_different(kits: dict[str, Kit], key: str) -> None:
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


def _over(common: Kit, kit: Kit) -> Kit:
    """Return a kit of the table with what it does not say taken from the common part."""
    default = type(kit)()
    own = {
        name: value
        for name in kit.__struct_fields__
        if (value := getattr(kit, name)) != getattr(default, name)
    }
    return msgspec.structs.replace(common, **own)
