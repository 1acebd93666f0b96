"""The steps of one board: each noted in the ledger before and after it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.errors import AgentError, ServiceRefusal
from agent.provisioning.board_port import BoardPort, MadeKey, WrongAnswer
from agent.provisioning.certificates import (
    key_fingerprint,
    pem_of,
    private_pem,
    public_key_of,
    public_pem,
    self_signed,
)
from agent.provisioning.goal import (
    CA_CHAIN,
    CLIENT_CERTIFICATE,
    PRIVATE_KEY,
    Certificate,
    KeyOrigin,
    Registration,
)
from agent.provisioning.host_clock import check_host_clock
from agent.provisioning.host_keys import keep_host_key, kept_host_key, load_host_key
from agent.provisioning.ledger import BoardRecord
from agent.provisioning.plan import Plan, Step, stored_digest
from agent.provisioning.workbench import Bench
from at.errors import CommandRejected

T = TypeVar("T")
OFFLINE_MODE = 4
_LONGEST_STEP_S = 60.0


class BoardSwapped(AgentError):
    """Another board answers on this port than the one that was begun with."""

    kind = "swapped"


@dataclass(slots=True)
class BoardSteps:
    """What the steps of `plan` do to the board behind `port`. `writes` counts its flash writes."""

    port: BoardPort
    bench: Bench
    record: BoardRecord
    plan: Plan
    writes: int = 0
    offline: bool = False

    async def do(self, step: Step) -> None:
        """Do one step. Raises AgentError, AtError."""
        doing: dict[Step, Callable[[], Awaitable[None]]] = {
            Step.OFFLINE: self._go_offline,
            Step.CLEAR: self._clear,
            Step.CA_CHAIN: self._write_ca_chain,
            Step.KEY: self._make_key,
            Step.CERTIFICATE: self._issue_certificate,
            Step.WRITE: self._write_certificate,
            Step.VERIFY: self._verify,
            Step.REGISTER: self._register,
            Step.CLOCK: self._set_clock,
            Step.PROOF: self._prove,
            Step.RESTORE: self.restore,
        }
        # The gate and the identity were judged by the plan itself.
        if step in doing:
            await doing[step]()

    async def restore(self) -> None:
        """Put the functional mode back, once, if it was changed."""
        if self.offline and self.plan.restore_mode is not None:
            await self.port.set_mode(self.plan.restore_mode)
            self.offline = False

    # --- steps

    async def _go_offline(self) -> None:
        self.offline = True
        await self.port.set_mode(OFFLINE_MODE)

    async def _clear(self) -> None:
        for tag, kind in self.plan.delete:
            await self._begin(Step.CLEAR, f"{tag}:{kind}")
            await self._on_this_board(partial(self.port.delete, tag, kind))
            await self._finish(Step.CLEAR, f"{tag}:{kind}")

    async def _write_ca_chain(self) -> None:
        await self._write(Step.CA_CHAIN, CA_CHAIN, self.bench.goal.ca_chain)

    async def _write_certificate(self) -> None:
        await self._write(Step.WRITE, CLIENT_CERTIFICATE, self.record.certificate)

    async def _write(self, step: Step, kind: int, content: str) -> None:
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
            Step.KEY, proof, public_key=pem, key_digest=digest, certificate="", request_id=""
        )

    async def _make_modem_key(self) -> tuple[str, str]:
        tag = self.bench.goal.security_tag
        await self._begin(Step.KEY, str(tag))

        async def make() -> MadeKey:
            try:
                return await self.port.make_key(tag, self.bench.goal.subject)
            except CommandRejected as refusal:
                # It said no: no key of ours is there, whatever another program puts there later.
                await self._refused(Step.KEY, str(refusal))
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
        note = await self._unfinished(Step.KEY)
        key = await asyncio.to_thread(kept_host_key, folder, note.partition(" ")[2])
        name = f"{self.record.uuid}-{key_fingerprint(public_pem(key.public_key()))[:16]}.pem"
        await self._begin(Step.KEY, f"{tag} {name}")
        await asyncio.to_thread(keep_host_key, key, folder / name)
        await self._on_this_board(partial(self.port.write, tag, PRIVATE_KEY, private_pem(key)))
        return public_pem(key.public_key()), f"made on this host, kept in {name}"

    async def _issue_certificate(self) -> None:
        goal, name = self.bench.goal, self.record.device_id
        if goal.certificate is Certificate.SELF_SIGNED:
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
        await self._finish(Step.CERTIFICATE, certificate=pem_of(certificate))

    async def _verify(self) -> None:
        goal = self.bench.goal
        await self._same_board("verification")
        listed = {(held.tag, held.type): held.sha256 for held in await self.port.credentials()}
        wanted = {PRIVATE_KEY: self.record.key_digest}
        if goal.ca_chain:
            wanted[CA_CHAIN] = stored_digest(goal.ca_chain)
        if goal.certificate is not Certificate.NONE:
            wanted[CLIENT_CERTIFICATE] = stored_digest(self.record.certificate)
            certificate = x509.load_pem_x509_certificate(self.record.certificate.encode())
            if public_key_of(certificate) != self.record.public_key:
                raise WrongAnswer("the certificate is for another key than the board's")
        for kind, digest in wanted.items():
            found = listed.get((goal.security_tag, kind), "")
            if found.upper() != digest.upper():
                raise WrongAnswer(
                    f"tag {goal.security_tag}, type {kind}: the modem lists "
                    f"{found[:16] or 'nothing'}, written was {digest[:16]}",
                    hint="line ends may have been changed on the way; run again with "
                    f"--replace {goal.security_tag}:{kind}",
                )

    async def _register(self) -> None:
        registrar = self.bench.registrar
        if registrar is None:
            return
        await self._same_board("registration")
        key = key_fingerprint(self.record.public_key)
        registered = registration_of(registrar.way, self.record.device_id)
        request_id = await self._request_under_way(f"{registered} {key}")
        if not request_id:
            await self._begin(Step.REGISTER, f"{registered} {key}")
            onboards = registrar.way is Registration.ONBOARD
            pem = self.record.certificate if onboards else ""
            if registrar.way is Registration.CLAIM:
                await self._learn(attestation=await uncut(self.port.attestation()))
            request_id = await registrar.submit(
                self.record.device_id, pem or self.record.public_key, self.record.attestation
            )
            await self._learn(request_id=request_id)
            await registrar.wait(request_id)
        await self._finish(Step.REGISTER, request_id, registered_key=key, registered_as=registered)

    async def _request_under_way(self, what: str) -> str:
        """Return the id of a request that a run sent and did not see the end of, once it succeeded.

        "" where there is none, or it failed: then it is sent again, with the same key.
        """
        registrar, request_id = self.bench.registrar, self.record.request_id
        if registrar is None or not request_id or await self._unfinished(Step.REGISTER) != what:
            return ""
        try:
            await registrar.wait(request_id)
        except ServiceRefusal:
            return ""
        return request_id

    async def _set_clock(self) -> None:
        registrar = self.bench.registrar
        ahead_s = await registrar.host_clock_ahead_s(self.bench.now) if registrar else None
        trusted = check_host_clock(ahead_s)
        await self.port.set_clock(self.bench.now())
        await self._finish(Step.CLOCK, trusted)

    async def _prove(self) -> None:
        registrar = self.bench.registrar
        if registrar is None:
            return

        async def ask(subject: str, life_s: int) -> str:
            return await uncut(self.port.token(subject, life_s, self.bench.goal.security_tag))

        said = await registrar.prove(self.record.device_id, ask)
        await self._finish(Step.PROOF, said)

    # --- what every step needs

    async def _on_this_board(self, write: Callable[[], Awaitable[T]]) -> T:
        """Do one write with the board's identity read before and after it."""
        await self._same_board("the write")
        result = await write()
        self.writes += 1
        await self._same_board("the write, which may have gone to the other board")
        return result

    async def _same_board(self, when: str) -> None:
        found = await self.port.imei()
        if found != self.record.imei:
            raise BoardSwapped(
                f"IMEI {self.record.imei} became {found} at {when}",
                hint="put the board back and run again: what was done is in the ledger",
            )

    def _host_key_file(self) -> Path:
        name = f"{self.record.uuid}-{key_fingerprint(self.record.public_key)[:16]}.pem"
        return self.bench.key_folder / name

    async def _unfinished(self, step: Step) -> str:
        """Return what an earlier run noted as it began a step and did not end it, else ""."""
        line = self.bench.ledger
        return await line(line.ledger.unfinished, self.record.uuid, step.value) or ""

    async def _begin(self, step: Step, detail: str = "") -> None:
        line = self.bench.ledger
        await line(line.ledger.begin, self.record.uuid, step.value, detail)

    async def _refused(self, step: Step, reason: str) -> None:
        line = self.bench.ledger
        await line(line.ledger.refused, self.record.uuid, step.value, reason)

    async def _finish(self, step: Step, detail: str = "", **learned: str) -> None:
        line = self.bench.ledger
        await line(line.ledger.finish, self.record.uuid, step.value, detail, **learned)
        self._remember(learned)

    async def _learn(self, **learned: str) -> None:
        line = self.bench.ledger
        await line(line.ledger.learn, self.record.uuid, **learned)
        self._remember(learned)

    def _remember(self, learned: dict[str, str]) -> None:
        self.record = BoardRecord(**{**asdict(self.record), **learned})


async def uncut(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; when cancelled meanwhile, let it end first: a modem hates half a command."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=_LONGEST_STEP_S)
        if task.done() and not task.cancelled():
            task.exception()  # looked at: nobody is left to be told
        raise


def registration_of(way: Registration, device_id: str) -> str:
    """Return what the ledger keeps of a registration: how, and as which device."""
    return f"{way.value} {device_id}"
