"""`cellagent device`: devices at the device cloud."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from agent.cli.device import changes
from agent.cli.framework.command import AgentGroup, emit, emit_or_say, note, say
from agent.cli.framework.session import Session, device_cloud_command
from agent.cli.framework.terminal import TableWriter

if TYPE_CHECKING:
    from agent.cloud import Device, DeviceCloud


def show_device(session: Session, device: Device) -> None:
    """Show a device and its state; with --json as the service returns it."""
    if session.json:
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
    """Return the time of a device's last change, for a person."""
    return device.updated_at.isoformat(" ", "seconds") if device.updated_at else None


@click.group(cls=AgentGroup, name="device")
def command() -> None:
    """Devices at the device cloud: list, show, rename, write; keys; wait for changes."""


@command.command(name="list", epilog="Example: cellagent device list --type BLE --json")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="BLE, Gateway, Generic.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with one of these tags.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only these devices.")
@click.option("--state", "include_state", is_flag=True, help="With the state (only --json shows).")
@click.option("--transform", metavar="EXPRESSION", help="A JSONata expression for each device.")
@device_cloud_command
async def list_(
    session: Session,
    cloud: DeviceCloud,
    types: tuple[str, ...],
    tags: tuple[str, ...],
    ids: tuple[str, ...],
    include_state: bool,
    transform: str | None,
) -> None:
    """List the devices of the team. What a transform gives is printed as JSON."""
    from agent.cloud import Filter

    chosen = Filter(device_types=types, tags=tags, device_ids=ids)
    if transform is not None:
        async for value in cloud.transformed_devices(transform, chosen):
            emit(value)
        return
    table = TableWriter("id", "name", "type", "tags", "updated")
    async for device in cloud.devices(chosen, include_state=include_state):
        if session.json:
            emit(device.raw)
        else:
            name = device.name if device.name != device.id else None
            table.add(device.id, name, device.type, " ".join(device.tags), updated(device))
    if not session.json:
        table.flush()


@command.command(epilog="Example: cellagent device show nrf-358299840010349")
@click.argument("device_id", metavar="ID")
@click.option("--transform", metavar="EXPRESSION", help="A JSONata expression for the device.")
@device_cloud_command
async def show(session: Session, cloud: DeviceCloud, device_id: str, transform: str | None) -> None:
    """Show a device and its state. What a transform gives is printed as JSON."""
    if transform is not None:
        emit((await cloud.transformed(device_id, transform)).value)
        return
    show_device(session, await cloud.device(device_id))


@command.command(epilog="Example: cellagent device discover nrf-352656109000001 DE:AD:BE:EF:00:01")
@click.argument("gateway_id", metavar="GATEWAY")
@click.argument("device_id", metavar="ID")
@click.option("--no-wait", is_flag=True, help="Do not wait for the new state.")
@click.option("--deadline", type=click.FloatRange(0), default=90.0, show_default=True)
@device_cloud_command
async def discover(
    session: Session,
    cloud: DeviceCloud,
    gateway_id: str,
    device_id: str,
    no_wait: bool,
    deadline: float,
) -> None:
    """Make a gateway read all services of a BLE device again, and wait for its new state."""
    if no_wait:
        await cloud.discover(gateway_id, device_id)
        return
    note("the gateway reads the services; this takes a while")
    show_device(session, await cloud.discover_and_wait(gateway_id, device_id, deadline_s=deadline))


@command.command(epilog="Example: cellagent device wait ID --transform 'state.reported.ready'")
@click.argument("device_id", metavar="ID")
@click.option("--after", metavar="VERSION", help="Until the version is another than this one.")
@click.option("--transform", metavar="EXPRESSION", help="Until this JSONata expression is true.")
@click.option("--deadline", type=click.FloatRange(0), default=60.0, show_default=True)
@device_cloud_command
async def wait(
    session: Session,
    cloud: DeviceCloud,
    device_id: str,
    after: str | None,
    transform: str | None,
    deadline: float,
) -> None:
    """Wait until a device changes: from VERSION, or from what it is now."""
    if transform is not None:
        device = await cloud.wait_for_transform(device_id, transform, deadline_s=deadline)
    else:
        before = after or (await cloud.device(device_id)).version
        device = await cloud.wait_until(
            device_id, lambda current: current.version != before, deadline_s=deadline
        )
    emit_or_say(session, device.raw, f"{device_id} changed: version {device.version}")


@command.command(epilog="Example: cellagent device messages ID --app TEMP")
@click.argument("device_id", metavar="[ID]", required=False, default="")
@click.option(
    "--app", "app_id", default="", metavar="APP", help="Only this kind (TEMP, GNSS, ...)."
)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True)
@device_cloud_command
async def messages(
    session: Session, cloud: DeviceCloud, device_id: str, app_id: str, limit: int
) -> None:
    """List the messages that were kept, the newest first."""
    table = TableWriter("received", "device", "message")
    left = limit
    async for message in cloud.messages(device_id, app_id=app_id):
        if session.json:
            emit(message.raw)
        else:
            received = message.received_at
            shown = received.isoformat(" ", "seconds") if received else None
            table.add(shown, message.device_id, json.dumps(message.message))
        left -= 1
        if not left:
            break
    if not session.json:
        table.flush()


@command.command(epilog="Example: cellagent device scheme GET /v1/devices")
@click.argument("method")
@click.argument("path")
@device_cloud_command
async def scheme(session: Session, cloud: DeviceCloud, method: str, path: str) -> None:
    """Show which kinds of credential an operation declares in the cloud's own description."""
    declared = sorted((await cloud.openapi()).schemes(method, path))
    emit_or_say(
        session,
        {"method": method.upper(), "path": path, "schemes": declared},
        " or ".join(declared) or "none is needed",
    )


@command.command(epilog="Example: cellagent device account")
@device_cloud_command
async def account(session: Session, cloud: DeviceCloud) -> None:
    """Show the team and the role that the API key opens."""
    found = await cloud.account()
    emit_or_say(
        session,
        found.raw,
        f"team {found.team_name or '-'} ({found.team_id}), role {found.role or '-'}",
        f"plan {found.plan or '-'}",
    )


for _change in changes.group.commands.values():
    command.add_command(_change)
