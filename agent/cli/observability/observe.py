"""`cellagent observe`: the commands of each kind of resource, and those for keys and releases."""

import click

from agent.cli.framework.command import ProfileGroup, emit, emit_or_say, note, say
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import YES, ask
from agent.cli.observability.cycled_keys import check_storable, drop_ended_key, store_cycled_key
from agent.cli.observability.resource_commands import observability, resource_group, service_command
from agent.errors import UsageError
from agent.observability import Observability, Scope
from agent.observability.api.kinds import KINDS


@click.group(cls=ProfileGroup, name="observe")
def command() -> None:
    """Resources of the observability service: list, show, create, update, delete; keys."""


@command.command(epilog="Example: cellagent observe whoami")
async def whoami(session: Session) -> None:
    """Check the credential: the user, or the organizations that a token opens."""
    async with observability(session) as service:
        found = await service.whoami()
    several = found if isinstance(found, list) else [found]
    for resource in several:
        if session.json:
            emit(resource.raw)
        elif isinstance(found, list):
            say(f"organization {resource.raw.get('slug')}  {resource.raw.get('name') or ''}")
        else:
            say(f"{resource.raw.get('email')}  {resource.raw.get('name') or ''}")
            organizations = resource.raw.get("organizations")
            for organization in organizations if isinstance(organizations, list) else []:
                if isinstance(organization, dict):
                    say(f"  organization {organization.get('slug')}")


@command.command(name="project-key", epilog="Example: cellagent observe project-key")
@click.option(
    "--cycle", is_flag=True,
    help="Replace it: the old key stops at once, everywhere. This profile keeps the new one.",
)  # fmt: skip
@service_command
async def project_key(session: Session, service: Observability, cycle: bool) -> None:
    """Show the key with which devices push data; every member may see it."""
    account = session.profile.account
    stores = cycle and service.scope == Scope(account.organization, account.project)
    if stores:
        check_storable(session.configuration)
    key = await (service.cycle_project_key() if cycle else service.project_key())
    emit_or_say(session, {"project_key": key}, key)
    if stores:
        await store_cycled_key(session.configuration, "project_key", key)
    elif cycle:
        note(f"{service.scope.project} is not the project of this profile: nothing is kept")


@command.command(name="user-key", epilog="Example: cellagent observe user-key --cycle")
@click.option("--cycle", is_flag=True, help="Make or replace it, and keep it for this profile.")
@click.option("--delete", is_flag=True, help="End it.")
@YES
async def user_key(session: Session, cycle: bool, delete: bool, yes: bool) -> None:
    """Show whether you have a user API key; it is yours, not a project's, and never printed."""
    if cycle and delete:
        raise UsageError("--cycle and --delete exclude each other")
    if delete:
        ask("End your user API key, wherever it is used?", yes=yes)
    configuration, stored_in = session.configuration, None
    async with observability(session) as service:
        if delete:
            await service.delete_user_key()
            await drop_ended_key(configuration, "user_api_key")
        elif cycle:
            check_storable(configuration)
            key = await service.cycle_user_key()
            stored_in = await store_cycled_key(configuration, "user_api_key", key.reveal())
        there = False if delete else cycle or await service.user_key() is not None
    emit_or_say(
        session,
        {"user_key": there, "file": str(stored_in) if stored_in else None},
        "you have a user API key" if there else "you have no user API key",
    )


@command.command(epilog="Example: cellagent observe openapi > observability.json")
async def openapi(session: Session) -> None:
    """Print the service's own description of itself, OpenAPI as JSON."""
    async with observability(session) as service:
        emit(await service.openapi())


@command.command(name="latest-release", epilog="Example: cellagent observe latest-release S hw app")
@click.argument("serial")
@click.argument("hardware_version")
@click.argument("software_type")
@click.option("--current", "current", default="", metavar="VERSION", help="What the device runs.")
async def latest_release(
    session: Session, serial: str, hardware_version: str, software_type: str, current: str
) -> None:
    """Show the newest release for a device, as the device itself would ask, by project key."""
    async with observability(session) as service:
        found = await service.latest_release(serial, hardware_version, software_type, current)
    emit_or_say(
        session,
        {"release": found.raw if found else None},
        f"release {found.raw.get('version')}" if found else "there is nothing newer",
    )


for _kind in KINDS.values():
    command.add_command(resource_group(_kind))
