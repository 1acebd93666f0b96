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
    seen: dict[str, str] = {}
    for name, kit in complete.items():
        if not kit.port:
            raise UsageError(
                f"kit {name} has no port", hint=f"set kits.{name}.port, or --port PORT"
            )
        if kit.port in seen:
            raise UsageError(f"the kits {seen[kit.port]} and {name} have the same port")
        seen[kit.port] = name
    return complete


def _over(common: Kit, kit: Kit) -> Kit:
    """Return a kit of the table with what it does not say taken from the common part."""
    default = type(kit)()
    own = {
        name: value
        for name in kit.__struct_fields__
        if (value := getattr(kit, name)) != getattr(default, name)
    }
    return msgspec.structs.replace(common, **own)
