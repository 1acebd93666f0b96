"""One board from whatever it is to what is wanted: each step noted before and after it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.errors import AgentError, exit_code_of
from agent.provisioning.board_port import BoardPort, WrongAnswer
from agent.provisioning.certificates import (
    DeviceCa,
    new_host_key,
    pem_of,
    private_pem,
    public_pem,
    self_signed,
)
from agent.provisioning.goal import (
    CA_CHAIN,
    CLIENT_CERTIFICATE,
    PRIVATE_KEY,
    Certificate,
    Goal,
    KeyOrigin,
)
from agent.provisioning.ledger import BoardBusy, BoardRecord
from agent.provisioning.outcome import Outcome, Place
from agent.provisioning.plan import Known, Plan, PlannedStep, Step, plan, stored_digest
from at.errors import AtError

if TYPE_CHECKING:
    from pathlib import Path

    from agent.provisioning.board import Board
    from agent.provisioning.ledger import Ledger
    from agent.provisioning.registrar import Registrar

T = TypeVar("T")
OFFLINE_MODE = 4
_RESTORE_S = 10.0


class BoardSwapped(AgentError):
    """Another board answers on this port than the one that was begun with."""

    kind = "swapped"


class LedgerLine:
    """The ledger for many tasks: one call at a time, each in a thread, since each is synced."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._turn = asyncio.Lock()

    async def __call__(self, do: Callable[..., T], *arguments: object, **learned: object) -> T:
        """Call a method of the ledger."""
        async with self._turn:
            return await asyncio.to_thread(do, *arguments, **learned)


@dataclass(slots=True)
class Bench:
    """What all boards of a run have in common."""

    goal: Goal
    ledger: LedgerLine
    registrar: Registrar | None
    device_ca: DeviceCa | None
    key_folder: Path
    now: Callable[[], datetime]


@dataclass(slots=True)
class BoardRun:
    """The run of one board. `on_step` hears of each step as it begins."""

    port: BoardPort
    place: Place
    bench: Bench
    on_step: Callable[[Step], None] = lambda _step: None
    step: Step = Step.IDENTITY
    writes: int = 0
    _record: BoardRecord = field(default_factory=lambda: BoardRecord(""))
    _plan: Plan = field(default_factory=Plan)
    _offline: bool = False

    async def run(self) -> Outcome:
        """Bring the board to the goal; what goes wrong is an outcome, not an exception."""
        claimed = False
        try:
            self._enter(Step.IDENTITY)
            board = await self.port.read()
            # What the gate refuses has told nothing but its IMEI: there is no record to claim.
            if not board.refusal:
                await self._claim(board)
                claimed = True
            self._plan = plan(board, self.bench.goal, await self._known())
            if self._plan.refusal:
                self.step = Step.GATE
                outcome = self._outcome("refused", self._plan.refusal, self._plan.hint)
            else:
                for planned in self._plan.steps:
                    await self._do(planned)
                outcome = self._outcome("done" if self._changed() else "unchanged")
        except BoardBusy as busy:
            outcome = self._outcome("busy", str(busy), busy.hint)
        except BoardSwapped as swapped:
            outcome = self._outcome("swapped", str(swapped), swapped.hint)
        except (AgentError, AtError) as error:
            outcome = self._outcome("failed", str(error), error.hint, exit_code_of(error))
        finally:
            await asyncio.shield(self._leave(claimed=claimed))
        if claimed:
            ledger = self.bench.ledger
            await ledger(
                ledger.ledger.conclude,
                self._record.uuid, outcome.outcome, outcome.step, outcome.reason, self.writes,
            )  # fmt: skip
            await ledger(ledger.ledger.release, self._record.uuid)
        return outcome

    async def _claim(self, board: Board) -> None:
        self._record = await self.bench.ledger(
            self.bench.ledger.ledger.claim,
            board.uuid,
            imei=board.imei,
            firmware=board.firmware,
            device_id=self.bench.goal.device_id(board.uuid, board.imei),
            serial=self.place.serial,
            usb_place=self.place.usb_place,
            slot=self.place.slot,
        )

    async def _known(self) -> Known:
        ledger = self.bench.ledger
        return await ledger(known_of, ledger.ledger, self._record.uuid)

    async def _do(self, planned: PlannedStep) -> None:
        self._enter(planned.step)
        doing: dict[Step, Callable[[], Awaitable[None]]] = {
            Step.OFFLINE: self._go_offline,
            Step.CLEAR: self._clear,
            Step.CA_CHAIN: partial(self._written, CA_CHAIN, self.bench.goal.ca_chain),
            Step.KEY: self._make_key,
            Step.CERTIFICATE: self._issue_certificate,
            Step.WRITE: self._write_certificate,
            Step.VERIFY: self._verify,
            Step.REGISTER: self._register,
            Step.CLOCK: self._set_clock,
            Step.PROOF: self._prove,
            Step.RESTORE: self._restore,
        }
        # The gate and the identity were judged by the plan itself.
        if planned.step in doing:
            await doing[planned.step]()

    def _enter(self, step: Step) -> None:
        self.step = step
        self.on_step(step)

    # --- steps

    async def _go_offline(self) -> None:
        self._offline = True
        await self.port.set_mode(OFFLINE_MODE)

    async def _restore(self) -> None:
        if self._offline and self._plan.restore_mode is not None:
            await self.port.set_mode(self._plan.restore_mode)
            self._offline = False

    async def _clear(self) -> None:
        for tag, kind in self._plan.delete:
            await self._begin(Step.CLEAR, f"{tag}:{kind}")
            await self._on_this_board(self.port.delete(tag, kind))
            await self._finish(Step.CLEAR, f"{tag}:{kind}")

    async def _written(self, kind: int, content: str) -> None:
        await self._begin(self.step)
        await self._on_this_board(self.port.write(self.bench.goal.security_tag, kind, content))
        await self._finish(self.step, stored_digest(content))

    async def _make_key(self) -> None:
        goal = self.bench.goal
        # From here on a key may be in the modem of which nobody knows the public half: the plan
        # of a later run reads this note and makes it again.
        await self._begin(Step.KEY)
        if goal.key_origin is KeyOrigin.HOST:
            key = await asyncio.to_thread(new_host_key, self._key_file())
            pem, proof = public_pem(key.public_key()), "made on this host"
            await self._on_this_board(
                self.port.write(goal.security_tag, PRIVATE_KEY, private_pem(key))
            )
        else:
            made = await self._on_this_board(self.port.make_key(goal.security_tag, goal.subject))
            if made.uuid not in {"", self._record.uuid}:
                raise BoardSwapped(
                    f"the key was made by {made.uuid}, not by {self._record.uuid}",
                    hint="put the board back and run again",
                )
            pem, proof = made.public_pem, made.proof
        digest = next(
            (
                held.sha256
                for held in await self.port.credentials()
                if (held.tag, held.type) == (goal.security_tag, PRIVATE_KEY)
            ),
            "",
        )
        if not digest:
            raise WrongAnswer("the modem made a key and does not list it")
        await self._finish(Step.KEY, proof, public_key=pem, key_digest=digest, certificate="")

    async def _issue_certificate(self) -> None:
        goal, name = self.bench.goal, self._record.device_id
        if goal.certificate is Certificate.SELF_SIGNED:
            key = serialization.load_pem_private_key(self._key_file().read_bytes(), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise WrongAnswer(f"{self._key_file()} holds no P-256 key")
            certificate = self_signed(key, name, self.bench.now())
        else:
            public_key = serialization.load_pem_public_key(self._record.public_key.encode())
            if self.bench.device_ca is None or not isinstance(
                public_key, ec.EllipticCurvePublicKey
            ):
                raise WrongAnswer("there is no CA to sign with, or no P-256 key to sign for")
            certificate = self.bench.device_ca.sign(public_key, name, self.bench.now())
        await self._begin(Step.CERTIFICATE)
        await self._finish(Step.CERTIFICATE, certificate=pem_of(certificate))

    async def _write_certificate(self) -> None:
        await self._written(CLIENT_CERTIFICATE, self._record.certificate)

    async def _verify(self) -> None:
        goal = self.bench.goal
        await self._same_board("verification")
        listed = {(held.tag, held.type): held.sha256 for held in await self.port.credentials()}
        wanted = {PRIVATE_KEY: self._record.key_digest}
        if goal.ca_chain:
            wanted[CA_CHAIN] = stored_digest(goal.ca_chain)
        if goal.certificate is not Certificate.NONE:
            wanted[CLIENT_CERTIFICATE] = stored_digest(self._record.certificate)
            self._certificate_fits_key()
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
        pem = self._record.certificate or self._record.public_key
        await self._begin(Step.REGISTER)
        request_id = await registrar.submit(
            self._record.device_id,
            pem if registrar.way.value == "onboard" else self._record.public_key,
            self.port.attestation,
        )
        await self._learn(request_id=request_id)
        await registrar.wait(request_id)
        await self._finish(
            Step.REGISTER, request_id, registered_key=key_fingerprint(self._record.public_key)
        )

    async def _set_clock(self) -> None:
        await self.port.set_clock(self.bench.now())

    async def _prove(self) -> None:
        registrar = self.bench.registrar
        if registrar is None:
            return

        async def ask(subject: str, life_s: int) -> str:
            return await self.port.token(subject, life_s, self.bench.goal.security_tag)

        said = await registrar.prove(self._record.device_id, ask)
        await self._finish(Step.PROOF, said)

    # --- what every step needs

    async def _on_this_board(self, writing: Awaitable[T]) -> T:
        """Do one write with the board's identity read before and after it."""
        try:
            await self._same_board("the write")
        except BaseException:
            if asyncio.iscoroutine(writing):
                writing.close()
            raise
        result = await writing
        self.writes += 1
        await self._same_board("the write, which may have gone to the other board")
        return result

    async def _same_board(self, when: str) -> None:
        found = await self.port.imei()
        if found != self._record.imei:
            raise BoardSwapped(
                f"IMEI {self._record.imei} became {found} at {when}",
                hint="put the board back and run again: what was done is in the ledger",
            )

    def _certificate_fits_key(self) -> None:
        certificate = x509.load_pem_x509_certificate(self._record.certificate.encode())
        if public_pem_of(certificate) != self._record.public_key:
            raise WrongAnswer("the certificate is for another key than the board's")

    def _key_file(self) -> Path:
        return self.bench.key_folder / f"{self._record.uuid}.pem"

    async def _begin(self, step: Step, detail: str = "") -> None:
        await self.bench.ledger(
            self.bench.ledger.ledger.begin, self._record.uuid, step.value, detail
        )

    async def _finish(self, step: Step, detail: str = "", **learned: str) -> None:
        await self.bench.ledger(
            self.bench.ledger.ledger.finish, self._record.uuid, step.value, detail, **learned
        )
        self._remember(learned)

    async def _learn(self, **learned: str) -> None:
        await self.bench.ledger(self.bench.ledger.ledger.learn, self._record.uuid, **learned)
        self._remember(learned)

    def _remember(self, learned: dict[str, str]) -> None:
        self._record = BoardRecord(**{**asdict(self._record), **learned})

    async def _leave(self, *, claimed: bool) -> None:
        """Put the mode back, whatever happened; a board that is gone has none to put back."""
        if not claimed or not self._offline or self._plan.restore_mode is None:
            return
        try:
            async with asyncio.timeout(_RESTORE_S):
                await self._restore()
        except (AtError, AgentError, TimeoutError) as error:
            await self._finish(Step.RESTORE, f"the mode could not be put back: {error}")

    def _changed(self) -> bool:
        return self.writes > 0 or self._plan.has(Step.REGISTER)

    def _outcome(
        self, outcome: str, reason: str = "", hint: str = "", exit_code: int | None = None
    ) -> Outcome:
        return Outcome.of(
            outcome, self.place, self._record.device_id, self._record.uuid, self.step.value,
            reason, hint, self.writes, exit_code,
        )  # fmt: skip


def known_of(ledger: Ledger, uuid: str) -> Known:
    """Return what the ledger knows of a board that matters to its plan."""
    record = ledger.board(uuid) or BoardRecord(uuid)
    return Known(
        public_key=record.public_key,
        key_digest=record.key_digest,
        certificate=record.certificate,
        registered=bool(record.public_key)
        and record.registered_key == key_fingerprint(record.public_key),
        key_begun=ledger.begun_and_not_done(uuid, Step.KEY.value),
    )


def key_fingerprint(pem: str) -> str:
    """Return the SHA-256, in hex, of a public key's SubjectPublicKeyInfo: a JWT's `kid`."""
    key = serialization.load_pem_public_key(pem.encode())
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    digest = hashes.Hash(hashes.SHA256())
    digest.update(der)
    return digest.finalize().hex()


def public_pem_of(certificate: x509.Certificate) -> str:
    """Return the public key of a certificate as PEM, "" if it is no elliptic-curve key."""
    key = certificate.public_key()
    return public_pem(key) if isinstance(key, ec.EllipticCurvePublicKey) else ""
