"""What the ledger knows of a board, held against what its modem lists."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from agent.provisioning.boards.board import HeldCredential
from agent.provisioning.ca import certificates
from agent.provisioning.ledger import BoardRecord, KeyRecord, Ledger, StepRecord
from agent.provisioning.ledger.reader import BoardKnowledge, unfinished
from agent.provisioning.ledger.records import BEGUN, DONE, FAILED
from agent.provisioning.planning.consent import OtherKey
from agent.provisioning.planning.goal import CertificateSource, Goal
from agent.provisioning.planning.plan import BoardHistory, ProvisioningStep
from at.commands.credentials import CredentialType

WRITING_STEPS = (
    ProvisioningStep.CLEAR,
    ProvisioningStep.CA_CHAIN,
    ProvisioningStep.KEY,
    ProvisioningStep.WRITE,
)
"""The steps that write credentials: each begins a note for one write, which names its place."""


def settlement(
    known: BoardKnowledge, credentials: Sequence[HeldCredential]
) -> Sequence[Callable[[Ledger], None]]:
    """Return what settles what the ledger left open and the modem's list of credentials tells.

    A write at which a run was cut off was counted, and was perhaps not done. A key of an older
    ledger is in the tag under which the modem lists it.
    """
    return [
        *(
            partial(_settle, note=note, behind=_begun_behind(note, known.steps))
            for note in _undone(known.steps, credentials)
        ),
        *(
            lambda ledger, key=key, tag=tag: ledger.adopt_key(key.uuid, key.id, tag)
            for key, tag in _tags_found(known.keys, credentials)
        ),
    ]


def _settle(ledger: Ledger, *, note: StepRecord, behind: str) -> None:
    """Settle a write that the modem does not list: it was not done, or has been undone since."""
    if behind:
        ledger.refused(note.uuid, note.step, f"it was done: {behind} was begun there behind it")
    else:
        reason = "the run was cut off before: the modem lists nothing of it"
        ledger.never_done(note, reason)


def _begun_behind(note: StepRecord, notes: Sequence[StepRecord]) -> str:
    """Return the write that was begun behind another, at its place, "" if none was.

    The run that began it had settled the other: that was done.
    """
    writes = [step.value for step in WRITING_STEPS]
    later = (
        other.step
        for other in notes
        if other.id > note.id and other.state == BEGUN and other.step in writes
        if _place(other) == _place(note)
    )
    return next(later, "")


def _undone(notes: Sequence[StepRecord], credentials: Sequence[HeldCredential]) -> list[StepRecord]:
    """Return the notes of writes that were begun and of which the modem lists nothing."""
    last = {note.step: note for note in notes if note.state != FAILED}
    writes = [step.value for step in WRITING_STEPS]
    return [
        note
        for step, note in last.items()
        if step in writes and note.state == BEGUN and note.run is not None
        if not _happened(note, credentials)
    ]


def _place(note: StepRecord) -> str:
    """Return where a write is: TAG:TYPE."""
    place = note.detail.partition(" ")[0]
    is_key = note.step == ProvisioningStep.KEY.value
    return f"{place}:{CredentialType.CLIENT_PRIVATE_KEY:d}" if is_key else place


def _happened(note: StepRecord, credentials: Sequence[HeldCredential]) -> bool:
    place, digest = _place(note), note.detail.partition(" ")[2]
    listed = {f"{held.tag}:{held.type}": held.sha256.upper() for held in credentials}
    if note.step == ProvisioningStep.CLEAR.value:
        return place not in listed
    if note.step == ProvisioningStep.KEY.value:
        return place in listed
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
    known: BoardKnowledge, goal: Goal, now: datetime, credentials: Sequence[HeldCredential] = ()
) -> BoardHistory:
    """Return what the ledger knows of a board that matters to its plan of `now`.

    `credentials` is what the modem lists, where nothing was settled by a claim.
    """
    keys, registrations = known.keys, known.registrations
    tags = {key.id: tag for key, tag in _tags_found(keys, credentials)}
    live = [(tags.get(key.id, key.security_tag), key) for key in keys if key.retired_at is None]
    # A key of unknown tag that the modem does not list was in this tag, for all that is known.
    here = [key for tag, key in live if tag in {None, goal.security_tag}]
    key = here[-1] if here else None
    certificate = None
    if key and key.certificate and goal.certificate is not CertificateSource.NONE:
        certificate = x509.load_pem_x509_certificate(key.certificate.encode())
    begun = unfinished(known.steps, ProvisioningStep.KEY.value)
    mode = unfinished(known.steps, ProvisioningStep.OFFLINE.value)
    others = [one for one in registrations if key is None or one.key != key.id]
    stations = {run.id: run.station for run in known.runs}
    return BoardHistory(
        public_key=key.public_key if key else "",
        key_digest=key.key_digest if key else "",
        certificate=key.certificate if key else "",
        certificate_ended=_ended(certificate, now) if certificate else "",
        certificate_name=certificates.name_in(certificate) if certificate else "",
        other_ca=_other_ca(certificate, goal.ca) if certificate and goal.ca else "",
        registered=any(
            one.finished and one.method == goal.registered_by
            for one in registrations
            if one not in others
        )
        and not (key and goal.onboards and _is_unsent(key.certificate_serial, known.steps))
        # A proof tells which key the service has; without one it must be registered again.
        and (goal.prove or all(one.finished for one in others)),
        alone=not others,
        key_begun=begun is not None and begun.partition(" ")[0] == str(goal.security_tag),
        mode_before=int(mode) if mode else None,
        made=_made(key.made_at, stations.get(key.run or "", "")) if key else "",
        other_keys=tuple(
            OtherKey(
                tag,
                _made(other.made_at, stations.get(other.run or "", "")),
                same_device=any(one.key == other.id for one in others),
                digest=other.key_digest,
            )
            for tag, other in live
            if tag not in {None, goal.security_tag}
        ),
        retired={
            one.key_digest.upper(): one.retired_because
            for one in keys
            if one.retired_at is not None
        },
        id_holders=tuple(map(_holder, known.holders)),
        imei=known.record.imei,
    )


def _ended(certificate: x509.Certificate, now: datetime) -> str:
    """Return the day on which a certificate ended, "" if it has not."""
    end = certificate.not_valid_after_utc
    return f"{end:%Y-%m-%d}" if end <= now else ""


def _other_ca(certificate: x509.Certificate, wanted: x509.Certificate) -> str:
    """Return who issued a certificate, "" if that is the CA that is wanted."""
    try:
        certificate.verify_directly_issued_by(wanted)
    except (ValueError, TypeError, InvalidSignature):
        return f"another CA than the profile's, {certificate.issuer.rfc4514_string()}"
    return ""


def _is_unsent(certificate_serial: str, notes: Sequence[StepRecord]) -> bool:
    """Whether a certificate was made after the service was last given one."""
    steps = {ProvisioningStep.CERTIFICATE.value, ProvisioningStep.REGISTER.value}
    ends = [note.detail for note in notes if note.step in steps and note.state == DONE]
    return bool(ends) and ends[-1].startswith(f"serial {certificate_serial},")


def _made(at: datetime, station: str) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" + (f" at {station}" if station else "")


def _holder(board: BoardRecord) -> str:
    """Return which board this is, and when and where it was made."""
    made = f"made {_made(board.made_at, board.made_station)}" if board.made_at else "not finished"
    return f"board {board.uuid} (IMEI {board.imei}), {made}"


def registration_name(goal: Goal, device_id: str) -> str:
    """Return the ledger's name of a registration: its way, and the device that it made."""
    return f"{goal.registered_by} {device_id}"
