"""`cellagent observe`: resources of the observability service."""

from __future__ import annotations

import click

from agent.cli.framework.command import AgentGroup, emit, note, options, run, say
from agent.cli.observability.resource_commands import (
    observability,
    resource_group,
    service_command,
)
from agent.errors import UsageError
from agent.observability import KINDS, Observability


@click.group(cls=AgentGroup, name="observe")
def command() -> None:
    """Resources of the observability service: list, show, create, update, delete; keys."""


@command.command(epilog="Example: cellagent observe whoami")
def whoami() -> None:
    """Check the credential: the user, or the organizations that a token opens."""

    async def work() -> None:
        async with observability() as (_, service):
            found = await service.whoami()
            several = found if isinstance(found, list) else [found]
            for resource in several:
                if options().json:
                    emit(resource.raw)
                elif isinstance(found, list):
                    say(f"organization {resource.raw.get('slug')}  {resource.raw.get('name', '')}")
                else:
                    say(f"{resource.raw.get('email')}  {resource.raw.get('name', '')}")
                    for organization in resource.raw.get("organizations", []):
                        say(f"  organization {organization.get('slug')}")

    run(work())


@command.command(name="project-key", epilog="Example: cellagent observe project-key")
@click.option("--cycle", is_flag=True, help="Replace it: the old key stops at once, everywhere.")
@service_command
async def project_key(service: Observability, cycle: bool) -> None:
    """Show the key with which devices push data; every member may see it."""
    key = await (service.cycle_project_key() if cycle else service.project_key())
    if options().json:
        emit({"project_key": key})
    else:
        say(key)


@command.command(name="user-key", epilog="Example: cellagent observe user-key --cycle")
@click.option("--cycle", is_flag=True, help="Make or replace it, and keep it for this profile.")
@click.option("--delete", is_flag=True, help="End it.")
def user_key(cycle: bool, delete: bool) -> None:
    """Show whether you have a user API key; it is yours, not a project's, and never printed."""
    if cycle and delete:
        raise UsageError("--cycle and --delete exclude each other")

    async def work() -> None:
        async with observability() as (configuration, service):
            from agent.config.write import set_secret

            stored_in = None
            if delete:
                await service.delete_user_key()
            elif cycle:
                key = await service.cycle_user_key()
                stored_in = set_secret(
                    "user_api_key",
                    key.reveal(),
                    profile=configuration.name,
                    file=configuration.file,
                )
                note(f"the new key is kept in {stored_in}; the old one has stopped")
            there = False if delete else cycle or await service.user_key() is not None
            if options().json:
                emit({"user_key": there, "file": str(stored_in) if stored_in else None})
            else:
                say("you have a user API key" if there else "you have no user API key")

    run(work())


@command.command(name="latest-release", epilog="Example: cellagent observe latest-release S hw app")
@click.argument("serial")
@click.argument("hardware_version")
@click.argument("software_type")
@click.option("--current", "current", default="", metavar="VERSION", help="What the device runs.")
def latest_release(serial: str, hardware_version: str, software_type: str, current: str) -> None:
    """Show the newest release for a device, as the device itself would ask, by project key."""

    async def work() -> None:
        async with observability() as (_, service):
            found = await service.latest_release(serial, hardware_version, software_type, current)
            if options().json:
                emit({"release": found.raw if found else None})
            else:
                say(f"release {found.raw.get('version')}" if found else "there is nothing newer")

    run(work())


for _kind in KINDS.values():
    command.add_command(resource_group(_kind))
