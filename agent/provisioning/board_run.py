"""One board from whatever it is to what is wanted; what goes wrong is an outcome."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent.errors import AgentError, exit_code_of
from agent.provisioning.board_steps import BoardSteps
from agent.provisioning.certificates import algorithm_of, key_fingerprint
from agent.provisioning.goal import CLIENT_CERTIFICATE, Goal
from agent.provisioning.ledger import BoardBusy, BoardRecord
from agent.provisioning.outcome import BoardLocation, Outcome
from agent.provisioning.plan import (
    OFFLINE_MODE,
    BoardHistory,
    ProvisioningPlan,
    ProvisioningStep,
    plan,
    stored_digest,
)
from agent.provisioning.service_steps import registration_of
from agent.provisioning.step_notes import BoardSwapped, uninterrupted
from at.protocol.errors import AtError, CommandRejected, PortBusy

if TYPE_CHECKING:
    from agent.provisioning.board import BoardPort, BoardState
    from agent.provisioning.ledger import Ledger
    from agent.provisioning.workbench import Station

_RESTORE_S = 20.0
_AGAIN = "run the same command again: what is done is left alone"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class BoardRun:
    """The run of one board. `on_step` hears of each step as it begins."""

    port: BoardPort
    location: BoardLocation
    bench: Station
    on_step: Callable[[ProvisioningStep], None] = lambda _step: None
    step: ProvisioningStep = ProvisioningStep.IDENTITY
    _steps: BoardSteps = field(init=False)
    _claimed: bool = False

    def __post_init__(self) -> None:
        self._steps = BoardSteps(self.port, self.bench, BoardRecord(""), ProvisioningPlan())

    async def run(self) -> Outcome:
        """Bring the board to the goal. Only a cancelled task raises."""
        try:
            outcome = await self._provision()
        finally:
            left = await asyncio.shield(asyncio.ensure_future(self._leave()))
        if left:
            outcome = replace(outcome, reason="; ".join(filter(None, [outcome.reason, left])))
        try:
            await self._conclude(outcome)
        except (AgentError, AtError) as error:
            # The ledger itself is gone: what went wrong before that is the better reason.
            return self._failed(error) if outcome.ok else outcome
        return outcome

    async def _provision(self) -> Outcome:
        try:
            self._enter(ProvisioningStep.IDENTITY)
            board = await uninterrupted(self.port.read())
            # What the gate refuses has told nothing but its IMEI: there is no record to claim.
            if not board.refusal:
                await self._claim(board)
            known = await self._known()
            if known.mode_before is not None and board.mode != OFFLINE_MODE:
                await self._steps.forget_mode(board.mode)
            made = await planned(self.port, board, self.bench.goal, known)
            self._steps.plan = made
            self._steps.offline = made.restore_mode is not None and not made.has(
                ProvisioningStep.OFFLINE
            )
            if made.refusal:
                self.step = ProvisioningStep.GATE
                return self._outcome("refused", made.refusal, made.hint)
            for one in made.steps:
                self._enter(one.step)
                await self._do(one.step)
        except (AgentError, AtError) as error:
            return self._failed(error)
        except Exception as defect:  # noqa: BLE001 - whatever is wrong with one stops no other
            return self._failed(defect_of_ours(defect, self.location))
        changed = self._steps.writes > 0 or self._steps.registered
        return self._outcome("done" if changed else "unchanged")

    async def _do(self, step: ProvisioningStep) -> None:
        doing = self._steps.do(step)
        try:
            # What waits for a service is stopped at once, see BoardSteps; the rest takes seconds.
            await (
                doing
                if step in {ProvisioningStep.REGISTER, ProvisioningStep.PROOF}
                else uninterrupted(doing)
            )
        except CommandRejected:
            await uninterrupted(self._steps.same_board("a command that was refused"))
            raise

    async def _claim(self, board: BoardState) -> None:
        line, location = self.bench.ledger, self.location
        device_id = self.bench.goal.device_id(board.uuid, board.imei)
        # Known already, so that a board which another station has is named as well.
        self._steps.record = BoardRecord(board.uuid, device_id=device_id)
        self._steps.record = await line(
            line.ledger.claim,
            board.uuid,
            imei=board.imei,
            firmware=board.firmware,
            device_id=device_id,
            serial=location.serial,
            usb_place=location.usb_place,
            slot=location.slot,
        )
        self._claimed = True

    async def _known(self) -> BoardHistory:
        line, record = self.bench.ledger, self._steps.record
        return await line(known_of, line.ledger, record.uuid, self.bench.goal, record.device_id)

    async def _leave(self) -> str:
        """Put the mode back, whatever happened; return why it could not be, "" if it was."""
        try:
            async with asyncio.timeout(_RESTORE_S):
                await self._steps.restore()
        except (AtError, AgentError, TimeoutError) as error:
            left = str(error) or "it does not answer"
            if self._steps.offline:
                left = f"the modem's mode could not be put back: {left}"
            _log.warning("%s: %s", self.location.port, left)
            return left
        return ""

    async def _conclude(self, outcome: Outcome) -> None:
        if not self._claimed:
            return
        line, uuid = self.bench.ledger, self._steps.record.uuid
        try:
            await line(
                line.ledger.conclude,
                uuid, outcome.outcome, outcome.step, outcome.reason, self._steps.unnoted_writes(),
            )  # fmt: skip
        finally:
            await line(line.ledger.release, uuid)

    def _enter(self, step: ProvisioningStep) -> None:
        self.step = step
        self.on_step(step)

    def _failed(self, error: AgentError | AtError) -> Outcome:
        kinds = {BoardBusy: "busy", PortBusy: "busy", BoardSwapped: "swapped"}
        outcome = next((name for kind, name in kinds.items() if isinstance(error, kind)), "failed")
        code = exit_code_of(error) if outcome == "failed" else None
        return self._outcome(outcome, str(error), error.hint or _AGAIN, code)

    def _outcome(
        self, outcome: str, reason: str = "", hint: str = "", exit_code: int | None = None
    ) -> Outcome:
        record = self._steps.record
        return Outcome.of(
            outcome, self.location, record.device_id, record.uuid, self.step.value,
            reason, hint, self._steps.writes, exit_code,
        )  # fmt: skip


def defect_of_ours(defect: Exception, location: BoardLocation) -> AgentError:
    """Return what is said of an exception that nobody foresaw; the log has all of it."""
    _log.info("%s", location.port, exc_info=defect)
    return AgentError(
        f"a defect of this program ({type(defect).__name__})",
        hint="run again with -v and report what it prints",
    )


async def planned(
    port: BoardPort, board: BoardState, goal: Goal, known: BoardHistory
) -> ProvisioningPlan:
    """Return the plan for a board; a client certificate that is not ours is looked at first."""
    held = board.held(goal.security_tag, CLIENT_CERTIFICATE)
    if held is not None and held.sha256.upper() != stored_digest(known.certificate):
        pem = await port.certificate(goal.security_tag)
        board = replace(board, certificate_algorithm=algorithm_of(pem))
    return plan(board, goal, known)


def known_of(ledger: Ledger, uuid: str, goal: Goal, device_id: str) -> BoardHistory:
    """Return what the ledger knows of a board that matters to its plan."""
    record = ledger.board(uuid) or BoardRecord(uuid)
    registered_as = registration_of(goal.registration, device_id)
    begun = ledger.unfinished(uuid, ProvisioningStep.KEY.value)
    mode = ledger.unfinished(uuid, ProvisioningStep.OFFLINE.value)
    return BoardHistory(
        public_key=record.public_key,
        key_digest=record.key_digest,
        certificate=record.certificate,
        registered=bool(record.public_key)
        and record.registered_key == key_fingerprint(record.public_key)
        and record.registered_as == registered_as,
        key_begun=begun is not None and begun.partition(" ")[0] == str(goal.security_tag),
        mode_before=int(mode) if mode else None,
    )
