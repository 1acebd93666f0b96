"""The run of one board, from whatever state it is in to the goal; a failure is an outcome."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from agent import __version__
from agent.errors import AgentError, RefusedByRule, exit_code_of
from agent.provisioning.boards.board import (
    BoardLocation,
    BoardState,
    BoardSwapped,
    CredentialStore,
    uninterrupted,
)
from agent.provisioning.boards.limits import judge
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ca.certificates import algorithm_of
from agent.provisioning.ledger import RunRecord, WorkOrder
from agent.provisioning.ledger.records import INTERRUPTED
from agent.provisioning.planning.plan import (
    BoardHistory,
    ProvisioningPlan,
    ProvisioningStep,
    left_by_run,
    make_plan,
    stored_digest,
)
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.provisioning.running.board_ledger import BoardLedger
from agent.provisioning.running.host_clock import check_host_clock
from agent.provisioning.running.outcome import (
    Outcome,
    StepTimes,
    hint_of,
    outcome_of,
    unexpected_failure,
)
from agent.provisioning.running.roll_call import Identity, RollCall
from agent.provisioning.running.steps.modem import CertificateIssuer, CredentialSteps, OfflineMode
from agent.provisioning.running.steps.module import ModuleSteps
from agent.provisioning.running.steps.service import ServiceSteps
from agent.retry import asked_wait
from at.commands.credentials import CredentialType
from at.protocol.errors import AtError, CommandTimeout, LinkLost, NoAnswer

if TYPE_CHECKING:
    from agent.provisioning.ca.device_ca import DeviceCa
    from agent.provisioning.planning.goal import Goal
    from agent.provisioning.running.steps.registrar import Registrar

_RESTORE_TIMEOUT_S = 20.0
_WAIT_FOR_SERVICE = {
    *(ProvisioningStep.OTHER_KEYS, ProvisioningStep.CLAIM),
    *(ProvisioningStep.REGISTER, ProvisioningStep.CLOCK, ProvisioningStep.PROOF),
}
_BY_COMMANDS = {
    *(ProvisioningStep.ONLINE, ProvisioningStep.CA_CHAIN, ProvisioningStep.KEY),
    *(ProvisioningStep.WRITE, ProvisioningStep.VERIFY),
}
_log = logging.getLogger(__name__)
Action = Callable[[], Coroutine[Any, Any, None]]


class Station(Struct):
    """The settings and services that all boards of a run share.

    `registrar` None asks no service, `device_ca` None signs no certificate. Keys made on this host
    are in `key_folder`; `now` gives the host's time, aware. `relabel` are labels that may change
    boards.
    """

    goal: Goal
    ledger: AsyncLedger
    registrar: Registrar | None
    device_ca: DeviceCa | None
    key_folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    order: WorkOrder = field(default_factory=WorkOrder)
    relabel: frozenset[str] = frozenset()

    def run_at(self, location: BoardLocation, label: str) -> BoardLedger:
        """Return the record of a run that begins now; nothing is stored yet."""
        run = RunRecord(
            id=str(uuid4()),
            began_at=self.now(),
            security_tag=self.goal.security_tag,
            cellagent=__version__,
            label=label,
            **asdict(location),
            **asdict(self.order),
        )
        return BoardLedger(self.ledger, run)


@dataclass
class BoardRun:
    """The run of one board at `location`, open as `port`. Calls `on_step` as each step begins."""

    port: ModemBoard
    location: BoardLocation
    station: Station
    ledger: BoardLedger
    roll_call: RollCall
    on_step: Callable[[ProvisioningStep], None]

    def __post_init__(self) -> None:
        self._step = ProvisioningStep.IDENTITY
        self._times = StepTimes()
        self._offline = OfflineMode(self.port, self.ledger)

    async def run(self) -> Outcome:
        """Bring the board to the goal. Only a cancelled task raises."""
        try:
            outcome = await self._provision()
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._stop()))
            raise
        if failure := await asyncio.shield(asyncio.ensure_future(self._restore_mode())):
            # Where that was the step that failed, it has failed once more: told once.
            first = "" if self._step is ProvisioningStep.RESTORE else outcome.reason
            outcome = replace(outcome, reason="; ".join(filter(None, [first, failure])))
        elif self._step is ProvisioningStep.RESTORE and outcome.outcome == "failed":
            outcome = self._reached()  # at the second try
        try:
            await self._conclude(outcome)
        except AgentError as error:
            # The ledger itself is gone: what went wrong before that is the better reason.
            return self._failed(error) if outcome.ok else outcome
        return outcome

    async def _stop(self) -> None:
        """End a run that was stopped from outside: its mode is put back, and the record says so."""
        failure = await self._restore_mode()
        if not self.station.ledger.is_open:
            return  # nobody waits for a server that may never answer: there is no claim to end
        reason = "; ".join(filter(None, ["it was stopped", failure]))
        stopped = replace(self._outcome(INTERRUPTED, reason), reason_code=INTERRUPTED)
        with suppress(AgentError):  # then it is found cut off, as after a kill
            await self._conclude(stopped)

    async def _conclude(self, outcome: Outcome) -> None:
        await self.ledger.conclude(outcome, self._times.to_json())

    async def _provision(self) -> Outcome:
        try:
            return await self._bring_to_goal()
        except (AgentError, AtError) as error:
            return self._failed(error)
        except Exception as defect:  # noqa: BLE001 - whatever is wrong with one stops no other
            return self._failed(unexpected_failure(defect, self.location))

    async def _bring_to_goal(self) -> Outcome:
        self._enter(ProvisioningStep.IDENTITY)
        board = await uninterrupted(self.port.read())
        goal = self._goal = self.station.goal.of(board)
        # A board that the firmware gate refuses has shown only its IMEI: there is none to claim.
        refused, relabelled, history = bool(board.refusal), "", BoardHistory()
        device_id = "" if refused else goal.device_id(board.uuid, board.imei)
        self.ledger.identify(board, device_id)
        if not refused:
            identity = Identity(board.uuid, board.imei, device_id)
            await self.roll_call.answer(self.location, identity)
            history = await self.ledger.claim(board, goal)
        if history.mode_before is not None and not left_by_run(board.mode, goal):
            self._offline.forget(board.mode)
        plan = await plan_board(self.port, board, goal, history)
        # A refused clone gives the board that it says it is no label.
        is_clone = history.imei not in {"", board.imei}
        if not (refused or (plan.refusal and is_clone)):
            relabelled = await self.ledger.bind_label(self.station.relabel)
        if not (plan.has(ProvisioningStep.OFFLINE) or plan.has(ProvisioningStep.ONLINE)):
            self._offline.resume(plan.restore_mode)
        if plan.refusal:
            self._step = plan.refused_at
            refusal = self._outcome("refused", plan.refusal, plan.hint, RefusedByRule.exit_code)
            return replace(refusal, reason_code=plan.reason_code)
        if consent := "; ".join(filter(None, [relabelled, plan.consent])):
            self.ledger.consent(consent)
        actions = self._actions(plan, board, history)
        for one in plan.steps:
            self._enter(one.step)
            # None have the gate and the identity, which the plan itself judged, and what calls a
            # service where there is none.
            if one.step in actions:
                await self._do(one.step, actions[one.step])
        return self._reached()

    def _reached(self) -> Outcome:
        if not self._goal.gives_key:
            self.ledger.hold_device_id(self._goal.registered_by)
        return self._outcome("done" if self.ledger.state.has_changed else "unchanged")

    def _actions(
        self, plan: ProvisioningPlan, board: BoardState, history: BoardHistory
    ) -> dict[ProvisioningStep, Action]:
        station, goal = self.station, self._goal
        mode_before = board.mode if plan.restore_mode is None else plan.restore_mode
        store: CredentialStore = self.port
        ends: Action | None = None
        if goal.takes_commands and station.registrar is not None:
            # Only here: a bench with no service need not pay for the HTTP client.
            from agent.provisioning.running.steps.commanded_store import CommandedStore

            commanded = CommandedStore(self.port, station.registrar.client, board.uuid)
            store, ends = commanded, commanded.finish
        credentials = CredentialSteps(self.port, store, self.ledger, goal, station.key_folder)
        # What is deleted before it has notes of its own, which come first.
        writes_chain = plan.has(ProvisioningStep.CA_CHAIN) and not plan.delete
        announced = credentials.ca_chain if writes_chain else None
        issuer = CertificateIssuer(
            self.ledger, goal, station.device_ca, station.key_folder, station.now
        )
        actions: dict[ProvisioningStep, Action] = {
            ProvisioningStep.LIMITS: partial(self._note_limits, plan),
            ProvisioningStep.OFFLINE: partial(self._offline.enter, mode_before, announced),
            ProvisioningStep.ONLINE: partial(self._go_online, board, mode_before),
            ProvisioningStep.CLEAR: partial(credentials.clear, plan.delete),
            ProvisioningStep.CA_CHAIN: credentials.write_ca_chain,
            ProvisioningStep.KEY: credentials.make_key,
            ProvisioningStep.CERTIFICATE: issuer.issue,
            ProvisioningStep.WRITE: credentials.write_certificate,
            ProvisioningStep.VERIFY: partial(self._verify, credentials, ends),
            ProvisioningStep.CLOCK: self._set_clock,
            ProvisioningStep.RESTORE: self._offline.restore,
        }
        if station.registrar is not None:
            parts = self.port, self.ledger, goal, station.registrar, history.alone
            key = board.module_key
            service = (
                ModuleSteps(*parts, public_key=key) if key else ServiceSteps(*parts, plan.ask_keys)
            )
            actions[ProvisioningStep.OTHER_KEYS] = service.ask_other_keys
            actions[ProvisioningStep.CLAIM] = service.claim
            actions[ProvisioningStep.REGISTER] = service.register
            actions[ProvisioningStep.PROOF] = service.prove
        return actions

    async def _note_limits(self, plan: ProvisioningPlan) -> None:
        self.ledger.finish(ProvisioningStep.LIMITS, plan.words(ProvisioningStep.LIMITS))

    async def _set_clock(self) -> None:
        """Set the modem's clock from the host's. Raises RefusedByRule if that may be wrong."""
        registrar, now = self.station.registrar, self.station.now
        trusted = check_host_clock(await registrar.host_clock_ahead_s(now) if registrar else None)
        await uninterrupted(self.port.set_clock(now()))
        self.ledger.finish(ProvisioningStep.CLOCK, trusted)

    async def _go_online(self, board: BoardState, mode_before: int) -> None:
        """Have the kit where it can ask the service: on the network, with the time."""
        if self._goal.set_clock and not board.has_time:
            await self._set_clock()
        await self._offline.leave(mode_before)

    async def _verify(self, credentials: CredentialSteps, ends: Action | None) -> None:
        if ends is not None:
            await ends()
        await credentials.verify()

    async def _do(self, step: ProvisioningStep, action: Action) -> None:
        by_commands = self._goal.takes_commands and step in _BY_COMMANDS
        try:
            # A step that waits for a service is stopped at once; the rest takes seconds.
            waits_for_service = by_commands or step in _WAIT_FOR_SERVICE
            await (action() if waits_for_service else uninterrupted(action()))
        except (BoardSwapped, CommandTimeout, LinkLost, NoAnswer):
            raise
        except (AgentError, AtError):
            # What another board says of itself is no word about this one.
            with suppress(AtError):
                await uninterrupted(
                    self.port.require_same("a step that failed", is_done=by_commands)
                )
            raise

    async def _restore_mode(self) -> str:
        """Restore the functional mode, whatever happened; return why that failed, else ""."""
        try:
            async with asyncio.timeout(_RESTORE_TIMEOUT_S):
                await self._offline.restore()
        except (AtError, AgentError, TimeoutError) as error:
            failure = str(error) or "it does not answer"
            if self._offline.restore_due:
                failure = f"the modem's mode could not be put back: {failure}"
            _log.warning("%s: %s", self.location.port, failure)
            return failure
        return ""

    def _enter(self, step: ProvisioningStep) -> None:
        self._step = step
        self._times.enter(step)
        self.on_step(step)

    def _failed(self, error: AgentError | AtError) -> Outcome:
        reason = "; ".join(filter(None, [str(error), asked_wait(error, self.station.now())]))
        failed = self._outcome(outcome_of(error), reason, hint_of(error), exit_code_of(error))
        return replace(failed, reason_code=error.kind)

    def _outcome(
        self, outcome: str, reason: str = "", hint: str = "", exit_code: int = 0
    ) -> Outcome:
        record = self.ledger.record
        return Outcome(
            location=self.location,
            device_id=record.device_id,
            uuid=record.uuid,
            outcome=outcome,
            step=self._step.value,
            exit=exit_code,
            reason=reason,
            hint=hint,
            writes=self.ledger.writes,
        )


async def plan_board(
    port: ModemBoard, board: BoardState, goal: Goal, history: BoardHistory
) -> ProvisioningPlan:
    """Return the plan for a board; reads a client certificate first if it is not ours.

    The limits are judged now, for the plan depends on them.

    Raises UntrustedSignature, BoardSwapped where the board attests wrongly what it is.
    """
    if not board.refusal:
        board = replace(board, attested=await port.require_attested(board.uuid))
    held = board.held(goal.security_tag, CredentialType.CLIENT_CERTIFICATE)
    if held is not None and held.sha256.upper() != stored_digest(history.certificate):
        pem = await port.certificate(goal.security_tag)
        await port.require_same("the reading of its certificate")
        board = replace(board, certificate_algorithm=algorithm_of(pem))
    plan = make_plan(board, goal, history)
    if not plan.limits:
        return plan
    judged = await judge(port.measure, board.mode, plan.limits, port.cause)
    await port.require_same("the judgement of its limits")
    if judged.refusal:
        return ProvisioningPlan(
            refusal=judged.refusal,
            hint=judged.hint,
            reason_code="limit",
            refused_at=ProvisioningStep.LIMITS,
        )
    return plan.with_words(ProvisioningStep.LIMITS, judged.readings)
