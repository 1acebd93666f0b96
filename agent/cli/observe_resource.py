"""The commands of one kind of resource below `cellagent observe`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from agent.cli.frame import AgentGroup, emit, note, options, say
from agent.cli.observe_options import on_service, pair, takes_fields
from agent.observability.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.observability import Kind, Observability, Resource

# What people see of each kind, in this order; --json shows everything.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "organization": ("slug", "name", "id"),
    "project": ("slug", "name", "platform", "id"),
    "release": ("version", "created_date", "count_devices", "id"),
    "cohort": ("slug", "name", "count_devices", "id"),
    "device": ("device_serial", "hardware_version", "cohort.slug", "last_seen"),
    "deployment": ("id", "status", "release.version", "cohort.slug", "rollout_percent"),
    "event": ("id", "type", "device.device_serial", "captured_date", "received_date"),
    "trace": ("id", "reason", "device.device_serial", "captured_date"),
    "issue": ("id", "status", "title", "device_count", "trace_count", "last_seen"),
    "install": ("id", "status", "device.device_serial", "began_at"),
}


def resource_group(kind: Kind) -> click.Group:
    """Return the commands of one kind of resource."""

    @click.group(cls=AgentGroup, name=kind.name, help=f"{kind.plural.capitalize()}.")
    def group() -> None:
        pass

    example = f"Example: cellagent observe {kind.name}"
    _add_reading(group, kind, example)
    _add_changing(group, kind, example)
    return group


def _add_reading(group: click.Group, kind: Kind, example: str) -> None:
    @group.command(name="list", epilog=f"{example} list --json", help=f"List the {kind.plural}.")
    @click.option("--filter", "pairs", multiple=True, metavar="NAME=VALUE", help="May be repeated.")
    @click.option("--sort", default="", metavar="[-]FIELD", help="Ascending, or descending with -.")
    @click.option("--limit", type=click.IntRange(1), metavar="N", help="No more than N.")
    @on_service
    async def list_(
        service: Observability, pairs: tuple[str, ...], sort: str, limit: int | None
    ) -> None:
        filters: dict[str, list[str]] = {}
        for name, value in map(pair, pairs):
            filters.setdefault(name, []).append(value)
        await _list(service, kind, filters, sort, limit)

    @group.command(epilog=f"{example} show KEY", help=f"Show one {kind.name}.")
    @click.argument("key")
    @on_service
    async def show(service: Observability, key: str) -> None:
        _print(await service.get(kind, key))


def _add_changing(group: click.Group, kind: Kind, example: str) -> None:
    @group.command(epilog=f"{example} create --field name=value", help=f"Create a {kind.name}.")
    @takes_fields(needed=True)
    @on_service
    async def create(service: Observability, fields: dict[str, Any]) -> None:
        _print(await service.create(kind, fields))

    @group.command(
        epilog=f"{example} update KEY --field name=value",
        help=f"Change some fields of a {kind.name}; the others stay.",
    )
    @click.argument("key")
    @takes_fields(needed=True)
    @on_service
    async def update(service: Observability, key: str, fields: dict[str, Any]) -> None:
        _print(await service.update(kind, key, fields))

    @group.command(
        epilog=f"{example} relate KEY device SERIAL",
        help=f"Create or change the relation of a {kind.name} to another resource.",
    )
    @click.argument("key")
    @click.argument("other", type=click.Choice(list(KINDS)))
    @click.argument("other_key")
    @takes_fields(needed=False)
    @on_service
    async def relate(
        service: Observability, key: str, other: str, other_key: str, fields: dict[str, Any]
    ) -> None:
        _print(await service.relate(kind, key, KINDS[other], other_key, fields))

    @group.command(
        epilog=f"{example} delete KEY", help=f"Delete a {kind.name}, or several at once by id."
    )
    @click.argument("keys", nargs=-1, required=True, metavar="KEY...")
    @on_service
    async def delete(service: Observability, keys: tuple[str, ...]) -> None:
        if len(keys) == 1:
            await service.delete(kind, keys[0])
        else:
            await service.delete_many(kind, keys)


async def _list(
    service: Observability,
    kind: Kind,
    filters: Mapping[str, Any],
    sort: str,
    limit: int | None,
) -> None:
    from agent.cli.table import TableWriter, progress

    columns = COLUMNS[kind.name]
    table = TableWriter(*(column.replace(".", " ") for column in columns))
    left = limit
    per_page = min(limit or 100, 100)
    async for resource in service.list(
        kind, filters, sort=sort, per_page=per_page, progress=progress
    ):
        if options().json:
            emit(resource.raw)
        else:
            table.add(*(_at(resource.raw, column) for column in columns))
        if left is not None:
            left -= 1
            if not left:
                break
    if not options().json:
        table.flush()


def _print(resource: Resource | None) -> None:
    if options().json:
        emit(resource.raw if resource else {})
    elif resource is None:
        note("done; the service shows nothing of it")
    else:
        for name, value in resource.raw.items():
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            say(f"{name:20} {shown}")


def _at(raw: Mapping[str, Any], dotted: str) -> Any:
    value: Any = raw
    for name in dotted.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
