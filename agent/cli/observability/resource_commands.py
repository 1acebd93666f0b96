"""The commands of each kind of resource of the observability service, and what opens it."""

import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import IO, TypeAlias

import click
import msgspec

from agent.cli.framework.command import ProfileGroup, emit, note, say, together
from agent.cli.framework.listing import PER_PAGE, ListWriter, first
from agent.cli.framework.saved_text import whole_text
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import YES, ask, show_progress
from agent.errors import UsageError
from agent.observability import Observability, Resource, ResourceKind
from agent.observability.api.kinds import KINDS
from agent.observability.api.paging import LARGEST_PAGE
from agent.observability.api.resource_names import NAMES

Command: TypeAlias = Callable[..., Awaitable[None]]

_takes_scope = together(
    click.option("--organization", metavar="SLUG", help="Instead of account.organization."),
    click.option("--project", metavar="SLUG", help="Instead of account.project."),
)
_takes_fields = together(
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


def name_and_value(text: str) -> tuple[str, str]:
    """Return name and value of NAME=VALUE. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"{text!r} is not NAME=VALUE")
    return name, value


def takes_fields(*, needed: bool) -> Callable[[Command], Command]:
    """Add --field and --from to a command, which gets them as `fields`, a dict."""

    def add(command: Command) -> Command:
        # Read before the command's own work begins: standard input may take its time.
        @functools.wraps(command)
        async def read(
            session: Session, *, pairs: tuple[str, ...], body: IO[bytes] | None, **given: object
        ) -> None:
            await command(session, fields=_fields(pairs, body, needed=needed), **given)

        return _takes_fields(read)

    return add


def service_command(work: Callable[..., Awaitable[None]]) -> Command:
    """Return a command that calls `work` with session, service and the command's own arguments.

    --organization and --project take precedence over those of the profile.
    """

    @functools.wraps(work)
    async def command(
        session: Session, *, organization: str | None, project: str | None, **given: object
    ) -> None:
        async with observability(session, organization, project) as service:
            await work(session, service, **given)

    return _takes_scope(command)


@asynccontextmanager
async def observability(
    session: Session, organization: str | None = None, project: str | None = None
) -> AsyncIterator[Observability]:
    """Open the service of the profile; slugs that are given take precedence over the profile's."""
    account = session.profile.account
    async with session.client() as client:
        yield Observability(
            client, organization or account.organization, project or account.project
        )


def _fields(pairs: tuple[str, ...], body: IO[bytes] | None, *, needed: bool) -> dict[str, object]:
    """Return the fields of --from, updated with those of --field. Raises UsageError."""
    fields: dict[str, object] = {}
    if body is not None:
        try:
            fields = json.loads(whole_text(body, body.name))
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--from: this is no JSON ({error})") from error
        if not isinstance(fields, dict):
            raise UsageError("--from: this is no JSON object")
    for name, text in map(name_and_value, pairs):
        fields[name] = _field(name, text)
    if needed and not fields:
        raise UsageError("no fields are given", hint="`--field NAME=VALUE`, or `--from FILE`")
    return fields


def _field(name: str, text: str) -> object:
    """Return the value of a field: JSON or text. A name is a text, though it may look like 1.2."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if name in NAMES and not isinstance(value, str | list) else value


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


_CREATED_WITH = {
    "release": ("version=1.2.3",),
    "cohort": ("slug=bench",),
    "device": ("device_serial=kit-1", "hardware_version=nrf9161dk"),
    "deployment": ("release=1.2.3", "cohort=bench"),
}
"""The fields without which a resource of the kind is refused."""


def resource_group(kind: ResourceKind) -> click.Group:
    """Return the commands of one kind of resource."""

    @click.group(cls=ProfileGroup, name=kind.name, help=f"{kind.plural.capitalize()}.")
    def group() -> None:
        pass

    example = f"Example: cellagent observe {kind.name}"
    one = f"{'an' if kind.name[0] in 'aeiou' else 'a'} {kind.name}"
    _add_reading(group, kind, example)
    _add_changing(group, kind, example, one)
    _add_deleting(group, kind, example, one)
    return group


def _add_reading(group: click.Group, kind: ResourceKind, example: str) -> None:
    @group.command(name="list", epilog=f"{example} list --json", help=f"List the {kind.plural}.")
    @click.option("--filter", "pairs", multiple=True, metavar="NAME=VALUE", help="May be repeated.")
    @click.option("--sort", default="", metavar="[-]FIELD", help="Ascending, or descending with -.")
    @click.option("--limit", type=click.IntRange(1), metavar="N", help="No more than N.")
    @click.option("--page", type=click.IntRange(1), metavar="N", help="This page alone, from 1.")
    @PER_PAGE
    @service_command
    async def list_(
        session: Session,
        service: Observability,
        pairs: tuple[str, ...],
        sort: str,
        limit: int | None,
        page: int | None,
        per_page: int | None,
    ) -> None:
        filters: dict[str, list[str]] = {}
        for name, value in map(name_and_value, pairs):
            filters.setdefault(name, []).append(value)
        if page is None and per_page is None:
            await _list(session, service, kind, filters, sort, limit)
        elif limit is not None:
            raise UsageError("--limit goes through the pages: leave out --page and --per-page")
        else:
            await _list_page(session, service, kind, filters, sort, page or 1, per_page or 20)

    @group.command(epilog=f"{example} show KEY", help=f"Show one {kind.name}.")
    @click.argument("key")
    @service_command
    async def show(session: Session, service: Observability, key: str) -> None:
        _print(session, await service.get(kind, key))


def _add_changing(group: click.Group, kind: ResourceKind, example: str, one: str) -> None:
    fields = " ".join(f"--field {each}" for each in _CREATED_WITH.get(kind.name, ["name=value"]))

    @group.command(epilog=f"{example} create {fields}", help=f"Create {one}.")
    @takes_fields(needed=True)
    @service_command
    async def create(session: Session, service: Observability, fields: dict[str, object]) -> None:
        _print(session, await service.create(kind, fields))

    @group.command(
        epilog=f"{example} update KEY --field name=value",
        help=f"Change some fields of {one}; the others stay.",
    )
    @click.argument("key")
    @takes_fields(needed=True)
    @service_command
    async def update(
        session: Session, service: Observability, key: str, fields: dict[str, object]
    ) -> None:
        _print(session, await service.update(kind, key, fields))

    @group.command(
        epilog=f"{example} relate KEY device SERIAL",
        help=f"Create or change the relation of {one} to another resource.\n\n"
        f"KIND is one of: {', '.join(KINDS)}.",
    )
    @click.argument("key")
    @click.argument("other", metavar="KIND", type=click.Choice(list(KINDS)))
    @click.argument("other_key")
    @takes_fields(needed=False)
    @service_command
    async def relate(
        session: Session,
        service: Observability,
        key: str,
        other: str,
        other_key: str,
        fields: dict[str, object],
    ) -> None:
        _print(session, await service.relate(kind, key, KINDS[other], other_key, fields))


def _add_deleting(group: click.Group, kind: ResourceKind, example: str, one: str) -> None:
    @group.command(
        epilog=f"{example} delete KEY --yes", help=f"Delete {one}, or several at once by id."
    )
    @click.argument("keys", nargs=-1, required=True, metavar="KEY...")
    @YES
    @service_command
    async def delete(
        _session: Session, service: Observability, keys: tuple[str, ...], yes: bool
    ) -> None:
        what = f"the {kind.name if len(keys) == 1 else kind.plural} {', '.join(keys)}"
        ask(f"Delete {what}?", yes=yes)
        if len(keys) == 1:
            await service.delete(kind, keys[0])
        else:
            await service.delete_many(kind, keys)


async def _list(
    session: Session,
    service: Observability,
    kind: ResourceKind,
    filters: Mapping[str, object],
    sort: str,
    limit: int | None,
) -> None:
    add, out = _writer(session, kind)
    per_page = min(limit or LARGEST_PAGE, LARGEST_PAGE)
    progress = functools.partial(show_progress, kind.plural)
    found = service.list(kind, filters, sort=sort, per_page=per_page, progress=progress)
    async for resource in first(found, limit):
        add(resource)
    out.end()


async def _list_page(
    session: Session,
    service: Observability,
    kind: ResourceKind,
    filters: Mapping[str, object],
    sort: str,
    page: int,
    per_page: int,
) -> None:
    resources, at = await service.page(kind, filters, sort=sort, page=page, per_page=per_page)
    add, out = _writer(session, kind)
    for resource in resources:
        add(resource)
    where = f"page {at.page} of {at.page_count}, {at.total_count} {kind.plural} in all"
    out.end_page(msgspec.to_builtins(at), where)


def _writer(session: Session, kind: ResourceKind) -> tuple[Callable[[Resource], None], ListWriter]:
    """Return what writes one resource of a kind, and the list that it is written to."""
    columns = COLUMNS[kind.name]
    out = ListWriter(session, *(column.replace(".", " ") for column in columns))

    def add(resource: Resource) -> None:
        out.add(resource.raw, *(_value_at(resource.raw, column) for column in columns))

    return add, out


def _print(session: Session, resource: Resource | None) -> None:
    if session.json:
        emit(resource.raw if resource else {})
    elif resource is None:
        note("done; the service shows nothing of it")
    else:
        for name, value in resource.raw.items():
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            say(f"{name:20} {shown}")


def _value_at(raw: Mapping[str, object], dotted: str) -> object:
    value: object = raw
    for name in dotted.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
