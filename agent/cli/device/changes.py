"""The commands of `cellagent device` that change one device."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from agent.cli.framework.command import AgentGroup, emit_or_say
from agent.cli.framework.file_type import FILE
from agent.cli.framework.saved_text import whole_text
from agent.cli.framework.session import Session, device_cloud_command
from agent.cli.framework.terminal import YES, ask
from agent.errors import RefusedByRule, UsageError
from agent.json_value import JSONValue

if TYPE_CHECKING:
    from agent.cloud import DeviceCloud

F = TypeVar("F", bound=Callable[..., object])


def _json(text: str, kind: Any, name: str) -> object:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise click.BadParameter(f"{text[:80]!r} is no {name} ({error})") from error


def _object(text: str) -> object:
    return _json(text, dict[str, JSONValue], "JSON object")


def _message(text: str) -> object:
    return _json(text, dict | list | str, "JSON object, list or text")


group = AgentGroup()
_NO_WAIT = click.option("--no-wait", is_flag=True, help="Do not wait until it is registered.")


_DER = (b"\x30\x59", b"\x30\x81", b"\x30\x82")
"""What DER begins with: the sequence of a public key of P-256, or that of a certificate."""


def _pem(metavar: str) -> Callable[[F], F]:
    return click.argument(
        "pem", type=FILE, metavar=metavar, callback=lambda _context, _argument, path: _text_of(path)
    )


def _text_of(path: Path) -> str:
    with path.open("rb") as file:
        text = whole_text(file, str(path))
    if text.startswith(_DER):
        files = f"-inform DER -in {shlex.quote(str(path))} -out {shlex.quote(f'{path}.pem')}"
        raise UsageError(
            f"{path}: this is DER, and PEM is sent",
            hint=f"`openssl x509 {files}` makes PEM of a certificate, "
            f"`openssl pkey -pubin -pubout {files}` of a public key",
        )
    return text.decode("utf-8", "replace")


DEVICE_ID = click.argument("device_id", metavar="ID")
_CHARACTERISTIC = click.argument("characteristic", metavar="UUID|PATH")
IF_MATCH = click.option(
    "--if-match", "version", metavar="VERSION", help="Only if this is still its version."
)


@group.command(epilog="Example: cellagent device rename nrf-358299840010349 'north door'")
@DEVICE_ID
@click.argument("name")
@IF_MATCH
@device_cloud_command
async def rename(
    _session: Session, cloud: DeviceCloud, device_id: str, name: str, version: str | None
) -> None:
    """Change the name of a device."""
    await cloud.rename(device_id, name, version=version)


@group.command(epilog="Example: cellagent device tag nrf-358299840010349 bench left")
@DEVICE_ID
@click.argument("tags", nargs=-1)
@IF_MATCH
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
@DEVICE_ID
@_CHARACTERISTIC
@click.argument("value", metavar="BYTES")
@click.option("--force", is_flag=True, help="Even if its properties allow no write.")
@IF_MATCH
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
    """Write a characteristic of a BLE device, or one of its descriptors.

    BYTES are hex ("0a 00", "0a00") or numbers with commas ("10,0"). The characteristic is looked
    up by its whole UUID or by <service>/<characteristic>, a descriptor by
    <service>/<characteristic>/<descriptor>. A characteristic whose properties have neither write
    nor writeWithoutResponse is written only with --force.
    """
    content = parse_bytes(value)  # before anything is asked
    device = await cloud.device(device_id)
    found = device.descriptor(characteristic)
    if found is not None:
        owner, descriptor = found
        await cloud.write_descriptor(
            device_id, device.wire_id(owner), descriptor.uuid, content, version=version
        )
        return
    target = device.characteristic(characteristic)
    if not (target.is_writable or force):
        able = ", ".join(sorted(target.properties)) or "none"
        raise RefusedByRule(
            f"{target.uuid} cannot be written: its properties are {able}",
            hint="`--force` sends it all the same",
        )
    await cloud.write(device_id, device.wire_id(target), content, version=version)


@group.command(epilog="Example: cellagent device read DE:AD:BE:EF:00:01 UUID")
@DEVICE_ID
@_CHARACTERISTIC
@device_cloud_command
async def read(session: Session, cloud: DeviceCloud, device_id: str, characteristic: str) -> None:
    """Show the value of a characteristic as the cloud last saw it."""
    value = await cloud.characteristic_value(device_id, characteristic)
    emit_or_say(session, {"value": list(value)}, value.hex(" "))


@group.command(
    epilog="Example: cellagent device state nrf-358299840010349 --desired '{\"led\": true}'"
)
@DEVICE_ID
@click.option("--desired", type=_object, metavar="JSON", help="Merged into what is desired.")
@click.option("--reported", type=_object, metavar="JSON", help="Merged into what it reports.")
@IF_MATCH
@device_cloud_command
async def state(
    _session: Session,
    cloud: DeviceCloud,
    device_id: str,
    desired: dict[str, JSONValue] | None,
    reported: dict[str, JSONValue] | None,
    version: str | None,
) -> None:
    """Merge objects into the state of a device; null deletes a key.

    What it reports is sent in its name, so that the kit has to be there.
    """
    if desired is None and reported is None:
        raise UsageError(
            "there is nothing to change", hint="`--desired JSON`, or `--reported JSON`, or both"
        )
    await cloud.update_state(device_id, reported=reported, desired=desired, version=version)


@group.command(
    epilog="""Example: cellagent device message ID '{"appId": "TEMP", "data": "21.5"}'"""
)
@DEVICE_ID
@click.argument("message", type=_message, metavar="JSON")
@click.option("--topic", default="", help="Instead of d/ID/d2c; .../bulk or .../bin after it.")
@device_cloud_command
async def message(
    _session: Session, cloud: DeviceCloud, device_id: str, message: object, topic: str
) -> None:
    """Send a message in a device's name, whose kit has to be there.

    It is an object; for the topic d/ID/d2c/bulk a list of them, for d/ID/d2c/bin base64 in quotes.
    """
    await cloud.send_message(device_id, message, topic=topic)


@group.command(epilog="Example: cellagent device delete nrf-358299840010349 --yes")
@DEVICE_ID
@YES
@IF_MATCH
@device_cloud_command
async def delete(
    _session: Session, cloud: DeviceCloud, device_id: str, yes: bool, version: str | None
) -> None:
    """Remove a device from the team, with its state and its key."""
    ask(f"Remove {device_id} from its team?", yes=yes)
    await cloud.delete(device_id, version=version)


@group.command(name="register-key", epilog="Example: cellagent device register-key ID public.pem")
@DEVICE_ID
@_pem("PUBLIC_KEY.pem")
@_NO_WAIT
@device_cloud_command
async def register_key(
    session: Session, cloud: DeviceCloud, device_id: str, pem: str, no_wait: bool
) -> None:
    """Register the public key that a device's tokens are verified with; an older one ends."""
    from agent.cloud import PublicKey

    request_id = await cloud.register_public_keys([PublicKey(device_id, pem)])
    await _show_request(session, cloud, device_id, request_id, waits=not no_wait)


@group.command(epilog="Example: cellagent device onboard ID certificate.pem --tag bench")
@DEVICE_ID
@_pem("CERTIFICATE.pem")
@click.option("--subtype", default="", help="What kind of product it is.")
@click.option("--tag", "tags", multiple=True, help="May be repeated.")
@click.option(
    "--firmware", "types", multiple=True, default=("APP", "MODEM"), show_default=True,
    help="A kind that can be updated; may be repeated.",
)  # fmt: skip
@_NO_WAIT
@device_cloud_command
async def onboard(
    session: Session,
    cloud: DeviceCloud,
    device_id: str,
    pem: str,
    subtype: str,
    tags: tuple[str, ...],
    types: tuple[str, ...],
    no_wait: bool,
) -> None:
    """Bring a device into the team, with its certificate or its public key."""
    from agent.cloud import NewDevice

    request_id = await cloud.onboard([NewDevice(device_id, pem, subtype, tags, types)])
    await _show_request(session, cloud, device_id, request_id, waits=not no_wait)


async def _show_request(
    session: Session, cloud: DeviceCloud, device_id: str, request_id: str, *, waits: bool
) -> None:
    status = (await cloud.wait_for_bulk(request_id)).status if waits else "PENDING"
    emit_or_say(
        session,
        {"device_id": device_id, "request": request_id, "status": status},
        f"{device_id}: {status.lower()} (bulk request {request_id})",
    )


@group.command(name="bulk-request", epilog="Example: cellagent device bulk-request ID")
@click.argument("request_id", metavar="ID")
@device_cloud_command
async def bulk_request(session: Session, cloud: DeviceCloud, request_id: str) -> None:
    """Show what became of a bulk request that was not waited for."""
    found = await cloud.bulk_operation(request_id)
    emit_or_say(session, found.raw, f"bulk request {request_id}: {found.status.lower()}")


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
