"""Registers a board's key at the service, and proves that the service accepts its tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from agent.auth.bearer import BearerToken
from agent.auth.modem_jwt import AskModem, ModemJwt
from agent.call import Call, Host, Request, Response, Scheme
from agent.cloud import DeviceCloud, public_keys
from agent.cloud.device_reads import FetchDevice
from agent.config.secrets import Secret
from agent.errors import Conflict, NotFound
from agent.provisioning.planning.goal import RegistrationMethod
from agent.provisioning.running.steps.provisioning_commands import (
    ClaimDevice,
    ListProvisioningCommands,
)
from agent.retry import http_date
from at.tokens.attestation import read_attestation

if TYPE_CHECKING:
    from agent.cloud.device import Device
    from agent.http import HttpClient
    from agent.http.client import KitGate

_MODULE = "nRF93M1"


@dataclass(frozen=True, slots=True)
class ReadServiceTime(Call["datetime | None"]):
    """The service's time, by the Date header of an answer, whoever asks."""

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.NONE,)
    accepts: ClassVar[frozenset[int]] = frozenset({401, 403})

    def request(self) -> Request:
        """Return the GET."""
        return Request("GET", "/v1/account")

    def parse(self, response: Response) -> datetime | None:
        """Return the header's time, None where there is none."""
        return http_date(response.headers.get("date", ""))


class _SignedToken(BearerToken):
    """A device's token that was signed already: a refusal of this one is the answer."""

    scheme = Scheme.DEVICE_JWT


class KeyAnswer(Struct, frozen=True):
    """The status of a service's answer to a token; `at` is its time, None if it is not told."""

    status: int
    at: datetime | None

    @property
    def is_refusal(self) -> bool:
        """Whether the service did not accept the token."""
        return self.status == 401


@dataclass(frozen=True, slots=True)
class AskForKey(Call[KeyAnswer]):
    """Whether the service accepts a device's token, by an answer about the device or a 401."""

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.DEVICE_JWT,)
    accepts: ClassVar[frozenset[int]] = frozenset({401, 404})

    device_id: str

    def request(self) -> Request:
        """Return the GET."""
        return FetchDevice(self.device_id).request()

    def parse(self, response: Response) -> KeyAnswer:
        """Return the answer."""
        return KeyAnswer(response.status, http_date(response.headers.get("date", "")))


@dataclass(frozen=True, slots=True)
class Registrar:
    """Registers boards by one method. It sends the device's id and public key, and no secret."""

    client: HttpClient
    method: RegistrationMethod
    sub_type: str = ""
    tags: tuple[str, ...] = ()
    firmware_types: tuple[str, ...] = ("APP", "MODEM")
    commands: bool = False
    """A claimed device takes provisioning commands, and is brought into the team with its key."""

    def require(self, *, set_clock: bool, prove: bool) -> None:
        """Check the configuration before any board holds a key.

        Raises ConfigError where a host or the CA file is not configured, CredentialMissing.
        """
        for call in self.calls(set_clock=set_clock):
            self.client.require(call)
        if prove:  # with a token of the board's own
            self.client.base_url(Host.DEVICE_CLOUD)
            self.client.transport.require_trust()

    def calls(self, *, set_clock: bool) -> list[Call[Any]]:
        """Return what is sent, for a check of the configuration."""
        calls: list[Call[Any]] = []
        if self.method is RegistrationMethod.PUBLIC_KEY:
            calls += [public_keys.RegisterPublicKeys(()), public_keys.FetchBulkOperation("")]
        elif self.method is RegistrationMethod.ONBOARD:
            calls += [public_keys.OnboardDevices(()), public_keys.FetchBulkOperation("")]
        elif self.method is RegistrationMethod.CLAIM:
            calls.append(ClaimDevice(""))
            if self.commands:
                calls += [public_keys.OnboardDevices(()), public_keys.FetchBulkOperation("")]
        if set_clock:
            calls.append(ReadServiceTime())
        return calls

    async def submit(self, device_id: str, pem: str, attestation: str) -> str:
        """Send the registration; return the id of its bulk request, "" where there is none."""
        cloud = DeviceCloud(self.client)
        if self.method is RegistrationMethod.PUBLIC_KEY:
            return await cloud.register_public_keys([public_keys.PublicKey(device_id, pem)])
        if self.method is RegistrationMethod.ONBOARD or self.commands:
            new = public_keys.NewDevice(
                device_id, pem, self.sub_type, self.tags, self.firmware_types
            )
            return await cloud.onboard([new])
        await self.claim(attestation)
        return ""

    async def claim(self, attestation: str) -> None:
        """Claim a device for the team; one that it has claimed already is no error.

        Raises Conflict where another team has.
        """
        try:
            await self.client.send(ClaimDevice(attestation, self.tags))
        except Conflict as conflict:
            # A run that was cut off before its note claimed the device.
            try:
                uuid = read_attestation(attestation).device_uuid or ""
                await self.client.send(ListProvisioningCommands(uuid))
            except NotFound:
                conflict.hint = (
                    "another team has claimed it, and must release it there; if that is yours, "
                    "`cellagent config set api_key` takes its key"
                )
                raise conflict from None

    async def team(self) -> str:
        """Return the id of the team, which a registration token names."""
        return (await DeviceCloud(self.client).account()).team_id

    async def onboard_by_token(self, device_id: str, token: str) -> None:
        """Bring an nRF93M1 into the team; one that is in it already is no error.

        Raises Conflict where it is in another.
        """
        try:
            await DeviceCloud(self.client).onboard_by_token(
                device_id, token, sub_type=self.sub_type or _MODULE, tags=self.tags
            )
        except Conflict as conflict:
            # A run that was cut off before its note onboarded it.
            try:
                await self.require_in_team(device_id)
            except NotFound:
                raise conflict from None

    @property
    def can_look_up(self) -> bool:
        """Whether a device may be asked for without a token of its own."""
        return True

    async def require_in_team(self, device_id: str) -> None:
        """Raise NotFound where the team has no such device."""
        await self.client.send(FetchDevice(device_id))

    async def wait(self, request_id: str) -> None:
        """Wait until a bulk request has succeeded; its state is first read at once.

        Raises ServiceRefusal where it failed, DeadlineExceeded.
        """
        if request_id:
            await DeviceCloud(self.client).wait_for_bulk(request_id)

    async def service_time(self) -> datetime | None:
        """Return the service's time; None if it sends no date."""
        return await self.client.send(ReadServiceTime())

    async def host_clock_ahead_s(self, now: Callable[[], datetime]) -> float | None:
        """Return the seconds that this host is ahead of the service; None if it sends no date."""
        theirs = await self.service_time()
        return (now() - theirs).total_seconds() if theirs is not None else None

    @property
    def proof_finds_device(self) -> bool:
        """Whether a device's own token must find it once the service took its registration.

        Not where that gives the service a key alone; and not in a project, of whose devices no path
        is known.
        """
        return self.method is RegistrationMethod.ONBOARD or self.commands

    async def ask_for_key(self, device_id: str, token: str, kit_gate: KitGate) -> KeyAnswer:
        """Ask the service for a device by a token of its own. Raises what the gate raises."""
        acting = self.client.acting_as(_SignedToken(Secret(token)), kit_gate=kit_gate)
        return await acting.send(AskForKey(device_id))

    async def prove(self, device_id: str, ask: AskModem, kit_gate: KitGate) -> Device | None:
        """Send a JWT of the board, which the cloud accepts; return the device, None if it has none.

        Raises Unauthorized where it refuses the JWT, and what the gate raises.
        """
        acting = self.client.acting_as(ModemJwt(ask, device_id), kit_gate=kit_gate)
        try:
            return await acting.send(FetchDevice(device_id), scheme=Scheme.DEVICE_JWT)
        except NotFound:
            return None  # the token was accepted; only onboarding makes the key's owner a device
