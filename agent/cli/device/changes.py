"""The commands of `cellagent device` that change one device."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent.cli.framework.command import AgentGroup, emit_or_say
from agent.cli.framework.session import Session, device_cloud_command
from agent.errors import RefusedByRule, UsageError

if TYPE_CHECKING:
    from agent.cloud import DeviceCloud

group = AgentGroup()
_IF_MATCH = click.option(
    "--if-match", "version", metavar="VERSION", help="Only if this is still its version."
)


@group.command(epilog="Example: cellagent device rename nrf-358299840010349 'north door'")
@click.argument("device_id", metavar="ID")
@click.argument("name")
@_IF_MATCH
@device_cloud_command
async def rename(
    _session: Session, cloud: DeviceCloud, device_id: str, name: str, version: str | None
) -> None:
    """Change the name of a device."""
    await cloud.rename(device_id, name, version=version)


@group.command(epilog="Example: cellagent device tag nrf-358299840010349 bench left")
@click.argument("device_id", metavar="ID")
@click.argument("tags", nargs=-1)
@_IF_MATCH
@device_cloud_command
async def tag(
    _session: Session,
    cloud: DeviceCloud,
    device_id: str,
    tags: tuple[str, ...],
    version: str | None,
) -> None:
    """Replace the tags of a device; without TAGS it has none."""
    await cloud.set_tags(device_id, tags, version=version)


@group.command(
    epilog="Example: cellagent device write DE:AD:BE:EF:00:01"
    " 00001525-1212-EFDE-1523-785FEABCD123 '0a 00'"
)
@click.argument("device_id", metavar="ID")
@click.argument("characteristic", metavar="UUID|PATH")
@click.argument("value", metavar="BYTES")
@click.option("--force", is_flag=True, help="Even if its properties allow no write.")
@_IF_MATCH
@device_cloud_command
async def write(
    _session: Session,
    cloud: DeviceCloud,
    device_id: str,
    characteristic: str,
    value: str,
    force: bool,
    version: str | None,
) -> None:
    """Write a characteristic of a BLE device.

    BYTES are hex ("0a 00", "0a00") or numbers with commas ("10,0"). The characteristic is looked
    up by its whole UUID or by <service>/<characteristic>. One whose properties have neither write
    nor writeWithoutResponse is written only with --force.
    """
    content = parse_bytes(value)  # before anything is asked
    device = await cloud.device(device_id)
    target = device.characteristic(characteristic)
    if not (target.is_writable or force):
        able = ", ".join(sorted(target.properties)) or "none"
        raise RefusedByRule(
            f"{target.uuid} cannot be written: its properties are {able}",
            hint="add --force to send it all the same",
        )
    await cloud.write(device_id, target.uuid, content, version=version)


@group.command(name="register-key", epilog="Example: cellagent device register-key ID key.pem")
@click.argument("device_id", metavar="ID")
@click.argument(
    "pem",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PUBLIC_KEY.pem",
    callback=lambda _context, _argument, path: path.read_text("utf-8", "replace"),
)
@click.option("--no-wait", is_flag=True, help="Do not wait until it is registered.")
@device_cloud_command
async def register_key(
    session: Session, cloud: DeviceCloud, device_id: str, pem: str, no_wait: bool
) -> None:
    """Register the public key that a device's tokens are verified with; an older one ends."""
    from agent.cloud import PublicKey

    request_id = await cloud.register_public_keys([PublicKey(device_id, pem)])
    status = "PENDING"
    if not no_wait:
        status = (await cloud.wait_for_bulk(request_id)).status
    emit_or_say(
        session,
        {"device_id": device_id, "request": request_id, "status": status},
        f"{device_id}: {status.lower()} (bulk request {request_id})",
    )


def parse_bytes(text: str) -> bytes:
    """Return bytes written as hex, or as numbers 0..255 with commas. Raises UsageError."""
    numbers = text.strip()
    if re.fullmatch(r"\d{1,3}(\s*,\s*\d{1,3})+|\d{1,3},", numbers, re.ASCII):
        values = [int(number) for number in numbers.rstrip(",").split(",")]
        if all(value <= 255 for value in values):
            return bytes(values)
    try:
        return bytes.fromhex(numbers.removeprefix("0x"))
    except ValueError:
        raise UsageError(
            f"{text!r} are no bytes", hint="write them as hex ('0a 00') or as numbers ('10,0')"
        ) from None
