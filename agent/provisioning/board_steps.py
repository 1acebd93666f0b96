"""The steps of one board: each noted in the ledger before and after it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.provisioning.board import MadeKey, WrongAnswer
from agent.provisioning.certificates import (
    keep_host_key,
    kept_host_key,
    key_fingerprint,
    load_host_key,
    pem_of,
    private_pem,
    public_key_of,
    public_pem,
    self_signed,
)
from agent.provisioning.goal import (
    CA_CHAIN,
    CLIENT_CERTIFICATE,
    CREDENTIAL_NAMES,
    PRIVATE_KEY,
    CertificateSource,
    KeyOrigin,
)
from agent.provisioning.plan import OFFLINE_MODE, ProvisioningStep, stored_digest
from agent.provisioning.service_steps import ServiceSteps
from agent.provisioning.step_notes import BoardSwapped
from at.protocol.errors import CommandRejected

T = TypeVar("T")


@dataclass(slots=True)
class BoardSteps(ServiceSteps):
    """What the steps of `plan` do to the board behind `port`, each in its turn."""

    async def do(self, step: ProvisioningStep) -> None:
        """Do one step. Raises AgentError, AtError."""
        doing: dict[ProvisioningStep, Callable[[], Awaitable[None]]] = {
            ProvisioningStep.OFFLINE: self._go_offline,
            ProvisioningStep.CLEAR: self._clear,
            ProvisioningStep.CA_CHAIN: self._write_ca_chain,
            ProvisioningStep.KEY: self._make_key,
            ProvisioningStep.CERTIFICATE: self._issue_certificate,
            ProvisioningStep.WRITE: self._write_certificate,
            ProvisioningStep.VERIFY: self._verify,
            ProvisioningStep.REGISTER: self.register,
            ProvisioningStep.CLOCK: self.set_clock,
            ProvisioningStep.PROOF: self.prove,
            ProvisioningStep.RESTORE: self.restore,
        }
        # The gate and the identity were judged by the plan itself.
        if step in doing:
            await doing[step]()

    async def restore(self) -> None:
        """Put the functional mode back, once, if it was changed."""
        if self.offline and self.plan.restore_mode is not None:
            await self.port.set_mode(self.plan.restore_mode)
            self.offline = False
            await self._finish(ProvisioningStep.OFFLINE, f"back to {self.plan.restore_mode}")

    async def forget_mode(self, found: int) -> None:
        """Note that the mode which an earlier run left was changed since: it is nobody's now."""
        await self._finish(ProvisioningStep.OFFLINE, f"found in {found}")

    # --- steps

    async def _go_offline(self) -> None:
        # Noted, so that a run after one that was cut off knows what to put back.
        await self._begin(ProvisioningStep.OFFLINE, str(self.plan.restore_mode))
        self.offline = True
        await self.port.set_mode(OFFLINE_MODE)

    async def _clear(self) -> None:
        for tag, kind in self.plan.delete:
            await self._begin(ProvisioningStep.CLEAR, f"{tag}:{kind}")
            await self._on_this_board(partial(self.port.delete, tag, kind))
            await self._finish(ProvisioningStep.CLEAR, f"{tag}:{kind}")

    async def _write_ca_chain(self) -> None:
        await self._write(ProvisioningStep.CA_CHAIN, CA_CHAIN, self.bench.goal.ca_chain)

    async def _write_certificate(self) -> None:
        await self._write(ProvisioningStep.WRITE, CLIENT_CERTIFICATE, self.record.certificate)

    async def _write(self, step: ProvisioningStep, kind: int, content: str) -> None:
        await self._begin(step)
        await self._on_this_board(
            partial(self.port.write, self.bench.goal.security_tag, kind, content)
        )
        await self._finish(step, stored_digest(content))

    async def _make_key(self) -> None:
        # From the note that each way begins with, a key may be in the modem of which nobody knows
        # the public half: the plan of a later run reads it and makes the key again.
        if self.bench.goal.key_origin is KeyOrigin.HOST:
            pem, proof = await self._write_host_key()
        else:
            pem, proof = await self._make_modem_key()
        tag = self.bench.goal.security_tag
        listed = await self.port.credentials()
        digest = next(
            (one.sha256 for one in listed if (one.tag, one.type) == (tag, PRIVATE_KEY)), ""
        )
        if not digest:
            raise WrongAnswer("the modem made a key and does not list it")
        await self._finish(
            ProvisioningStep.KEY,
            proof,
            public_key=pem,
            key_digest=digest,
            certificate="",
            request_id="",
        )

    async def _make_modem_key(self) -> tuple[str, str]:
        tag = self.bench.goal.security_tag
        await self._begin(ProvisioningStep.KEY, str(tag))

        async def make() -> MadeKey:
            try:
                return await self.port.make_key(tag, self.bench.goal.subject)
            except CommandRejected as refusal:
                # It said no: no key of ours is there, whatever another program puts there later.
                await self._refused(ProvisioningStep.KEY, str(refusal))
                raise

        made = await self._on_this_board(make)
        if made.uuid not in {"", self.record.uuid}:
            raise BoardSwapped(
                f"the key was made by {made.uuid}, not by {self.record.uuid}",
                hint="put the board back and run again",
            )
        return made.public_pem, made.proof

    async def _write_host_key(self) -> tuple[str, str]:
        tag, folder = self.bench.goal.security_tag, self.bench.key_folder
        note = await self._unfinished(ProvisioningStep.KEY)
        key = await asyncio.to_thread(kept_host_key, folder, note.partition(" ")[2])
        name = f"{self.record.uuid}-{key_fingerprint(public_pem(key.public_key()))[:16]}.pem"
        await self._begin(ProvisioningStep.KEY, f"{tag} {name}")
        await asyncio.to_thread(keep_host_key, key, folder / name)
        await self._on_this_board(partial(self.port.write, tag, PRIVATE_KEY, private_pem(key)))
        return public_pem(key.public_key()), f"made on this host, kept in {name}"

    async def _issue_certificate(self) -> None:
        goal, name = self.bench.goal, self.record.device_id
        if goal.certificate is CertificateSource.SELF_SIGNED:
            key = await asyncio.to_thread(load_host_key, self._host_key_file())
            certificate = self_signed(key, name, self.bench.now())
        else:
            public_key = serialization.load_pem_public_key(self.record.public_key.encode())
            authority = self.bench.device_ca
            if authority is None or not isinstance(public_key, ec.EllipticCurvePublicKey):
                raise WrongAnswer("there is no CA to sign with, or no P-256 key to sign for")
            # In a thread: a token may take seconds, and the other boards go on meanwhile.
            certificate = await asyncio.to_thread(
                authority.sign, public_key, name, self.bench.now()
            )
        await self._finish(ProvisioningStep.CERTIFICATE, certificate=pem_of(certificate))

    async def _verify(self) -> None:
        goal = self.bench.goal
        await self.same_board("verification")
        listed = {(held.tag, held.type): held.sha256 for held in await self.port.credentials()}
        wanted = {PRIVATE_KEY: self.record.key_digest}
        if goal.ca_chain:
            wanted[CA_CHAIN] = stored_digest(goal.ca_chain)
        if goal.certificate is not CertificateSource.NONE:
            wanted[CLIENT_CERTIFICATE] = stored_digest(self.record.certificate)
            certificate = x509.load_pem_x509_certificate(self.record.certificate.encode())
            if public_key_of(certificate) != self.record.public_key:
                raise WrongAnswer("the certificate is for another key than the board's")
        tag, wrong = goal.security_tag, {}
        for kind, digest in wanted.items():
            found = listed.get((tag, kind), "")
            if found.upper() != digest.upper():
                wrong[kind] = (
                    f"tag {tag}, {CREDENTIAL_NAMES[kind]}: the modem lists "
                    f"{found[:16] or 'nothing'}, written was {digest[:16]}"
                )
        if wrong:
            allow = " ".join(f"--replace {tag}:{kind}" for kind in wrong)
            raise WrongAnswer(
                "; ".join(wrong.values()),
                hint=f"line ends may have been changed on the way; run again with {allow}",
            )

    # --- what every step needs

    async def _on_this_board(self, write: Callable[[], Awaitable[T]]) -> T:
        """Do one write with the board's identity read before and after it."""
        await self.same_board("the write")
        result = await write()
        self.writes += 1
        await self.same_board("the write, which may have gone to the other board")
        return result

    def _host_key_file(self) -> Path:
        name = f"{self.record.uuid}-{key_fingerprint(self.record.public_key)[:16]}.pem"
        return self.bench.key_folder / name
