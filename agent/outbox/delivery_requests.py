"""Sends the items of the outbox, each kind by its call; what a failure means for the items."""

import io
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from hashlib import md5, sha256

import msgspec

from agent import errors
from agent.http import HttpClient
from agent.observability.ingest import uploads
from agent.observability.ingest.chunks import PushChunks
from agent.observability.ingest.device_identity import UNKNOWN, DeviceIdentity
from agent.observability.ingest.events import PushEvents, captured_date_of
from agent.observability.ingest.transfer import Upload, UploadSource, transfer
from agent.observability.ingest.upload_journal import UploadJournal
from agent.outbox.items import Item, ItemKind
from agent.retry import NO_RETRY
from at.protocol.errors import AtError

_TRY_AGAIN = frozenset({408, 409, 411, 425, 429, 529})


def request_id(items: Sequence[Item]) -> str:
    """Return the id of a request: the same for the same items, also after a crash, and no others.

    The key of the first item alone is not enough: another request may begin with the same item.
    """
    keys = [item.idempotency_key for item in items]
    return keys[0] if len(keys) == 1 else sha256("\n".join(keys).encode()).hexdigest()[:32]


def _event(item: Item) -> bytes:
    """Return an event with its device, whose id was not known yet when it was taken."""
    if UNKNOWN.encode() not in item.body:
        return item.body
    event = msgspec.json.decode(item.body, type=dict[str, object])
    if event.get("device_serial") != UNKNOWN:
        return item.body
    return msgspec.json.encode({**event, "device_serial": item.device})


class ServiceSender:
    """Sends each request once: what failed stays in the outbox for a later try."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        # By item: how far an upload came whose last try failed. Lost with the process.
        self._uploads: dict[str, UploadJournal] = {}

    async def send(self, items: Sequence[Item]) -> None:
        """Send items of one device and kind. Raises AgentError."""
        first = items[0]
        if first.kind is ItemKind.CHUNK:
            chunks = PushChunks(first.device, [item.body for item in items], request_id(items))
            await self._client.send(chunks, retries=NO_RETRY)
        elif first.kind is ItemKind.EVENT:
            events = PushEvents([_event(item) for item in items], request_id(items))
            await self._client.send(events, retries=NO_RETRY)
        else:
            await self._coredump(first)

    async def _coredump(self, item: Item) -> None:
        kind = uploads.FileKind[str(item.meta.get("form", uploads.FileKind.COREDUMP.name))]
        if kind is uploads.FileKind.COREDUMP and len(item.body) <= uploads.DIRECT_LIMIT:
            direct = uploads.UploadCoredump(item.body, request_id=item.idempotency_key)
            await self._client.send(direct, retries=NO_RETRY)
            return
        identity = item.meta.get("device")
        device = msgspec.convert(identity, DeviceIdentity) if isinstance(identity, dict) else None
        if device is not None and device.device_serial == UNKNOWN:
            device = replace(device, device_serial=item.device)
        details = uploads.commit_details(
            kind,
            device,
            captured_date=captured_date_of(item.captured_s),
            reason=str(item.meta.get("reason", "")),
        )
        source = UploadSource(
            io.BytesIO(item.body),
            str(item.meta.get("name", "coredump.bin")),
            len(item.body),
            md5(item.body, usedforsecurity=False).hexdigest(),
        )
        # A crash that is told twice is better than one that is not.
        upload = Upload(kind, device, details, request_id=item.idempotency_key, anew=True)
        journal = self._uploads.setdefault(item.idempotency_key, UploadJournal())
        await transfer(self._client, upload, source, tries=1, journal=journal)
        del self._uploads[item.idempotency_key]


class FailureKind(Enum):
    """What a failed request means for its items."""

    LATER = "later"
    """Nothing to do with the items: the same request again after a wait."""
    AWAY = "away"
    """No answer, or 503: the service is away, unless that goes on for one request alone."""
    FAULT = "fault"
    """The service, or our own code, fails: on everything, or on an item of this request."""
    SMALLER = "smaller"
    """Too much at once: fewer items at a time."""
    REFUSED = "refused"
    """The service refuses the request: an item of it, or everything while it is wrong itself."""
    BLOCKED = "blocked"
    """Our credential or configuration is at fault: nothing can be sent until it is corrected."""


def classify_failure(error: Exception, count: int) -> FailureKind:
    """Return what `error` means for a request of `count` items.

    By its status alone: the bodies of refusals are a service's own, and a proxy's are another's.
    """
    if isinstance(error, errors.CredentialError | errors.UsageError):
        # A value of ours that breaks a rule is the item's fault.
        own_fault = isinstance(error, errors.UsageError) and error.kind == "usage"
        return FailureKind.REFUSED if own_fault else FailureKind.BLOCKED
    status = getattr(error, "status", None)
    if isinstance(error, errors.Conflict | errors.Untrusted | AtError) or status in _TRY_AGAIN:
        return FailureKind.LATER
    if isinstance(error, errors.Unavailable):
        if status is not None and status != 503:
            return FailureKind.FAULT
        return FailureKind.AWAY if error.sent else FailureKind.LATER
    if isinstance(error, errors.PayloadTooLarge) and count > 1:
        return FailureKind.SMALLER
    if isinstance(error, errors.ServiceRefusal):
        return FailureKind.REFUSED
    # Another answer than the service gives is a portal's or a proxy's on the way.
    return FailureKind.LATER if isinstance(error, errors.AgentError) else FailureKind.FAULT
