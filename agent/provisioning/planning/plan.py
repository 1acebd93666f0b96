"""The plan: the steps still needed to bring a board from what it holds to the goal. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from msgspec import Struct, field
from msgspec.structs import replace

from agent.provisioning.boards.board import BoardState
from agent.provisioning.boards.limits import Limit
from agent.provisioning.planning.consent import HeldKey, KeyQuestion, KnownKeys, OtherKey
from agent.provisioning.planning.goal import (
    CREDENTIAL_NAMES,
    CertificateSource,
    Goal,
    KeyOrigin,
    RegistrationMethod,
)
from agent.provisioning.planning.other_keys import (
    Keys,
    key_of,
    keys_to_ask,
    question_of,
    unknown_tags,
)
from at.commands.credentials import CredentialType
from at.commands.functional_mode import LTE_MODES, FunctionalMode

OFFLINE_MODE = FunctionalMode.FLIGHT
"""The functional mode in which the modem takes credentials; in LTE_MODES it refuses them."""


class ProvisioningStep(Enum):
    """The steps, in the order in which they are done; CLOCK comes before what needs the time."""

    GATE = "gate"
    IDENTITY = "identity"
    LIMITS = "limits"
    OTHER_KEYS = "other-keys"
    CLAIM = "claim"
    OFFLINE = "offline"
    CLEAR = "clear"
    ONLINE = "online"
    CA_CHAIN = "ca-chain"
    KEY = "key"
    CERTIFICATE = "certificate"
    WRITE = "write"
    VERIFY = "verify"
    REGISTER = "register"
    CLOCK = "clock"
    PROOF = "proof"
    RESTORE = "restore"


class BoardHistory(Struct, frozen=True):
    """The results of earlier runs with a board, from the ledger.

    `key_digest` is what the modem lists for the key that we made in the goal's tag, `made` when and
    where that was. `key_begun`: an interrupted run was about to make a key, and it is not known
    whether it did. `mode_before` is the functional mode that such a run left for the offline one,
    None where none did. `other_keys` are the live keys of other tags, `retired` the reasons of
    those that are live no more, by digest. `alone`: no other key of any board works as the
    device. `certificate_ended` is the day on which the certificate ended, "" if it did not, or
    none is wanted; `certificate_name` is the device that it names, "" if none is wanted, and
    `other_ca` who issued it, "" if that is the goal's CA, or the goal has none.
    `id_holders` says which other boards have the device id. `imei` is the board's by the
    ledger, "" where it knows none.
    """

    public_key: str = ""
    key_digest: str = ""
    certificate: str = ""
    certificate_ended: str = ""
    certificate_name: str = ""
    other_ca: str = ""
    registered: bool = False
    alone: bool = True
    key_begun: bool = False
    mode_before: int | None = None
    made: str = ""
    other_keys: tuple[OtherKey, ...] = ()
    retired: Mapping[str, str] = field(default_factory=dict)
    id_holders: tuple[str, ...] = ()
    imei: str = ""


class PlannedStep(Struct, frozen=True):
    """One step, and a text for a person: its effect and its reason."""

    step: ProvisioningStep
    words: str
    writes: int = 0
    """Credential writes: each wears the modem's flash."""


class ProvisioningPlan(Struct, frozen=True):
    """The steps for a board, or the reason why there are none.

    `reason_code` is the slug of the refusal, which the ledger keeps with it, and `refused_at` the
    step that it belongs to. `consent` says what the operator has allowed by an option and why that
    was needed. `limits` are those that are judged. `delete` are the credentials, by tag and type,
    that CLEAR deletes. `ask_keys` are the tags whose keys the service may have, for all that the
    ledger knows, the identity key's None: it is asked before it is given another. `restore_mode` is
    the functional mode to put back, None where it is not changed.
    """

    steps: tuple[PlannedStep, ...] = ()
    refusal: str = ""
    hint: str = ""
    reason_code: str = "refused"
    refused_at: ProvisioningStep = ProvisioningStep.GATE
    consent: str = ""
    limits: tuple[Limit, ...] = ()
    delete: tuple[tuple[int, int], ...] = ()
    ask_keys: Keys = ()
    restore_mode: int | None = None

    @property
    def writes(self) -> int:
        """Return how many credential writes the plan makes."""
        return sum(step.writes for step in self.steps)

    def has(self, step: ProvisioningStep) -> bool:
        """Whether a step is part of the plan."""
        return any(planned.step is step for planned in self.steps)

    def words(self, step: ProvisioningStep) -> str:
        """Return the text of a step, "" where it is no part of the plan."""
        return next((planned.words for planned in self.steps if planned.step is step), "")

    def with_words(self, step: ProvisioningStep, words: str) -> ProvisioningPlan:
        """Return the plan with another text for a step."""
        steps = (replace(one, words=words) if one.step is step else one for one in self.steps)
        return replace(self, steps=tuple(steps))


_CLOCK = PlannedStep(ProvisioningStep.CLOCK, "set the modem's clock from this host's")


class _Draft(Struct):
    """The plan as it grows: writing steps, deletions, and deletions not allowed."""

    steps: list[PlannedStep] = field(default_factory=list)
    delete: list[tuple[int, int]] = field(default_factory=list)
    blockers: dict[tuple[int, int], str] = field(default_factory=dict)


def stored_digest(content: str) -> str:
    """Return the digest that the modem lists for `content`: over the exact bytes written."""
    return hashlib.sha256(content.encode()).hexdigest().upper()


def make_plan(board: BoardState, goal: Goal, history: BoardHistory) -> ProvisioningPlan:
    """Return the steps that lead from `board` to `goal`; what fits already stays."""
    if refused := _refused_at_once(board, goal):
        return refused
    draft = _Draft()
    question = _key_question(board, goal, history)
    _plan_ca_chain(board, goal, draft)
    new_key = _plan_key(board, goal, question, draft)
    _plan_certificate(board, goal, history, draft, new_key=new_key)
    certifies = any(planned.step is ProvisioningStep.CERTIFICATE for planned in draft.steps)
    registers = goal.registration is not RegistrationMethod.NONE and (
        new_key
        or not history.registered
        or bool(history.id_holders)
        or (certifies and goal.onboards)  # the service is given the certificate
    )
    needed = question.needed(registers=registers and goal.gives_key)
    if draft.blockers or not needed <= question.given():
        told = [credential for credential in draft.delete if credential in goal.replace]
        rsa = board.certificate_algorithm == "RSA"
        refusal = question.refusal(needed, draft.blockers, told, rsa=rsa)
        return ProvisioningPlan(refusal=refusal.reason, hint=refusal.hint, reason_code=refusal.code)
    # In that mode perhaps by a run of ours that was cut off before it could put another back.
    left = history.mode_before if left_by_run(board.mode, goal) else None
    changes_mode = bool(draft.steps) and (goal.takes_commands or board.mode in LTE_MODES)
    restore = board.mode if changes_mode and left is None else left
    limits = goal.limits if draft.steps or draft.delete or registers else ()
    ask_keys = keys_to_ask(board, goal, history.other_keys, question.held)
    asks = bool(ask_keys) and (registers or new_key)
    if left is not None:
        # That run judged the others before it turned the radio off.
        limits = tuple(limit for limit in limits if limit.quantity.readable_in(board.mode))
    steps = [
        *_steps_before(board, goal, draft, limits, ask_keys if asks else (), registers=registers),
        *draft.steps,
        *_steps_after(
            board,
            goal,
            () if asks else ask_keys,
            registers=registers,
            # A kit that is given commands has the time by then: it needs one for them, too, and
            # to ask for other keys.
            has_time=board.has_time or asks or (goal.takes_commands and bool(draft.steps)),
        ),
    ]
    if restore is not None:
        steps.append(
            PlannedStep(ProvisioningStep.RESTORE, f"AT+CFUN={restore}: the mode it was in")
        )
    return ProvisioningPlan(
        tuple(steps),
        consent=question.record(needed),
        delete=tuple(draft.delete),
        ask_keys=ask_keys,
        restore_mode=restore,
        limits=limits,
    )


def _refused_at_once(board: BoardState, goal: Goal) -> ProvisioningPlan | None:
    """Return the refusal of a board whose credentials need not be looked at, None for another."""
    if board.refusal:
        return ProvisioningPlan(
            refusal=board.refusal,
            hint="update the modem's firmware over its cable first",
            reason_code="firmware",
        )
    if goal.takes_commands and not board.has_client:
        return ProvisioningPlan(
            refusal="a claim gives the service no key, and this kit takes none of the commands by "
            "which a key follows: it has no provisioning client (#XNRFPROV of Serial Modem 2.0)",
            hint="`--no-proof` claims it and stops there; `--registration onboard` or "
            "`--registration public-key` registers its key",
            reason_code="no-provisioning-client",
        )
    return None


def left_by_run(mode: int, goal: Goal) -> bool:
    """Return whether a run that was cut off may have left the modem in this mode."""
    return mode == OFFLINE_MODE or (goal.takes_commands and mode == FunctionalMode.NORMAL)


def _steps_before(
    board: BoardState,
    goal: Goal,
    draft: _Draft,
    limits: Sequence[Limit],
    ask_keys: Keys,
    *,
    registers: bool,
) -> Iterator[PlannedStep]:
    """Yield what comes before the first new credential."""
    yield PlannedStep(ProvisioningStep.GATE, f"firmware {board.firmware} may make device calls")
    attested = ", attestation verified" if board.attested else ""
    yield PlannedStep(ProvisioningStep.IDENTITY, f"IMEI {board.imei}, UUID {board.uuid}{attested}")
    if limits:
        yield PlannedStep(ProvisioningStep.LIMITS, ", ".join(map(str, limits)))
    asking = PlannedStep(ProvisioningStep.OTHER_KEYS, question_of(goal, ask_keys))
    # A kit that has the time once it is online is asked there, unless a key is deleted before.
    has_time_online = goal.takes_commands and not (board.has_time or goal.set_clock)
    asks_online = bool(draft.steps) and has_time_online and goal.security_tag not in ask_keys
    if ask_keys and not asks_online:
        if goal.set_clock and not board.has_time:
            yield _CLOCK
        yield asking
    if goal.takes_commands and (draft.steps or registers):
        words = "claimed for the team with its attestation token"
        yield PlannedStep(ProvisioningStep.CLAIM, words)
    writes_here = draft.delete if goal.takes_commands else draft.steps
    if writes_here and board.mode in LTE_MODES:
        words = f"AT+CFUN={OFFLINE_MODE}: the modem takes no credentials online"
        yield PlannedStep(ProvisioningStep.OFFLINE, words)
    if draft.delete:
        deleted = ", ".join(
            f"{CREDENTIAL_NAMES.get(kind, kind)} in tag {tag}" for tag, kind in draft.delete
        )
        yield PlannedStep(ProvisioningStep.CLEAR, f"delete {deleted}", len(draft.delete))
    if goal.takes_commands and draft.steps:
        words = f"AT+CFUN={FunctionalMode.NORMAL:d}: the kit takes what follows from the service"
        yield PlannedStep(ProvisioningStep.ONLINE, words)
    if ask_keys and asks_online:
        yield asking


def _steps_after(
    board: BoardState, goal: Goal, ask_keys: Keys, *, registers: bool, has_time: bool
) -> Iterator[PlannedStep]:
    """Yield what comes after the last new credential."""
    needs_time = goal.set_clock and not has_time
    if board.module_key:
        # For the proof, too: a device that the service has lost is onboarded again.
        if (registers or goal.prove) and needs_time:
            yield _CLOCK
        if registers:
            words = "onboarded by a registration token that the module signs"
            yield PlannedStep(ProvisioningStep.REGISTER, words)
        if goal.prove:
            yield PlannedStep(ProvisioningStep.PROOF, "the service has the device in the team")
        return
    yield PlannedStep(ProvisioningStep.VERIFY, "compare what the modem lists with what was written")
    if registers:
        yield PlannedStep(ProvisioningStep.REGISTER, _registration_of(goal))
    if goal.prove:
        if needs_time:
            yield _CLOCK
        words = "the cloud accepts a JWT that the board signed"
        if ask_keys:
            words += f"; else ask whether it has {key_of(*ask_keys)}, before it is given this one"
        yield PlannedStep(ProvisioningStep.PROOF, words)


def _registration_of(goal: Goal) -> str:
    if goal.takes_commands:
        return "the device and the key of its request are brought into the team"
    words = f"registration by {goal.registered_by}"
    if goal.registration is RegistrationMethod.ATTESTATION:
        return f"{words}, which gives the service no key"
    if goal.registration is RegistrationMethod.CLAIM:
        return f"{words}, which gives the service no key: its provisioning commands must follow"
    return words


def _plan_ca_chain(board: BoardState, goal: Goal, draft: _Draft) -> None:
    if not goal.ca_chain:
        return
    held = board.held(goal.security_tag, CredentialType.ROOT_CA)
    if held is not None:
        if held.sha256.upper() == stored_digest(goal.ca_chain):
            return
        _clear(goal, CredentialType.ROOT_CA, draft, "another CA chain")
    draft.steps.append(PlannedStep(ProvisioningStep.CA_CHAIN, "write the CA chain", 1))


def _key_question(board: BoardState, goal: Goal, history: BoardHistory) -> KeyQuestion:
    """Return what the modem holds for a key and what the ledger knows, for the consents."""
    held = board.held(goal.security_tag, CredentialType.CLIENT_PRIVATE_KEY)
    digest = held.sha256.upper() if held is not None else ""
    if board.module_key:
        state = HeldKey.OURS if board.module_key == history.public_key else HeldKey.OWN
    elif digest and history.public_key and digest == history.key_digest.upper():
        state = HeldKey.ENDED if history.certificate_ended else HeldKey.OURS
    elif digest and history.key_begun:
        # This place was empty as we began to make a key, and the run was cut off: a key here is
        # ours, nobody knows its public half, and nothing can be done with it.
        state = HeldKey.BEGUN
    else:
        state = HeldKey.ANOTHER if digest else HeldKey.NOTHING
    known = {
        (False, False): KnownKeys.NONE,
        (True, False): KnownKeys.THIS_TAG,
        (False, True): KnownKeys.OTHER_TAG,
        (True, True): KnownKeys.BOTH,
    }[bool(history.public_key), bool(history.other_keys)]
    return KeyQuestion(
        goal,
        goal.device_id(board.uuid, board.imei),
        state,
        known,
        made=history.made,
        ended=history.certificate_ended,
        other_keys=tuple(replace(one, held=_holds(board, one)) for one in history.other_keys),
        retired=history.retired.get(digest, ""),
        id_holders=history.id_holders,
        other_imei=history.imei if history.imei != board.imei else "",
        unknown_tags=unknown_tags(board, goal, history.other_keys, history.retired),
    )


def _holds(board: BoardState, key: OtherKey) -> bool:
    """Whether the modem lists a key in its tag."""
    held = board.held(key.security_tag, CredentialType.CLIENT_PRIVATE_KEY)
    return held is not None and held.sha256.upper() == key.digest.upper()


def _plan_key(board: BoardState, goal: Goal, question: KeyQuestion, draft: _Draft) -> bool:
    """Plan for the key; return whether it is one that the ledger does not have."""
    if question.held in {HeldKey.OURS, HeldKey.OWN}:
        return question.held is HeldKey.OWN
    if board.held(goal.security_tag, CredentialType.CLIENT_PRIVATE_KEY) is not None:
        draft.delete.append((goal.security_tag, CredentialType.CLIENT_PRIVATE_KEY))
    made = "by the modem" if goal.key_origin is KeyOrigin.MODEM else "on this host, as asked"
    draft.steps.append(PlannedStep(ProvisioningStep.KEY, f"make a P-256 key {made}", 1))
    return True


def _plan_certificate(
    board: BoardState, goal: Goal, history: BoardHistory, draft: _Draft, *, new_key: bool
) -> None:
    held = board.held(goal.security_tag, CredentialType.CLIENT_CERTIFICATE)
    if goal.certificate is CertificateSource.NONE:
        if held is not None and new_key:
            what = f"{_certificate(board)} for another key"
            _clear(goal, CredentialType.CLIENT_CERTIFICATE, draft, what)
        return
    is_named = history.certificate_name in {"", goal.device_id(board.uuid, board.imei)}
    fits = history.certificate and not (new_key or history.other_ca) and is_named
    if held is not None:
        ours = held.sha256.upper() == stored_digest(history.certificate)
        if fits and ours:
            return
        what = f"{_certificate(board)} that is not ours"
        if ours:
            named = history.other_ca or f"device {history.certificate_name}"
            of = "the key before" if new_key else named
            what = f"the client certificate of {of}"
        _clear(goal, CredentialType.CLIENT_CERTIFICATE, draft, what)
    if not fits:
        life = f"for {goal.certificate_life.days} days"
        if goal.ca_ends is not None:
            life = f"until {goal.ca_ends:%Y-%m-%d}, when the CA ends"
        words = f"certificate for the board's key: {goal.certificate.value}, {life}"
        draft.steps.append(PlannedStep(ProvisioningStep.CERTIFICATE, words))
    draft.steps.append(PlannedStep(ProvisioningStep.WRITE, "write the client certificate", 1))


def _certificate(board: BoardState) -> str:
    known = {"RSA": "an RSA client certificate", "EC": "an elliptic-curve client certificate"}
    unknown = "a client certificate, of which kind the modem does not show,"
    return known.get(board.certificate_algorithm, unknown)


def _clear(goal: Goal, kind: int, draft: _Draft, what: str) -> None:
    credential = (goal.security_tag, kind)
    if credential in goal.replace:
        draft.delete.append(credential)
    else:
        draft.blockers[credential] = what
