"""From the common options to the kit, its modem and the services; closed when a command ends."""

from __future__ import annotations

import contextlib
import functools
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from agent.cli.framework.command import options, run
from agent.errors import UsageError
from at.protocol.errors import PortNotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from agent.cloud import DeviceCloud
    from agent.config import Configuration
    from agent.config.identity_keys import IdentityKeys
    from agent.config.profile import KitSettings, Profile
    from agent.daemon.control.leased_transport import HeldKit
    from agent.daemon.snapshot import LinkStatus
    from agent.http import HttpClient
    from agent.http.client import KitGate
    from at.driver.modem import Modem
    from at.firmware_gate import FirmwareVerdict
    from at.transport.base import Transport


def configured() -> Configuration:
    """Return the configuration; its `profile.kit` is the chosen kit. Raises ConfigError.

    A port that is in the profile's table of kits chooses that kit; without a port it is the only
    kit of the table.
    """
    from agent.config.load import load

    given = options()
    configuration = load(given.profile, port=given.port)
    if not configuration.profile.kits:
        return configuration
    return replace(configuration, profile=_with_chosen_kit(configuration.profile))


def _with_chosen_kit(profile: Profile) -> Profile:
    import msgspec

    from agent.config.kits import kits_of
    from at.ports.usb import same_port

    port, table = profile.kit.port, list(kits_of(profile).values())
    matches = [kit for kit in table if same_port(kit.port, port)] if port else table
    return msgspec.structs.replace(profile, kit=matches[0]) if len(matches) == 1 else profile


def chosen_kit() -> KitSettings:
    """Return the chosen kit with its port. Raises ConfigError, UsageError, PortNotFound."""
    import msgspec

    profile = configured().profile
    if profile.kit.port:
        return profile.kit
    if profile.kits:
        raise UsageError(
            f"the profile has {len(profile.kits)} kits",
            hint="name one: " + ", ".join(f"--port {kit.port}" for kit in profile.kits.values()),
        )
    return msgspec.structs.replace(profile.kit, port=only_kit_port())


def identity_keys() -> IdentityKeys:
    """Return the keys that check what modems attest, as the profile names them.

    Raises ConfigError.
    """
    from agent.config.identity_keys import load_identity_keys

    return load_identity_keys(configured().profile.provisioning.attestation_keys)


def only_kit_port() -> str:
    """Return the AT port of the only kit that is plugged in. Raises UsageError, PortNotFound."""
    from at.ports.usb import known_kits, system_ports

    serials = sorted(known_kits(system_ports()))
    if not serials:
        raise PortNotFound(
            "no kit is plugged in, and no port is named",
            hint="--port PORT, or --port virtual: for a virtual modem",
        )
    if len(serials) > 1:
        raise UsageError(
            f"{len(serials)} kits are plugged in",
            hint="name one: " + ", ".join(f"--port serial:{serial}" for serial in serials),
        )
    return f"serial:{serials[0]}"


@contextlib.asynccontextmanager
async def kit_modem(
    *, baud: int | None = None, dialect: str | None = None, terminator: str = "auto"
) -> AsyncIterator[Modem]:
    """Open the modem of the chosen kit. Arguments take precedence over the profile.

    Raises AtError, and what `chosen_kit` raises.
    """
    kit = chosen_kit()
    async with modem_on(
        kit.port, baud=baud or kit.baud, dialect=dialect or kit.dialect, terminator=terminator
    ) as modem:
        yield modem


@contextlib.asynccontextmanager
async def modem_on(
    port: str, *, baud: int = 115200, dialect: str = "auto", terminator: str = "auto"
) -> AsyncIterator[Modem]:
    """Open the modem on `port`; if a running agent holds it, lease it when it is free.

    Arguments are those of `at.driver.modem.open_modem`. Raises AtError.
    """
    from at.driver.modem import Modem

    transport, link = await transport_on(port, baud)
    modem = Modem(
        transport,
        dialect=(link and link.dialect) or dialect if dialect == "auto" else dialect,
        terminator=(link and link.terminator) or terminator if terminator == "auto" else terminator,
    )
    await modem.open()
    try:
        yield modem
    finally:
        await modem.close()


def gate_of_chosen_kit() -> KitGate:
    """Return the gate of a command that has no modem open: it asks the chosen kit's, once.

    The port is opened when the gate is first awaited, and closed again; that raises FirmwareRefused
    and what `kit_modem` raises.
    """
    passed = False

    async def gate() -> None:
        nonlocal passed
        if not passed:
            (await verdict_on_chosen_kit()).require()
            passed = True

    return gate


async def verdict_on_chosen_kit() -> FirmwareVerdict:
    """Ask the chosen kit's modem for its firmware, on a port that is closed again.

    Raises what `kit_modem` raises.
    """
    from at.firmware_gate import read_verdict

    try:
        async with kit_modem() as modem:
            return await read_verdict(modem)
    except PortNotFound as absent:
        raise PortNotFound(
            f"{absent}; what is sent in a kit's name needs a kit to ask for its modem's firmware",
            hint=absent.hint,
        ) from absent


async def transport_on(port: str, baud: int) -> tuple[Transport, LinkStatus | None]:
    """Return the transport to a port, and the status of its link at an agent that leases it."""
    held = await held_kit(port)
    if held is None:
        from at.driver.opening import transport_of

        return transport_of(port, baud=baud), None
    from agent.daemon.control.leased_transport import LeasedTransport

    return LeasedTransport(held), held.link


async def held_kit(port: str, *, to_watch: bool = False) -> HeldKit | None:
    """Return the kit on `port` if a running agent holds it, else None."""
    from agent.config.paths import state_dir
    from agent.daemon.control.socket import control_sockets

    folder = state_dir()
    if not any(control_sockets(folder)):
        return None  # before more is imported
    from agent.daemon.control.leased_transport import find_held_kit

    return await find_held_kit(folder, port, to_watch=to_watch)


P = ParamSpec("P")


@asynccontextmanager
async def services() -> AsyncIterator[tuple[Configuration, HttpClient]]:
    """Open an HTTP client with the credentials of the chosen profile.

    The chosen kit's modem is asked for its firmware before a call in the kit's name. Yields the
    configuration and the client. Raises ConfigError, CredentialError.
    """
    from agent.wiring.service_client import connect

    configuration = configured()
    async with connect(configuration, kit_gate=gate_of_chosen_kit()) as client:
        yield configuration, client


def device_cloud_command(
    work: Callable[Concatenate[DeviceCloud, P], Awaitable[None]],
) -> Callable[P, None]:
    """Return a command that calls `work` with the device cloud and the command's own arguments."""

    @functools.wraps(work)
    def command(*arguments: P.args, **options: P.kwargs) -> None:
        async def connected() -> None:
            from agent.cloud import DeviceCloud

            async with services() as (_, client):
                await work(DeviceCloud(client), *arguments, **options)

        run(connected())

    return command
