"""What people see of a device of the device cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.cli.frame import emit, options, say

if TYPE_CHECKING:
    from agent.cloud import Device


def show_device(device: Device) -> None:
    """Show a device and its state; with --json as the service tells it."""
    if options().json:
        emit(device.raw)
    else:
        _describe(device)


def _describe(device: Device) -> None:
    say(f"{device.id}  {device.name if device.name != device.id else ''}".rstrip())
    kind = f"{device.type} ({device.sub_type})" if device.sub_type else device.type
    for label, value in (
        ("type", kind),
        ("gateway", device.gateway_id),
        ("connected", " ".join(device.connected_ids)),
        ("tags", " ".join(device.tags)),
        ("updates", " ".join(device.supports)),
        ("version", device.version),
        ("updated", updated(device)),
    ):
        if value:
            say(f"  {label:10} {value}")
    for service in device.services.values():
        say(f"  service {service.uuid}")
        for each in service.characteristics.values():
            properties = " ".join(sorted(each.properties))
            say(f"    {each.uuid}  [{each.value.hex(' ')}]  {properties}")


def updated(device: Device) -> str | None:
    """Return when a device was changed last, for a person."""
    return device.updated_at.isoformat(" ", "seconds") if device.updated_at else None
