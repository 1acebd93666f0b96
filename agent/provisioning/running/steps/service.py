"""The steps of a board that call the service: the time, the registration, the proof."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from msgspec import Struct

from agent.auth.token_lifetime import LIFE_S
from agent.errors import NotFound, RefusedByRule, ServiceRefusal, Unauthorized
from agent.provisioning.boards.board import uninterrupted
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ca.certificates import key_fingerprint
from agent.provisioning.planning.goal import Goal, RegistrationMethod
from agent.provisioning.planning.other_keys import (
    IDENTITY_KEY,
    BegunKeyAtWork,
    Keys,
    OtherKeyAtWork,
    ends_key,
    key_of,
)
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.board_history import registration_name
from agent.provisioning.running.host_clock import AGREES_S
from agent.provisioning.running.run_state import RunState
from at.commands.credentials import CredentialType
from at.commands.jwt import NO_TIME
from at.protocol.errors import CommandRejected
from at.tokens.jwt import WrongAlgorithm

if TYPE_CHECKING:
    from datetime import datetime

    from agent.cloud.device import Device
    from agent.provisioning.running.board_ledger import BoardLedger
    from agent.provisioning.running.steps.registrar import Registrar
    from at.tokens.jwt import Jwt

_WAS_GIVEN = "the service took this key in this run: run the same command again in a minute"
_OTHER_TIME = f"the modem's clock differs from the service's: {NO_TIME}"
_NO_DEVICE = (
    "the service accepts the token, took the registration in this run, and has no device {}"
)
_OTHER_TEAM = "the service has device {} in another team than that of the API key"
_ITS_KEY = (
    "`cellagent config set api_key` takes that team's key; where it is the wrong team, delete the "
    "device there, then run the same command again: it is registered again, with the same key"
)
_SOON = "run the same command again in a minute: it is registered again then, with the same key"
_NOT_GIVEN = (
    "no key is given to the service: `--registration public-key` gives it, `--no-proof` asks for "
    "none"
)
_ANOTHER = (
    "the service may have another of the board's keys: `--second-tag` registers that of tag {}, "
    "and ends the life of the other"
)
_AT_WORK = (
    "the service has {key} of this modem, which this ledger did not register. The service keeps "
    "one key for each device: with a key of tag {tag} the tokens of that one are refused (401)"
)
_BEGUN_AT_WORK = (
    "the service has the key of tag {tag}, which this ledger does not know: a run with it was cut "
    "off as it made a key there, and one with another ledger made this one. Its tokens are refused "
    "(401) once another key takes its place"
)
_KEEPS = (
    "`{option}` allows it; if this ledger is a copy of an older one, go on with the one that "
    "has that key"
)
_IDENTITY_KEEPS = (
    "`{option}` allows it; a board whose firmware signs with that key is right as it is"
)
_BEGUN_KEEPS = "go on with the ledger that has that key; `{option}` deletes it and makes another"
_NEW_S = 3600  # a run takes no longer: what is older, by the clock of an accepted token, was there
_NO_ANSWER = (
    "the modem's clock differs from the service's: a token that the service refuses does not tell "
    "whether it has {key}"
)


class ServiceSteps(Struct, frozen=True):
    """The steps that call the service.

    `alone`: by the ledger no other key works as this device, so that a registration of the board's
    key ends no other. `ask_keys` are the tags of the modem's keys of which the service may have one
    all the same: other ones, that in which a run began to make a key, and the identity key's, None.
    """

    port: ModemBoard
    ledger: BoardLedger
    goal: Goal
    registrar: Registrar
    alone: bool
    ask_keys: Keys = ()

    async def ask_other_keys(self) -> None:
        """Ask the service for the keys one of which may be that of the device, by their tags.

        Raises OtherKeyAtWork for one that may not be replaced, RefusedByRule where the modem's
        clock is too wrong for an answer.
        """
        at_work = [tag for tag in self.ask_keys if await self._accepts(tag)]
        if not at_work:
            self.ledger.finish(ProvisioningStep.OTHER_KEYS, "the service has none of them")
            return
        goal, other = self.goal, at_work[0]
        option = ends_key(goal, other)
        if other == goal.security_tag:
            reason = _BEGUN_AT_WORK.format(tag=other)
            if (other, CredentialType.CLIENT_PRIVATE_KEY) not in goal.replace:
                raise BegunKeyAtWork(reason, hint=_BEGUN_KEEPS.format(option=option))
        else:
            reason = _AT_WORK.format(key=key_of(other), tag=goal.security_tag)
            keeps = _IDENTITY_KEEPS if other is IDENTITY_KEY else _KEEPS
            if not goal.second_tag:
                raise OtherKeyAtWork(reason, hint=keeps.format(option=option))
        self.ledger.consent(f"{option}: {reason}")
        self.ledger.finish(ProvisioningStep.OTHER_KEYS, f"the service has {key_of(other)}")

    async def _accepts(self, tag: int | None) -> bool:
        """Whether the service accepts a token for this device that the key of a tag signed."""
        device_id = self.ledger.record.device_id
        try:
            signed = await uninterrupted(self.port.token(device_id, LIFE_S, tag))
        except (CommandRejected, WrongAlgorithm):
            return False  # a key that signs nothing which the service takes, such as an RSA key
        gate = self.port.require_firmware
        answer = await self.registrar.ask_for_key(device_id, signed.token, gate)
        if answer.is_refusal and _has_other_time(signed, answer.at):
            raise RefusedByRule(_NO_ANSWER.format(key=key_of(tag)), hint=NO_TIME)
        if answer.status != 404:
            return not answer.is_refusal
        # A key without a device; or the service says so of a device that it has not whoever asks.
        body, _, signature = signed.token.rpartition(".")
        broken = f"{body}.{signature[::-1]}"
        return (await self.registrar.ask_for_key(device_id, broken, gate)).is_refusal

    async def claim(self) -> None:
        """Claim the device for the team with its attestation token."""
        await self.port.require_same("the claim")
        await self._keep_attestation()
        await self.registrar.claim(self.ledger.record.attestation)
        self.ledger.finish(ProvisioningStep.CLAIM, "claimed")

    async def _keep_attestation(self) -> None:
        """Have the board attest what it is, before the service hears of it."""
        token = await uninterrupted(self.port.attestation())
        await self.port.require_same("its attestation")
        await self.ledger.keep_attestation(token)

    async def register(self) -> None:
        """Register the board's key; a request that is under way is only waited for."""
        await self.port.require_same("registration")
        record = self.ledger.record
        key = key_fingerprint(record.public_key)
        registered = registration_name(self.goal, record.device_id)
        detail, method = f"{registered} {key}", self.goal.registered_by
        request_id = await self._finished_request(detail)
        if not request_id:
            # Its request is that of an earlier registration, which may not be taken for this one's.
            self.ledger.update(request_id="")
            if self.goal.gives_key:
                await self.ledger.begin_registration(detail, method)
            else:
                await self.ledger.begin(ProvisioningStep.REGISTER, detail)
            request_id = await self._submit()
        if self.goal.gives_key:
            self.ledger.finish_registration(
                request_id, method, registered_key=key, registered_as=registered
            )
        else:
            self.ledger.finish(ProvisioningStep.REGISTER, request_id, registered_as=registered)

    async def _finished_request(self, registration: str) -> str:
        """Return the id of the request of an interrupted run, once it has succeeded.

        "" where there is none, or it failed: then it is sent again, with the same key.
        """
        request_id = self.ledger.record.request_id
        if not request_id or not self.alone:  # another key may have been registered since
            return ""
        if await self.ledger.unfinished(ProvisioningStep.REGISTER) != registration:
            return ""
        try:
            await self.registrar.wait(request_id)
        except ServiceRefusal:
            return ""
        return request_id

    async def _submit(self) -> str:
        """Send the registration and wait for its end; return the request's id, "" without one."""
        registrar = self.registrar
        certificate = self.ledger.record.certificate if self.goal.onboards else ""
        attests = {RegistrationMethod.CLAIM, RegistrationMethod.ATTESTATION}
        if registrar.method in attests and not registrar.commands:
            await self._keep_attestation()
        record = self.ledger.record
        request_id = await registrar.submit(
            record.device_id, certificate or record.public_key, record.attestation
        )
        self.ledger.update(request_id=request_id)
        await registrar.wait(request_id)
        return request_id

    async def prove(self) -> None:
        """Prove that the service accepts a token signed by the board, and has the device.

        Raises Unauthorized, NotFound.
        """
        registrar, device_id = self.registrar, self.ledger.record.device_id
        signed: list[Jwt] = []

        async def ask(subject: str, life_s: int) -> Jwt:
            tag = self.goal.security_tag
            signed.append(await uninterrupted(self.port.token(subject, life_s, tag)))
            return signed[-1]

        while True:
            try:
                device = await registrar.prove(device_id, ask, self.port.require_firmware)
                if device and registrar.proof_finds_device:
                    await self._require_in_team(device_id)
                if device or not registrar.proof_finds_device:
                    break
                if self.ledger.state is RunState.REGISTERED:
                    raise NotFound(_NO_DEVICE.format(device_id), hint=_SOON)
            except Unauthorized as error:
                if hint := await self._why_refused(signed[-1] if signed else None):
                    error.hint = hint
                    raise
                # Unless it was given another since, by a run with another ledger.
                if self.ask_keys:
                    await self.ask_other_keys()
            # The service has lost the key, or the device, of an earlier run: the same again.
            await self.register()
        more = "" if device else "; the device itself is not onboarded"
        if device and self.ledger.state is RunState.REGISTERED:
            more = _was_there(device, signed[-1])
        self.ledger.finish(ProvisioningStep.PROOF, f"the JWT is accepted{more}")

    async def _require_in_team(self, device_id: str) -> None:
        """Raise NotFound for a device of another team: its token works whose ever it is."""
        if self.ledger.state is RunState.REGISTERED:
            return  # the service took it for this one
        try:
            await self.registrar.require_in_team(device_id)
        except NotFound:
            raise NotFound(_OTHER_TEAM.format(device_id), hint=_ITS_KEY) from None

    async def _why_refused(self, signed: Jwt | None) -> str:
        """Return why the service refuses a token, "" where the key may be given to it again."""
        if signed and _has_other_time(signed, await self.registrar.service_time()):
            return _OTHER_TIME
        if self.registrar.method is RegistrationMethod.NONE:
            return _NOT_GIVEN
        if self.ledger.state is RunState.REGISTERED:
            return _WAS_GIVEN
        if not self.alone and not self.goal.second_tag:
            return _ANOTHER.format(self.goal.security_tag)
        return ""


def _was_there(device: Device, token: Jwt) -> str:
    """Return that the service had the device before it was given the key that signed, "" if not."""
    created_at, signed_at = device.created_at, token.claims.get("iat")
    if created_at is None or not isinstance(signed_at, int):
        return ""
    if signed_at - created_at.timestamp() < _NEW_S:
        return ""
    since = created_at.astimezone(UTC)
    return (
        f"; the service has had the device since {since:%Y-%m-%d %H:%M} UTC: a key that it had "
        "before is refused now"
    )


def _has_other_time(token: Jwt, service_time: datetime | None) -> bool:
    """Whether a token is not yet, or no longer, valid by the service's clock, if that is known."""
    signed_at = token.claims.get("iat")
    if service_time is None or not isinstance(signed_at, int):
        return False
    return not -LIFE_S < signed_at - service_time.timestamp() <= AGREES_S
