"""The steps done to a board: its functional mode, its credentials, its certificate.

Each is recorded in the ledger before and after it is done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec import Struct

from agent.provisioning.boards.board import BoardSwapped, CredentialStore, WrongAnswer
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ca import certificates
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.planning.goal import CREDENTIAL_NAMES, CertificateSource, Goal, KeyOrigin
from agent.provisioning.planning.plan import OFFLINE_MODE, ProvisioningStep, stored_digest
from agent.provisioning.running.board_ledger import BoardLedger
from at.commands.credentials import CredentialType
from at.protocol.errors import CommandRejected
from at.tokens.key_formats import key_pem

T = TypeVar("T")
_MODE = "the change of its mode"


class OfflineMode:
    """Sets the mode in which the modem takes credentials, and restores the earlier one."""

    def __init__(self, port: ModemBoard, ledger: BoardLedger) -> None:
        self._port = port
        self._ledger = ledger
        self._mode_before: int | None = None

    @property
    def restore_due(self) -> bool:
        """Whether the mode was changed and is still to be put back."""
        return self._mode_before is not None

    async def enter(
        self, mode_before: int, announces: tuple[ProvisioningStep, str] | None = None
    ) -> None:
        """Set the offline mode; `mode_before` is the one that `restore` puts back.

        `announces` is the step behind it, as BoardLedger.begin takes it.
        """
        # Noted, so that a run after one that was cut off knows what to put back.
        step = ProvisioningStep.OFFLINE
        await self._ledger.begin(step, str(mode_before), announces=announces)
        await self._port.require_same(_MODE)
        self._mode_before = mode_before
        await self._port.set_mode(OFFLINE_MODE)
        await self._port.require_same(_MODE, is_done=True)

    async def leave(self, mode_before: int) -> None:
        """Have the modem on the network; `mode_before` is what `restore` puts back."""
        if self._mode_before is None:
            await self._ledger.begin(ProvisioningStep.OFFLINE, str(mode_before))
        await self._port.require_same(_MODE)
        self._mode_before = mode_before
        await self._port.go_online()
        await self._port.require_same(_MODE, is_done=True)

    def resume(self, mode_before: int | None) -> None:
        """Set the mode that an interrupted run had still to restore, None for none."""
        self._mode_before = mode_before

    def forget(self, mode: int) -> None:
        """Record that the mode has changed since an interrupted run: nothing is to be restored."""
        self._ledger.finish(ProvisioningStep.OFFLINE, f"found in {mode}")

    async def restore(self) -> None:
        """Put the functional mode back, once, if it was changed."""
        if self._mode_before is not None:
            mode = self._mode_before
            # Another board's is not to be changed, and this one's is still to be put back.
            await self._port.require_same(_MODE)
            await self._port.set_mode(mode)
            await self._port.require_same(_MODE, is_done=True)
            self._mode_before = None
            self._ledger.finish(ProvisioningStep.OFFLINE, f"back to {mode}")


class CredentialSteps(Struct, frozen=True):
    """The steps that change the modem's credential store, and the one that checks it.

    The board's identity is read before and after each write.
    """

    board: ModemBoard
    store: CredentialStore
    ledger: BoardLedger
    goal: Goal
    key_folder: Path

    async def clear(self, credentials: Sequence[tuple[int, int]]) -> None:
        """Delete credentials, each by its tag and type."""
        for tag, kind in credentials:
            place = f"{tag}:{kind}"
            delete = partial(self.store.delete, tag, kind)
            await self._on_this_board(ProvisioningStep.CLEAR, place, delete)
            self.ledger.finish(ProvisioningStep.CLEAR, place)

    @property
    def ca_chain(self) -> tuple[ProvisioningStep, str]:
        """The step that writes the CA chain, as it is announced."""
        place = self._place(CredentialType.ROOT_CA, self.goal.ca_chain)
        return ProvisioningStep.CA_CHAIN, place

    async def write_ca_chain(self) -> None:
        """Write the CA chain of the goal."""
        await self._write(ProvisioningStep.CA_CHAIN, CredentialType.ROOT_CA, self.goal.ca_chain)

    async def write_certificate(self) -> None:
        """Write the client certificate of the record."""
        certificate = self.ledger.record.certificate
        await self._write(ProvisioningStep.WRITE, CredentialType.CLIENT_CERTIFICATE, certificate)

    async def _write(self, step: ProvisioningStep, kind: CredentialType, content: str) -> None:
        tag = self.goal.security_tag
        write = partial(self.store.write, tag, kind, content)
        await self._on_this_board(step, self._place(kind, content), write)
        self.ledger.finish(step, stored_digest(content))

    def _place(self, kind: CredentialType, content: str) -> str:
        return f"{self.goal.security_tag}:{kind:d} {stored_digest(content)}"

    async def make_key(self) -> None:
        """Make the board's key, in the modem or on this host, and store what the modem lists."""
        # From the note that each method begins with, a key may be in the modem of which nobody
        # knows the public half: the plan of a later run reads it and makes the key again.
        if self.goal.key_origin is KeyOrigin.HOST:
            pem, proof = await self._write_host_key()
        else:
            pem, proof = await self._make_modem_key()
        place = (self.goal.security_tag, CredentialType.CLIENT_PRIVATE_KEY)
        listed = await self.store.credentials()
        digest = next((one.sha256 for one in listed if (one.tag, one.type) == place), "")
        if not digest:
            raise WrongAnswer("the modem made a key and does not list it")
        await self.board.require_same("the listing of its key")
        self.ledger.finish_key(proof, pem, digest)

    async def _make_modem_key(self) -> tuple[str, str]:
        tag, uuid = self.goal.security_tag, self.ledger.record.uuid
        make = partial(self.store.make_key, tag)
        made = await self._on_this_board(ProvisioningStep.KEY, str(tag), make)
        if made.uuid not in {"", uuid}:
            raise BoardSwapped(
                f"the key was made by {made.uuid}, not by {uuid}",
                hint="put the board back and run again",
            )
        return made.public_pem, made.proof

    async def _write_host_key(self) -> tuple[str, str]:
        tag = self.goal.security_tag
        note = await self.ledger.last_begun(ProvisioningStep.KEY)
        key = await asyncio.to_thread(
            certificates.load_or_make_host_key, self.key_folder, note.partition(" ")[2]
        )
        pem = key_pem(key.public_key())
        name = certificates.host_key_name(self.ledger.record.uuid, pem)

        async def write() -> None:
            await asyncio.to_thread(certificates.store_host_key, key, self.key_folder / name)
            private = certificates.private_pem(key)
            await self.store.write(tag, CredentialType.CLIENT_PRIVATE_KEY, private)

        await self._on_this_board(ProvisioningStep.KEY, f"{tag} {name}", write)
        return pem, f"made on this host, kept in {name}"

    async def verify(self) -> None:
        """Compare what the modem lists with what was written. Raises WrongAnswer."""
        await self.board.require_same("verification")
        listed = {(held.tag, held.type): held.sha256 for held in await self.store.credentials()}
        tag, wrong, other = self.goal.security_tag, [], []
        for kind, digest in self._written().items():
            found = listed.get((tag, kind), "")
            if found.upper() != digest.upper():
                wrong.append(
                    f"tag {tag}, {CREDENTIAL_NAMES[kind]}: the modem lists "
                    f"{found[:16] or 'nothing'}, written was {digest[:16]}"
                )
                if found:
                    other.append(f"--replace {tag}:{kind}")
        if wrong:
            hint = (
                "the modem acknowledged what it did not keep: run the same command again, which "
                "writes it again"
            )
            if other:
                allow = " ".join(other)
                hint = f"line ends may have been changed on the way; `{allow}` writes it again"
            raise WrongAnswer("; ".join(wrong), hint=hint)

    def _written(self) -> dict[CredentialType, str]:
        """Return the digests of what the modem is to hold, by type. Raises WrongAnswer."""
        goal, record = self.goal, self.ledger.record
        digests = {CredentialType.CLIENT_PRIVATE_KEY: record.key_digest}
        if goal.ca_chain:
            digests[CredentialType.ROOT_CA] = stored_digest(goal.ca_chain)
        if goal.certificate is not CertificateSource.NONE:
            digests[CredentialType.CLIENT_CERTIFICATE] = stored_digest(record.certificate)
            certificate = x509.load_pem_x509_certificate(record.certificate.encode())
            if certificates.public_key_of(certificate) != record.public_key:
                raise WrongAnswer("the certificate is for another key than the board's")
        return digests

    async def _on_this_board(
        self, step: ProvisioningStep, detail: str, write: Callable[[], Awaitable[T]]
    ) -> T:
        """Begin a step that is one write, and do it; read the board's identity before and after.

        `detail` begins with the place that is written. Raises BoardSwapped.
        """
        what = "the deletion" if step is ProvisioningStep.CLEAR else "the write"
        await self.ledger.begin(step, detail, writes=1)
        try:
            # Behind the note, which may take long: between look and write are milliseconds then.
            await self.board.require_same(what)
            result = await write()
        except (BoardSwapped, CommandRejected) as refusal:
            # So nothing of ours is there, whatever another program puts there later.
            self.ledger.refused(step, str(refusal), writes=1)
            raise
        await self.board.require_same(what, is_done=True)
        return result


class CertificateIssuer(Struct, frozen=True):
    """The step that makes the board's certificate: signed by the operator's CA or by its own key.

    `now` gives the time that dates it.
    """

    ledger: BoardLedger
    goal: Goal
    device_ca: DeviceCa | None
    key_folder: Path
    now: Callable[[], datetime]

    async def issue(self) -> None:
        """Make the certificate and store it in the record. Raises AgentError."""
        record = self.ledger.record
        if self.goal.certificate is CertificateSource.SELF_SIGNED:
            file = self.key_folder / certificates.host_key_name(record.uuid, record.public_key)
            key = await asyncio.to_thread(certificates.load_host_key, file)
            certificate = certificates.self_signed(
                key, record.device_id, self.now(), self.goal.certificate_life
            )
        else:
            public_key = serialization.load_pem_public_key(record.public_key.encode())
            authority = self.device_ca
            if authority is None or not isinstance(public_key, ec.EllipticCurvePublicKey):
                raise WrongAnswer("there is no CA to sign with, or no P-256 key to sign for")
            # In a thread: a token may take seconds, and the other boards go on meanwhile.
            certificate = await asyncio.to_thread(
                authority.sign, public_key, record.device_id, self.now(), self.goal.certificate_life
            )
        self.ledger.finish(
            ProvisioningStep.CERTIFICATE,
            certificates.describe(certificate),
            certificate=certificates.pem_of(certificate),
            certificate_serial=certificates.serial_of(certificate),
            request_id="",  # one that is under way gives the service the certificate before
        )
