"""A board behind its modem's AT port."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from agent.config.identity_keys import IdentityKeys, UntrustedSignature
from agent.provisioning.boards import board
from agent.provisioning.boards.limits import Quantity
from at.causes.written_pem import defect_in
from at.commands.clock import ReadClock, SetClock, clock_text
from at.commands.credentials import (
    CredentialType,
    DeleteCredential,
    ListCredentials,
    ReadCredential,
    StoredCredential,
    WriteCredential,
)
from at.commands.functional_mode import FunctionalMode, ReadFunctionalMode, SetFunctionalMode
from at.commands.identity import ReadModel
from at.commands.jwt import MakeJwt
from at.commands.keys import GenerateKey
from at.device_uuid import read_device_uuid
from at.driver.modem import Modem, open_modem
from at.firmware_gate import read_verdict, require_firmware
from at.imei import read_imei
from at.protocol.dialect import Dialect
from at.protocol.error_codes import rejection
from at.protocol.errors import CommandRejected, NoModemTime, ParseError
from at.tokens.attestation import GeneratedKey, read_attestation, read_generated_key
from at.tokens.jwt import Jwt
from at.tokens.key_formats import key_pem, load_public_key

if TYPE_CHECKING:
    from at.causes.diagnosis import Cause

_INVALID_CONTENT = 527
_NOT_FOUND = 513
_NOT_ALLOWED = 514
_ATTEST = "AT%ATTESTTOKEN"
_NO_TIME = "`--set-clock` sets it from this host's; `cellagent modem on`, the network's"
_LOST_TIME = "it had the time before in this run, and has restarted: run the same command again"
_NO_KEYS = IdentityKeys()


@asynccontextmanager
async def open_board(location: board.BoardLocation) -> AsyncIterator[ModemBoard]:
    """Open the port of a location. Raises AtError."""
    async with open_modem(location.port) as modem:
        yield ModemBoard(modem)


class ModemBoard:
    """An open board, by AT commands. Every method raises at.AtError; reading changes nothing.

    What it attests is checked with `identity_keys`, where there are any.
    """

    def __init__(self, modem: Modem, identity_keys: IdentityKeys = _NO_KEYS) -> None:
        self._modem = modem
        self._identity_keys = identity_keys
        self._imei = ""
        self._had_time = False

    async def read(self) -> board.BoardState:
        """Return what the board is and holds; only IMEI and firmware where the gate refuses it.

        Raises BoardSwapped where another one answered in the end.
        """
        send = self._modem.send
        imei = self._imei = await self.imei()
        verdict = await read_verdict(self._modem)
        is_module = self._modem.dialect.traits.is_module
        if not verdict.allowed:
            return board.BoardState(
                imei=imei,
                uuid="",
                model="",
                firmware=verdict.text,
                refusal=verdict.reason,
                mode=FunctionalMode.OFF,
                has_time=False,
                credentials=(),
            )
        found = board.BoardState(
            imei=imei,
            uuid=await read_device_uuid(self._modem),
            model=(await send(ReadModel())).model,
            firmware=verdict.text,
            refusal="",
            mode=(await send(ReadFunctionalMode())).fun,
            has_time=await self._has_time(),
            credentials=() if is_module else await self.credentials(),
            has_client=await self._has_client(),
            module_key=await self._module_key() if is_module else "",
        )
        await self.require_same("the reading of what it holds")
        return found

    async def require_same(self, when: str, *, is_done: bool = False) -> None:
        """Read the IMEI again. Raises BoardSwapped, naming `when`, if `read` had another.

        `is_done`: what is named was done, to whichever of the two.
        """
        found = await self.imei()
        if found != self._imei:
            reason = f"IMEI {self._imei} became {found} at {when}"
            hint = "put the board back and run again: what was done is in the ledger"
            if is_done:
                reason += ", which may have gone to the other board"
                hint += "; run the other one, too: that tells what it holds now"
            raise board.BoardSwapped(reason, hint=hint)

    async def _has_client(self) -> bool:
        if self._modem.dialect is not Dialect.SERIAL_MODEM:
            return False
        # Only here, as below: most kits have none of it, and loading it took longer than a board.
        from at.provisioning_host import has_client

        return await has_client(self._modem)

    async def _module_key(self) -> str:
        from at.commands.nrf93m1.module import ReadCloudAccessKey

        der = b64decode((await self._modem.send(ReadCloudAccessKey())).public_key)
        try:
            return key_pem(load_public_key(der))
        except ParseError as error:
            raise board.WrongAnswer("the module's public key is no point of P-256") from error

    async def require_attested(self, uuid: str) -> bool:
        """Check the board's attestation before anything is written to it; False without a key.

        Raises UntrustedSignature, BoardSwapped.
        """
        if not self._identity_keys:
            return False
        try:
            text = await self.attestation()
        except CommandRejected as refusal:
            raise UntrustedSignature(
                f"it does not attest what it is: {refusal}", hint=refusal.hint
            ) from refusal
        attested = read_attestation(text).device_uuid
        if attested != uuid:
            raise board.BoardSwapped(f"the board is {uuid}, and attests that it is {attested}")
        return True

    async def imei(self) -> str:
        """Return the IMEI, read now. Raises ParseError where it came damaged."""
        return await read_imei(self._modem)

    async def require_firmware(self) -> None:
        """Raise FirmwareRefused where no call may be made in the board's name."""
        await require_firmware(self._modem)

    async def credentials(self) -> tuple[board.HeldCredential, ...]:
        """Return the credential list. Raises ParseError where the modem tells it twice unalike.

        A row whose name came damaged is in no list, and what is not listed is written over.
        """
        listed = await self._modem.send(ListCredentials())
        if await self._modem.send(ListCredentials()) != listed:
            raise ParseError(
                "the modem lists other credentials when it is asked again: the line damages what"
                " it says"
            )
        return tuple(
            board.HeldCredential(held.sec_tag, held.type, held.sha or "")
            for held in listed.credentials
        )

    async def certificate(self, tag: int) -> str:
        """Return the client certificate of a tag as PEM, "" where the modem does not show it."""
        try:
            read = await self._modem.send(ReadCredential(tag, CredentialType.CLIENT_CERTIFICATE))
        except CommandRejected:
            return ""
        return "".join(one.content for one in read.credentials if isinstance(one, StoredCredential))

    async def measure(self, quantity: Quantity) -> int | None:
        """Return a quantity in its unit, None where the modem does not know it."""
        # Most goals have no limits, and the start of a batch is not to pay for them.
        from at.commands.device_status import ReadSupply, ReadTemperature
        from at.commands.signal import ReadSignalQuality
        from at.commands.sim import ReadPinState, ReadSimState

        send = self._modem.send
        if quantity is Quantity.SUPPLY:
            return (await send(ReadSupply())).vbat_mv
        if quantity is Quantity.TEMPERATURE:
            return (await send(ReadTemperature())).temperature_c
        if quantity is Quantity.RSRP:
            return (await send(ReadSignalQuality())).rsrp_dbm
        if self._modem.dialect.traits.is_module:  # it has no %XSIM
            return int((await send(ReadPinState())).code == "READY")
        return int((await send(ReadSimState())).state == 1)

    async def cause(self) -> Cause | None:
        """Return the likeliest cause of trouble, None where the modem shows none."""
        # Only here: it is asked of a board that has failed.
        from at.causes.live import likeliest_cause

        return await likeliest_cause(self._modem)

    async def write(self, tag: int, kind: int, content: str) -> None:
        """Write a credential; a refusal says what of it is wrong: its place, or its content."""
        try:
            await self._modem.send(WriteCredential(tag, kind, content))
        except CommandRejected as refusal:
            if refusal.code == _INVALID_CONTENT and (defect := defect_in(str(kind), content)):
                refusal.hint = f"{refusal.hint}; {defect}"
            if refusal.code == _NOT_ALLOWED:
                refusal.hint = f"tag {tag} takes none of ours: `--security-tag TAG` names another"
            raise

    async def delete(self, tag: int, kind: int) -> None:
        """Delete a credential; one that is gone already is deleted."""
        try:
            await self._modem.send(DeleteCredential(tag, kind))
        except CommandRejected as refusal:
            if refusal.code != _NOT_FOUND:
                raise

    async def make_key(self, tag: int) -> board.MadeKey:
        """Make a key with a CSR for the modem's UUID, and check all that the answer lets check."""
        made = await self._modem.send(GenerateKey(tag))
        return self._judged(made, tag)

    async def judged_key(self, text: str, tag: int) -> board.MadeKey:
        """Return the key of an answer of %KEYGEN that came another way, checked likewise."""
        made = read_generated_key(text)
        if made.device_uuid not in {None, await read_device_uuid(self._modem)}:
            raise board.WrongAnswer(f"the key was made by another device, {made.device_uuid}")
        return self._judged(made, tag)

    def _judged(self, made: GeneratedKey, tag: int) -> board.MadeKey:
        made = self._identity_keys.require(made, "the key that it made")
        if made.digest_matches is False:
            raise board.WrongAnswer("the digest that the modem signed is not that of its answer")
        if made.self_signed is False:
            raise board.WrongAnswer(
                "the certificate request is not signed by the key that it names"
            )
        if made.sec_tag not in {None, tag}:
            raise board.WrongAnswer(f"the key was made in tag {made.sec_tag}, not in {tag}")
        checked = "the request is signed by its own key"
        if made.digest_matches:
            checked += ", the digest agrees"
        attested = "verified" if made.verified else made.reason
        return board.MadeKey(
            made.public_key_pem, made.device_uuid or "", f"{checked}; attestation {attested}"
        )

    async def token(self, subject: str, life_s: int, tag: int | None) -> Jwt:
        """Return a JWT signed by the key in a tag, or else by the device identity key.

        It has no `sub` where `subject` is "".

        Raises NoModemTime where the modem does not know the time.
        """
        try:
            return await self._modem.send(MakeJwt(subject, "", life_s, tag))
        except NoModemTime as error:
            error.hint = self._no_time
            raise

    async def attestation(self) -> str:
        """Return the attestation token as the modem gave it, checked to be one.

        Raises UntrustedSignature.
        """
        answer = await self._modem.execute(_ATTEST)
        if not answer.ok:
            raise rejection(_ATTEST, answer)
        text = next((line for line in answer.lines if line.startswith("%ATTESTTOKEN:")), "")
        token = text.removeprefix("%ATTESTTOKEN:").strip().strip('"')
        self._identity_keys.require(read_attestation(token), "its attestation")
        return token

    async def registration_token(self, uuid: str, team_id: str) -> str:
        """Return the registration token of an nRF93M1 with this UUID, for a team.

        Raises NoModemTime, WrongAnswer.
        """
        from at.commands.nrf93m1.module import MakeRegistrationToken

        if not await self._has_time():
            raise NoModemTime(
                "the module's clock is not set, so that it makes no token", hint=self._no_time
            )
        made = await self._modem.send(MakeRegistrationToken(team_id))
        if (made.device_uuid.lower(), made.team_id) != (uuid.lower(), team_id):
            raise board.WrongAnswer(
                f"the token is not of the device {uuid} for this team",
                hint="run again; `cellagent modem check` shows which module answers",
            )
        return made.token

    async def set_mode(self, mode: int) -> None:
        """Set the functional mode; CFUN=4 answers once the modem has detached.

        Raises WrongAnswer where the modem acknowledges it and does not take it.
        """
        await self._modem.send(SetFunctionalMode(mode))
        found = (await self._modem.send(ReadFunctionalMode())).fun
        if found != mode:
            raise board.WrongAnswer(f"it answers OK to AT+CFUN={mode:d}, and is in mode {found}")

    async def go_online(self) -> None:
        """Turn the radio on, and wait for the network. Raises ProvisioningFailed."""
        from at.provisioning_host import go_online

        await go_online(self._modem)

    async def take_commands(self, *, was_left: bool) -> None:
        """Have the kit take the service's commands, as its host. Raises ProvisioningFailed.

        `was_left`: it may still be about it with a run that was cut off.
        """
        from at.provisioning_host import take_commands

        await take_commands(self._modem, was_left=was_left)

    async def set_clock(self, now: datetime) -> None:
        """Set the modem's clock. Raises WrongAnswer where the modem does not take it."""
        await self._modem.send(SetClock(clock_text(now)))
        if not await self._has_time():
            raise board.WrongAnswer(
                "it answers OK to AT+CCLK, and knows no time",
                hint="`cellagent modem on` has the network set it",
            )

    @property
    def _no_time(self) -> str:
        return _LOST_TIME if self._had_time else _NO_TIME

    async def _has_time(self) -> bool:
        try:
            has_time = (await self._modem.send(ReadClock())).is_set
        except CommandRejected:
            return False
        self._had_time = self._had_time or has_time
        return has_time
