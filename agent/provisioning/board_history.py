"""What the ledger knows of a board, held against what its modem lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.provisioning.board import BoardState, HeldCredential
from agent.provisioning.ca.certificates import key_fingerprint
from agent.provisioning.goal import Goal, RegistrationMethod
from agent.provisioning.ledger import BoardRecord, KeyRecord, Ledger, LedgerReader, StepRecord
from agent.provisioning.ledger.records import BEGUN, FAILED, KEY_COLUMNS
from agent.provisioning.plan import BoardHistory, ProvisioningStep
from at.commands.credentials import CredentialType

WRITING_STEPS = (
    ProvisioningStep.CLEAR,
    ProvisioningStep.CA_CHAIN,
    ProvisioningStep.KEY,
    ProvisioningStep.WRITE,
)
"""The steps that write credentials: each begins a note for one write, which names its place."""


def settle(ledger: Ledger, board: BoardState) -> None:
    """Settle what the ledger left open and the modem's list of credentials tells, for a claim.

    A write at which a run was cut off was counted, and was perhaps not done. A key of an older
    ledger is in the tag under which the modem lists it.
    """
    for note in _not_done(ledger.steps(board.uuid), board.credentials):
        ledger.never_done(note, "the run was cut off before: the modem lists nothing of it")
    if any(held.type == CredentialType.CLIENT_PRIVATE_KEY for held in board.credentials):
        for key, tag in _tags_found(ledger.keys(board.uuid), board.credentials):
            ledger.adopt_key(board.uuid, key.id, tag)


def _not_done(
    notes: Sequence[StepRecord], credentials: Sequence[HeldCredential]
) -> list[StepRecord]:
    """Return the notes of writes that were begun and, by the modem's list, not done."""
    last = {note.step: note for note in notes if note.state != FAILED}
    writes = [step.value for step in WRITING_STEPS]
    return [
        note
        for step, note in last.items()
        if step in writes and note.state == BEGUN and note.run is not None
        if not _happened(note, credentials)
    ]


def _happened(note: StepRecord, credentials: Sequence[HeldCredential]) -> bool:
    place, _, digest = note.detail.partition(" ")
    listed = {f"{held.tag}:{held.type}": held.sha256.upper() for held in credentials}
    if note.step == ProvisioningStep.CLEAR.value:
        return place not in listed
    if note.step == ProvisioningStep.KEY.value:
        return f"{place}:{CredentialType.CLIENT_PRIVATE_KEY:d}" in listed
    return listed.get(place) == digest


def _tags_found(
    keys: Sequence[KeyRecord], credentials: Sequence[HeldCredential]
) -> list[tuple[KeyRecord, int]]:
    """Return the live keys of unknown tag that the modem lists, each with its tag."""
    live = [key for key in keys if key.retired_at is None]
    taken = {key.security_tag for key in live}
    listed = {
        held.sha256.upper(): held.tag
        for held in credentials
        if held.type == CredentialType.CLIENT_PRIVATE_KEY and held.tag not in taken
    }
    return [
        (key, listed[key.key_digest.upper()])
        for key in live
        if key.security_tag is None and key.key_digest.upper() in listed
    ]


def history_of(
    ledger: LedgerReader,
    uuid: str,
    goal: Goal,
    device_id: str,
    credentials: Sequence[HeldCredential] = (),
) -> BoardHistory:
    """Return what the ledger knows of a board that matters to its plan.

    `credentials` is what the modem lists, where nothing was settled by a claim.
    """
    record = ledger.board(uuid, goal.security_tag) or BoardRecord(uuid)
    if not record.public_key and credentials:
        for key, tag in _tags_found(ledger.keys(uuid), credentials):
            if tag == goal.security_tag:
                record = replace(record, **{name: getattr(key, name) for name in KEY_COLUMNS})
    registered_as = registration_name(goal.registration, device_id)
    begun = ledger.unfinished(uuid, ProvisioningStep.KEY.value)
    mode = ledger.unfinished(uuid, ProvisioningStep.OFFLINE.value)
    return BoardHistory(
        public_key=record.public_key,
        key_digest=record.key_digest,
        certificate=record.certificate,
        registered=record.registered_as == registered_as
        and (goal.registration is RegistrationMethod.CLAIM or _has_its_key(record)),
        key_begun=begun is not None and begun.partition(" ")[0] == str(goal.security_tag),
        mode_before=int(mode) if mode else None,
    )


def _has_its_key(record: BoardRecord) -> bool:
    """Whether the service took the board's key, not one that it had before."""
    return bool(record.public_key) and record.registered_key == key_fingerprint(record.public_key)


def registration_name(method: RegistrationMethod, device_id: str) -> str:
    """Return the ledger's name of a registration: its method, and the device that it made."""
    return f"{method.value} {device_id}"
