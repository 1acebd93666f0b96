"""Sends the items of the outbox to the service: each kind by its call."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from hashlib import md5, sha256

import msgspec

from agent.http import HttpClient
from agent.observability.ingest import uploads
from agent.observability.ingest.chunks import PushChunks
from agent.observability.ingest.device_identity import UNKNOWN, DeviceIdentity
from agent.observability.ingest.events import PushEvents, captured_date_of
from agent.observability.ingest.transfer import Upload, UploadSource, transfer
from agent.outbox.items import Item, ItemKind
from agent.retry import NO_RETRY


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
        upload = Upload(kind, device, details, request_id=item.idempotency_key)
        await transfer(self._client, upload, source, tries=1)
