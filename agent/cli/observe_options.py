"""What the commands of `cellagent observe` have in common: the service, its place, fields."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import click

from agent.cli.frame import run
from agent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from agent.config import Configuration
    from agent.observability import Observability

Command: TypeAlias = Callable[..., None]

_PLACE = (
    click.option("--organization", metavar="SLUG", help="Instead of account.organization."),
    click.option("--project", metavar="SLUG", help="Instead of account.project."),
)
_FIELDS = (
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


def pair(text: str) -> tuple[str, str]:
    """Return the two sides of NAME=VALUE. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"{text!r} is not NAME=VALUE")
    return name, value


def takes_fields(*, needed: bool) -> Callable[[Command], Command]:
    """Give a command --field and --from, and hand them to it as `fields`."""

    def add(command: Command) -> Command:
        # Read before the command's own work begins: standard input may take its time.
        @functools.wraps(command)
        def read(*, pairs: tuple[str, ...], body: IO[bytes] | None, **given: Any) -> None:
            command(fields=_fields(pairs, body, needed=needed), **given)

        return _with(read, _FIELDS)

    return add


def on_service(work: Callable[..., Awaitable[None]]) -> Command:
    """Make a command of `work`, which is given the service first.

    It is that of the profile's project, or of the one that --organization and --project name.
    """

    @functools.wraps(work)
    def command(*, organization: str | None, project: str | None, **given: Any) -> None:
        async def connected() -> None:
            async with observability(organization, project) as (_, service):
                await work(service, **given)

        run(connected())

    return _with(command, _PLACE)


@asynccontextmanager
async def observability(
    organization: str | None = None, project: str | None = None
) -> AsyncIterator[tuple[Configuration, Observability]]:
    """Give the configuration and its service, for the slugs given or those of the profile."""
    from agent.cli.session import services
    from agent.observability import Observability

    async with services() as (configuration, client):
        account = configuration.profile.account
        yield (
            configuration,
            Observability(client, organization or account.organization, project or account.project),
        )


def _with(command: Command, added: tuple[Callable[[Command], Command], ...]) -> Command:
    for option in reversed(added):
        command = option(command)
    return command


def _fields(pairs: tuple[str, ...], body: IO[bytes] | None, *, needed: bool) -> dict[str, Any]:
    """Return the fields of --from, with those of --field over them. Raises UsageError."""
    fields: dict[str, Any] = {}
    if body is not None:
        try:
            fields = json.loads(body.read())
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--from: this is no JSON ({error})") from error
        if not isinstance(fields, dict):
            raise UsageError("--from: this is no JSON object")
    for name, text in map(pair, pairs):
        try:
            fields[name] = json.loads(text)
        except (ValueError, RecursionError):
            fields[name] = text
    if needed and not fields:
        raise UsageError("no fields are given", hint="--field NAME=VALUE, or --from FILE")
    return fields
