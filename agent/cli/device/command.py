"""`cellagent device`: devices at the device cloud."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from agent.cli.device import changes
from agent.cli.framework.command import AgentGroup, emit, emit_or_say, note, say
from agent.cli.framework.listing import PER_PAGE, ListWriter, first
from agent.cli.framework.number_types import Seconds
from agent.cli.framework.session import Session, device_cloud_command
from agent.cli.framework.terminal import ask, waiting
from agent.cli.observability.cycled_keys import check_storable, store_token

if TYPE_CHECKING:
    from agent.cloud import Device, DeviceCloud
    from agent.cloud.account import ServiceTokenIssued
    from agent.cloud.conventions import ListCall
    from agent.cloud.messages import Message

T = TypeVar("T")


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
            for descriptor in each.descriptors.values():
                say(f"      descriptor {descriptor.uuid}  [{descriptor.value.hex(' ')}]")


def updated(device: Device) -> str | None:
    """Return the time of a device's last change, for a person."""
    return device.updated_at.isoformat(" ", "seconds") if device.updated_at else None


@click.group(cls=AgentGroup, name="device")
def command() -> None:
    """Devices at the device cloud: list, show, rename, write; keys; wait for changes."""


_SECONDS = "Seconds to wait."

_PAGE = click.option(
    "--page", metavar="TOKEN", help='The page that the page before named; "" for the first.'
)


async def _list(
    cloud: DeviceCloud,
    call: ListCall[T],
    add: Callable[[T], None],
    out: ListWriter,
    page: str | None,
    per_page: int | None,
    limit: int | None = None,
) -> None:
    """Write every item, at most `limit`; one page where one is asked for."""
    if page is None and per_page is None:
        async for item in first(cloud.walk(call), limit):
            add(item)
        out.end()
        return
    one = replace(call, page_limit=per_page or call.page_limit, page_token=page or None)
    found = await cloud.page(one)
    for item in found.items:
        add(item)
    following = "the last page"
    if found.next_token is not None:
        following = f"the next page: the same with --page {shlex.quote(found.next_token)}"
    out.end_page({"total": found.total, "next": found.next_token}, following)


@command.command(name="list", epilog="Example: cellagent device list --type BLE --json")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="BLE, Gateway, Generic.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with one of these tags.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only these devices.")
@click.option("--state", "include_state", is_flag=True, help="With the state (only --json shows).")
@click.option("--transform", metavar="EXPRESSION", help="A JSONata expression for each device.")
@_PAGE
@PER_PAGE
@device_cloud_command
async def list_(
    session: Session,
    cloud: DeviceCloud,
    types: tuple[str, ...],
    tags: tuple[str, ...],
    ids: tuple[str, ...],
    include_state: bool,
    transform: str | None,
    page: str | None,
    per_page: int | None,
) -> None:
    """List the devices of the team. What a transform gives is printed as JSON."""
    from agent.cloud import Filter
    from agent.cloud.device_reads import ListDevices, TransformDevices

    chosen = Filter(device_types=types, tags=tags, device_ids=ids)
    if transform is not None:
        values = TransformDevices(transform, chosen)
        as_json = ListWriter(replace(session, json=True))
        await _list(cloud, values, emit, as_json, page, per_page)
        return
    out = ListWriter(session, "id", "name", "type", "tags", "updated")

    def add(device: Device) -> None:
        name = device.name if device.name != device.id else None
        tags = " ".join(device.tags)
        out.add(device.raw, device.id, name, device.type, tags, updated(device))

    await _list(cloud, ListDevices(chosen, include_state), add, out, page, per_page)


@command.command(epilog="Example: cellagent device show nrf-358299840010349")
@changes.DEVICE_ID
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
@changes.DEVICE_ID
@click.option("--no-wait", is_flag=True, help="Do not wait for the new state.")
@click.option("--deadline", type=Seconds(0), default=90.0, show_default=True, help=_SECONDS)
@changes.IF_MATCH
@device_cloud_command
async def discover(
    session: Session,
    cloud: DeviceCloud,
    gateway_id: str,
    device_id: str,
    no_wait: bool,
    deadline: float,
    version: str | None,
) -> None:
    """Make a gateway read all services of a BLE device again, and wait for its new state."""
    if no_wait:
        await cloud.discover(gateway_id, device_id, version=version)
        return
    note("the gateway reads the services; this takes a while")
    device = await cloud.discover_and_wait(
        gateway_id, device_id, deadline_s=deadline, version=version
    )
    show_device(session, device)


@command.command(epilog="Example: cellagent device wait ID --transform 'state.reported.ready'")
@changes.DEVICE_ID
@click.option("--after", metavar="VERSION", help="Until the version is another than this one.")
@click.option("--transform", metavar="EXPRESSION", help="Until this JSONata expression is true.")
@click.option("--deadline", type=Seconds(0), default=60.0, show_default=True, help=_SECONDS)
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
    async with waiting(f"waiting for {device_id}", session):
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
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="The most to list."
)
@_PAGE
@PER_PAGE
@device_cloud_command
async def messages(
    session: Session,
    cloud: DeviceCloud,
    device_id: str,
    app_id: str,
    limit: int,
    page: str | None,
    per_page: int | None,
) -> None:
    """List the messages that were kept, the newest first."""
    from agent.cloud.messages import ListMessages

    out = ListWriter(session, "received", "device", "message")

    def add(message: Message) -> None:
        received = message.received_at
        shown = received.isoformat(" ", "seconds") if received else None
        out.add(message.raw, shown, message.device_id, json.dumps(message.message))

    await _list(cloud, ListMessages(device_id, app_id), add, out, page, per_page, limit)


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


@command.command(epilog="Example: cellagent device openapi > device-cloud.json")
@device_cloud_command
async def openapi(_session: Session, cloud: DeviceCloud) -> None:
    """Print the cloud's own description of itself, OpenAPI as JSON."""
    emit((await cloud.openapi()).document)


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


@command.command(name="service-token", epilog="Example: cellagent device service-token")
@click.option(
    "--new-key",
    type=click.Path(resolve_path=True, path_type=Path),
    metavar="FILE",
    help="Make a new service key, which ends the old one, and keep it in this new file.",
)
@click.option("--yes", is_flag=True, help="Do not ask before the old key ends.")
@device_cloud_command
async def service_token(
    session: Session, cloud: DeviceCloud, new_key: Path | None, yes: bool
) -> None:
    """Fetch a service token and keep it for this profile; it is never printed. Deprecated.

    The paths may be removed any time after July 1, 2026; an organization auth token replaces them.
    """
    configuration = session.configuration
    check_storable(configuration)
    if new_key is None:
        issued = await cloud.service_token()
    else:
        ask("Make a new service key, which ends the old one?", yes=yes)
        issued = await _new_service_key(cloud, new_key)
    stored = await store_token(configuration, "service_token", issued.token.reveal())
    emit_or_say(
        session,
        {"file": str(stored), "key_file": str(new_key) if new_key else None},
        "this profile has a service token",
    )


async def _new_service_key(cloud: DeviceCloud, path: Path) -> ServiceTokenIssued:
    """Make a service key and keep it in a new file. Raises RefusedByRule where that exists."""
    from agent.files.private_files import new_private

    # Opened before the call: a key that cannot be kept would end the old one for nothing.
    with new_private(path) as file:
        issued = await cloud.make_service_key_and_token()
        file.write(issued.private_key.encode())
    note(
        f"the key is in {path}: "
        f"`cellagent config set credentials.service_key_files.location {shlex.quote(str(path))}`"
    )
    return issued


for _change in changes.group.commands.values():
    command.add_command(_change)
