"""A folder beside the outbox where other processes leave items for the one that holds it.

Each file is one hand-over: written beside, synced, renamed, the folder synced; so that it is as
safe as an item of the outbox when `leave` returns. `collect` takes it over, and only then is it
removed: its key keeps a second take-over after a crash from being a second item.
"""

from __future__ import annotations

import base64
import os
import time
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from agent.config.private import make_private_folder
from agent.errors import AgentError
from agent.observability.outbox.items import Kind, NewItem
from agent.observability.outbox.schema import sync_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agent.observability.outbox.outbox import Outbox

FOLDER = "inbox"
_SUFFIX = ".items"
_REFUSED = ".refused"


class _Left(msgspec.Struct):
    kind: Kind
    device: str
    body: str
    captured_s: float
    key: str
    meta: dict[str, Any] = {}


def leave(folder: Path, items: Sequence[NewItem], now: float) -> None:
    """Leave `items` for the process that holds the outbox in `folder`. Raises AgentError."""
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex}"
    left = [
        _Left(
            item.kind,
            item.device,
            base64.b64encode(item.body).decode(),
            now if item.captured_s is None else item.captured_s,
            item.key or f"{name}-{number}",
            dict(item.meta),
        )
        for number, item in enumerate(items)
    ]
    inbox = folder / FOLDER
    unfinished = inbox / name
    try:
        make_private_folder(inbox)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(msgspec.json.encode(left))
            f.flush()
            os.fsync(f.fileno())
        unfinished.rename(unfinished.with_suffix(_SUFFIX))
        sync_folder(inbox)
    except OSError as exc:
        raise AgentError(f"{inbox}: {exc.strerror}") from exc


def collect(outbox: Outbox) -> int:
    """Take over what others left, the oldest first; return how many items. Raises OutboxFull.

    A file that cannot be read is renamed, so that it is there to look at and in nobody's way.
    """
    inbox = outbox.path.parent / FOLDER
    if not inbox.is_dir():
        return 0
    count = 0
    for path in sorted(inbox.glob(f"*{_SUFFIX}")):
        try:
            items = _read(path)
        except (OSError, ValueError):
            path.rename(path.with_suffix(_REFUSED))
            continue
        outbox.put(items)
        path.unlink()
        count += len(items)
    return count


def _read(path: Path) -> list[NewItem]:
    left = msgspec.json.decode(path.read_bytes(), type=list[_Left])
    return [
        NewItem(
            each.kind,
            each.device,
            base64.b64decode(each.body, validate=True),
            each.captured_s,
            each.key,
            each.meta,
        )
        for each in left
    ]
