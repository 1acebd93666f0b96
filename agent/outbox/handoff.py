"""A folder beside the outbox where other processes leave items for the one that holds it.

Each file is one hand-over: written beside, synced, renamed, the folder synced; so that it is as
safe as an item of the outbox when `leave` returns. `collect` takes it over, and only then is it
removed: its key keeps a second take-over after a crash from being a second item.
"""

from __future__ import annotations

import base64
import logging
import os
import shutil
import time
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from agent.config.private_files import make_private_folder
from agent.errors import AgentError
from agent.outbox.items import ItemKind, NewItem, TooLarge
from agent.outbox.quota import check_quota
from agent.outbox.schema import sync_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agent.config.profile import OutboxSettings as Limits
    from agent.outbox.outbox import Outbox

FOLDER = "inbox"
_SUFFIX = ".items"
_REFUSED = ".refused"

_log = logging.getLogger(__name__)


class _Left(msgspec.Struct):
    kind: ItemKind
    device: str
    body: str
    captured_s: float
    key: str
    meta: dict[str, Any] = {}


def hand_off(folder: Path, items: Sequence[NewItem], limits: Limits, now: float) -> None:
    """Leave `items` for the process that holds the outbox in `folder`.

    It keeps to the same `limits`, so what they do not allow is not left either. Raises OutboxFull,
    AgentError.
    """
    size = sum(len(item.body) for item in items)
    check_quota(limits, len(items), size, shutil.disk_usage(folder).free, str(folder))
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex}"
    left = [
        _Left(
            item.kind,
            item.device,
            base64.b64encode(item.body).decode(),
            now if item.captured_s is None else item.captured_s,
            # Its own key would make it the one before the crash.
            (not item.starts and item.key) or f"{name}-{number}",
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
    """Take over what others left, the oldest first; return how many items.

    A file that cannot be read, or will never fit, is renamed, so that it is there to look at and in
    nobody's way. Raises OutboxFull, AgentError: the rest stays for the next time.
    """
    inbox = outbox.path.parent / FOLDER
    count = 0
    try:
        for path in sorted(inbox.glob(f"*{_SUFFIX}")):
            count += _take_over(path, outbox)
    except OSError as exc:
        raise AgentError(f"{inbox}: {exc.strerror}") from exc
    return count


def _take_over(path: Path, outbox: Outbox) -> int:
    try:
        items = _read(path)
        outbox.put(items)
    except (OSError, ValueError, TooLarge) as exc:
        path.rename(path.with_suffix(_REFUSED))
        _log.error("what another command left is set aside as %s: %s", path.stem + _REFUSED, exc)
        return 0
    path.unlink()
    return len(items)


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
