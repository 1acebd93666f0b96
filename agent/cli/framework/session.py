"""The session of one command: its common options, and what follows from them, each made once."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Concatenate, ParamSpec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from agent.auth.modem_jwt import AskModem
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
    from at.ports.usb import Listing
    from at.transport.base import Transport


@dataclass
class Session:
    """The common options of a command, and the profile, kit and client that they choose.

    The file of the profile is read, and the serial ports are listed, when they are first asked for
    and not again; `dataclasses.replace(session)` is one that asks anew. What fails raises where it
    is asked for: ConfigError, UsageError, PortNotFound.
    """

    json: bool = False
    profile_name: str | None = None
    """The value of --profile."""
    port: str | None = None
    """The value of --port."""
    verbosity: int = 0
    is_waiting: bool = False
    """A person sees what is waited for: of what that asks for meanwhile nothing is shown."""
    goes_on: str = ""
    """The hint after Ctrl-C, where something was begun that can be gone on with."""

    @cached_property
    def loaded(self) -> Configuration:
        """The configuration as it was read: `profile.kit` holds what all kits share."""
        from agent.config.load import load

        return load(self.profile_name, port=self.port)

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration; its `profile.kit` is the chosen kit.

        A port that is in the profile's table of kits chooses that kit; without a port it is the
        only kit of the table.
        """
        loaded = self.loaded
        if not loaded.profile.kits:
            return loaded
        import msgspec

        from agent.config.kits import name_of

        profile, own = self._with_chosen_kit(), loaded.origins
        if name := name_of(profile):
            of_kit = (
                (f"kit.{key}", own[f"kits.{name}.{key}"]) for key in profile.kit.__struct_fields__
            )
            own = {**own, **dict(of_kit), "kit.port": own["kit.port"]}
        return msgspec.structs.replace(loaded, profile=profile, origins=own)

    @property
    def profile(self) -> Profile:
        """The profile of `configuration`."""
        return self.configuration.profile

    @cached_property
    def kit(self) -> KitSettings:
        """The chosen kit with its port; without any it is the only one that is plugged in."""
        import msgspec

        from agent.errors import UsageError

        profile = self.profile
        if profile.kit.port:
            return profile.kit
        if profile.kits:
            raise UsageError(
                f"the profile has {len(profile.kits)} kits", hint=_name_one(profile.kits)
            )
        return msgspec.structs.replace(profile.kit, port=self.only_kit_port())

    @cached_property
    def identity_keys(self) -> IdentityKeys:
        """The keys that check what modems attest, as the profile names them."""
        from agent.config.identity_keys import load_identity_keys

        return load_identity_keys(self.profile.provisioning.attestation_keys)

    @cached_property
    def usb_ports(self) -> Listing:
        """The serial ports of this system as they were when first asked for."""
        from at.ports.usb import system_ports

        return functools.cache(system_ports)

    def only_kit_port(self) -> str:
        """Return the AT port of the only kit that is plugged in."""
        from agent.errors import UsageError
        from at.ports.usb import known_kits
        from at.protocol.errors import PortNotFound

        serials = sorted(known_kits(self.usb_ports()))
        if not serials:
            raise PortNotFound(
                "no kit is plugged in, and no port is named",
                hint="plug one in, or name its port; with none: `--port virtual:`",
            )
        if len(serials) > 1:
            raise UsageError(
                f"{len(serials)} kits are plugged in",
                hint=_name_one(f"serial:{serial}" for serial in serials),
            )
        return f"serial:{serials[0]}"

    @contextlib.asynccontextmanager
    async def modem(
        self,
        *,
        baud: int | None = None,
        dialect: str | None = None,
        terminator: str = "auto",
        owed_bytes: int = 0,
    ) -> AsyncIterator[Modem]:
        """Open the chosen kit's modem. Arguments take precedence over the profile.

        Raises AtError.
        """
        kit = self.kit
        async with modem_on(
            kit.port,
            self.usb_ports,
            baud=baud or kit.baud,
            dialect=dialect or kit.dialect,
            terminator=terminator,
            owed_bytes=owed_bytes,
        ) as modem:
            yield modem

    def client(
        self,
        *,
        kit_gate: KitGate | None = None,
        ask_modem: AskModem | None = None,
        unattended: bool = False,
    ) -> HttpClient:
        """Return an HTTP client with the profile's credentials; nothing is opened yet.

        Before a call in the kit's name the chosen kit's modem is asked for its firmware, or
        `kit_gate` is. A person who is there sees what is waited for. Other arguments as for
        `agent.wiring.service_client.connect`. Raises CredentialError.
        """
        from agent.cli.framework.terminal import waiting
        from agent.wiring.service_client import connect

        def shown(host: str) -> contextlib.AbstractAsyncContextManager[None]:
            return contextlib.nullcontext() if unattended else waiting(f"waiting for {host}", self)

        return connect(
            self.configuration,
            kit_gate=kit_gate or self.require_firmware,
            ask_modem=ask_modem,
            unattended=unattended,
            while_waiting=shown,
        )

    async def require_firmware(self) -> None:
        """Ask the chosen kit's modem for its firmware, once, on a port that is closed again.

        This is the gate of a command that has no modem open. Raises FirmwareRefused, AtError.
        """
        if not self._firmware_passed:
            (await self.firmware_verdict()).require()
            self._firmware_passed = True

    async def firmware_verdict(self) -> FirmwareVerdict:
        """Ask the chosen kit's modem for its firmware, on a port that is closed again.

        Raises AtError.
        """
        from at.firmware_gate import read_verdict
        from at.protocol.errors import PortNotFound

        try:
            async with self.modem() as modem:
                return await read_verdict(modem)
        except PortNotFound as absent:
            raise PortNotFound(
                f"{absent}; what is sent in a kit's name needs a kit to ask for its modem's "
                "firmware",
                hint=absent.hint,
            ) from absent

    _firmware_passed = False

    def _with_chosen_kit(self) -> Profile:
        import msgspec

        from agent.config.kits import kits_of, require_different_ports
        from at.ports.usb import same_port

        profile = self.loaded.profile
        port, kits = profile.kit.port, kits_of(profile)
        if port:
            listing = self.usb_ports
            kits = {name: kit for name, kit in kits.items() if same_port(kit.port, port, listing)}
            require_different_ports(kits, listing)
        chosen = list(kits.values())
        return msgspec.structs.replace(profile, kit=chosen[0]) if len(chosen) == 1 else profile


@contextlib.asynccontextmanager
async def modem_on(
    port: str,
    listing: Listing,
    *,
    baud: int = 115200,
    dialect: str = "auto",
    terminator: str = "auto",
    owed_bytes: int = 0,
) -> AsyncIterator[Modem]:
    """Open the modem on `port`; if a running agent holds it, lease it when it is free.

    A kit's number is looked up in `listing`. Other arguments are those of
    `at.driver.modem.Modem.open`. Raises AtError.
    """
    from at.driver.modem import Modem
    from at.protocol.errors import NoAnswer

    transport, link = await transport_on(port, listing, baud)
    modem = Modem(
        transport,
        dialect=(link and link.dialect) or dialect if dialect == "auto" else dialect,
        terminator=(link and link.terminator) or terminator if terminator == "auto" else terminator,
    )
    try:
        await modem.open(owed_bytes=owed_bytes)
    except NoAnswer as error:
        is_mute = not error.received
        if is_mute and ((link and link.dialect) or _has_answered(port, listing)):
            raise NoAnswer(
                f"{port}: the kit answered AT here before and now says nothing: it hangs, sleeps or"
                " is restarting",
                hint="press its reset button, or unplug it and plug it in again; then "
                "`cellagent modem at AT`",
            ) from error
        raise
    try:
        yield modem
    finally:
        await modem.close()


def _has_answered(port: str, listing: Listing) -> bool:
    """Return whether the agent has spoken to a kit on this port."""
    from agent.daemon.kit.store import record_at
    from agent.files.paths import state_dir
    from agent.files.trusted_places import UntrustedPlace
    from at.ports.usb import usb_kit_at

    try:
        return record_at(state_dir() / "kits", port, usb_kit_at(port, listing)) is not None
    except UntrustedPlace:
        return False


async def transport_on(
    port: str, listing: Listing, baud: int
) -> tuple[Transport, LinkStatus | None]:
    """Return the transport to a port, and the status of its link at an agent that leases it."""
    held = await held_kit(port, listing)
    if held is None:
        from at.driver.opening import transport_of

        return transport_of(port, baud=baud, listing=listing), None
    from agent.daemon.control.leased_transport import LeasedTransport

    return LeasedTransport(held), held.link


async def held_kit(port: str, listing: Listing, *, to_watch: bool = False) -> HeldKit | None:
    """Return the kit on `port` if a running agent holds it, else None."""
    from agent.daemon.control.socket import control_sockets
    from agent.files.paths import state_dir

    folder = state_dir()
    if not any(control_sockets(folder)):
        return None  # before more is imported
    from agent.daemon.control.leased_transport import find_held_kit

    return await find_held_kit(folder, port, to_watch=to_watch, listing=listing)


def _name_one(ports: Iterable[str]) -> str:
    import shlex  # only a failure pays for it

    return "name one: " + ", ".join(f"`--port {shlex.quote(port)}`" for port in ports)


P = ParamSpec("P")


def device_cloud_command(
    work: Callable[Concatenate[Session, DeviceCloud, P], Awaitable[None]],
) -> Callable[Concatenate[Session, P], Awaitable[None]]:
    """Return a command that calls `work` with the device cloud and the command's own arguments."""

    @functools.wraps(work)
    async def command(session: Session, /, *arguments: P.args, **options: P.kwargs) -> None:
        from agent.cloud import DeviceCloud

        async with session.client() as client:
            await work(session, DeviceCloud(client), *arguments, **options)

    return command
