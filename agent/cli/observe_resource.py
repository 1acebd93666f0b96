"""The commands of one kind of resource below `cellagent observe`."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

import click

from agent.cli.frame import AgentGroup, emit, note, options, run, say
from agent.errors import UsageError
from agent.observability.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agent.config import Configuration
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

_where = (
    click.option("--organization", metavar="SLUG", help="Instead of account.organization."),
    click.option("--project", metavar="SLUG", help="Instead of account.project."),
)


def where(function: Any) -> Any:
    """Add the options that say which organization and project."""
    for option in reversed(_where):
        function = option(function)
    return function


fields_given = (
    click.option(
        "--field",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="A field; VALUE is JSON where it can be read as such, else text.",
    ),
    click.option(
        "--from", "body", type=click.File("rb"), metavar="FILE|-", help="A JSON object of fields."
    ),
)


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
    @where
    def list_(
        pairs: tuple[str, ...],
        sort: str,
        limit: int | None,
        organization: str | None,
        project: str | None,
    ) -> None:
        filters: dict[str, list[str]] = {}
        for name, value in map(_pair, pairs):
            filters.setdefault(name, []).append(value)

        async def work(_: Configuration, service: Observability) -> None:
            await _list(service, kind, filters, sort, limit)

        run_observability(work, organization, project)

    @group.command(epilog=f"{example} show KEY", help=f"Show one {kind.name}.")
    @click.argument("key")
    @where
    def show(key: str, organization: str | None, project: str | None) -> None:
        async def work(_: Configuration, service: Observability) -> None:
            _print(await service.get(kind, key))

        run_observability(work, organization, project)


def _add_changing(group: click.Group, kind: Kind, example: str) -> None:
    @group.command(epilog=f"{example} create --field name=value", help=f"Create a {kind.name}.")
    @fields_given[0]
    @fields_given[1]
    @where
    def create(
        pairs: tuple[str, ...],
        body: IO[bytes] | None,
        organization: str | None,
        project: str | None,
    ) -> None:
        fields = _fields(pairs, body)

        async def work(_: Configuration, service: Observability) -> None:
            _print(await service.create(kind, fields))

        run_observability(work, organization, project)

    @group.command(
        epilog=f"{example} update KEY --field name=value",
        help=f"Change some fields of a {kind.name}; the others stay.",
    )
    @click.argument("key")
    @fields_given[0]
    @fields_given[1]
    @where
    def update(
        key: str,
        pairs: tuple[str, ...],
        body: IO[bytes] | None,
        organization: str | None,
        project: str | None,
    ) -> None:
        fields = _fields(pairs, body)

        async def work(_: Configuration, service: Observability) -> None:
            _print(await service.update(kind, key, fields))

        run_observability(work, organization, project)

    @group.command(
        epilog=f"{example} relate KEY device SERIAL",
        help=f"Create or change the relation of a {kind.name} to another resource.",
    )
    @click.argument("key")
    @click.argument("other", type=click.Choice(list(KINDS)))
    @click.argument("other_key")
    @fields_given[0]
    @where
    def relate(
        key: str,
        other: str,
        other_key: str,
        pairs: tuple[str, ...],
        organization: str | None,
        project: str | None,
    ) -> None:
        fields = _fields(pairs, None) if pairs else {}

        async def work(_: Configuration, service: Observability) -> None:
            _print(await service.relate(kind, key, KINDS[other], other_key, fields))

        run_observability(work, organization, project)

    @group.command(
        epilog=f"{example} delete KEY", help=f"Delete a {kind.name}, or several at once by id."
    )
    @click.argument("keys", nargs=-1, required=True, metavar="KEY...")
    @where
    def delete(keys: tuple[str, ...], organization: str | None, project: str | None) -> None:
        async def work(_: Configuration, service: Observability) -> None:
            if len(keys) == 1:
                await service.delete(kind, keys[0])
            else:
                await service.delete_many(kind, keys)

        run_observability(work, organization, project)


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


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"{text!r} is not NAME=VALUE")
    return name, value


def _fields(pairs: tuple[str, ...], body: IO[bytes] | None) -> dict[str, Any]:
    """Return the fields of --from, with those of --field over them. Raises UsageError."""
    fields: dict[str, Any] = {}
    if body is not None:
        try:
            fields = json.loads(body.read())
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--from: this is no JSON ({error})") from error
        if not isinstance(fields, dict):
            raise UsageError("--from: this is no JSON object")
    for name, text in map(_pair, pairs):
        try:
            fields[name] = json.loads(text)
        except (ValueError, RecursionError):
            fields[name] = text
    if not fields:
        raise UsageError("no fields are given", hint="--field NAME=VALUE, or --from FILE")
    return fields


def run_observability(
    work: Callable[[Configuration, Observability], Awaitable[None]],
    organization: str | None = None,
    project: str | None = None,
) -> None:
    """Run `work` with the service, for the slugs given or those of the profile."""

    async def connected() -> None:
        from agent.cli.session import services
        from agent.observability import Observability

        async with services() as (configuration, client):
            account = configuration.profile.account
            service = Observability(
                client, organization or account.organization, project or account.project
            )
            await work(configuration, service)

    run(connected())
