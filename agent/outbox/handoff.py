"""A folder beside the outbox where other processes hand off items to the one that holds it.

Each file is one handoff: written beside, synced, renamed, the folder synced. So it is as safe as an
item of the outbox when `hand_off` returns. `collect` adds its items to the outbox, and only then
removes the file: if a crash comes in between, the items' keys show the second copy as duplicates.
"""

import logging
import shutil
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from agent.config.profile import OutboxSettings
from agent.errors import AgentError, UsageError
from agent.files.private_files import make_private_folder, write_private
from agent.files.trusted_places import require_trusted_folder
from agent.outbox.items import NewItem, TooLarge
from agent.outbox.outbox import Outbox
from agent.outbox.quota import check_quota

FOLDER = "inbox"
_SUFFIX = ".items"
_REFUSED = ".refused"

_log = logging.getLogger(__name__)


def hand_off(folder: Path, items: Sequence[NewItem], limits: OutboxSettings, now: float) -> None:
    """Store `items` for the process that holds the outbox in `folder`; return once synced.

    That process has the same `limits`: what they do not allow is refused here. Raises OutboxFull,
    AgentError.
    """
    size = sum(len(item.body) for item in items)
    check_quota(limits, len(items), size, shutil.disk_usage(folder).free, folder)
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex}"
    left = [
        replace(
            item,
            captured_s=now if item.captured_s is None else item.captured_s,
            # With its own key it would be a duplicate of the item before the crash.
            key=(not item.starts and item.key) or f"{name}-{number}",
            starts=None,
        )
        for number, item in enumerate(items)
    ]
    inbox = folder / FOLDER
    try:
        make_private_folder(inbox)
        write_private(inbox / f"{name}{_SUFFIX}", msgspec.json.encode(left))
    except OSError as exc:
        raise AgentError(f"{inbox}: {exc.strerror}") from exc


def collect(outbox: Outbox) -> int:
    """Add what other processes handed off, the oldest first; return how many items.

    A file that cannot be read, or will never fit, is renamed: a person can look at it, and it does
    not hold up the others. Raises OutboxFull, AgentError: the rest stays for the next time.
    """
    inbox = outbox.folder / FOLDER
    count = 0
    require_trusted_folder(inbox)
    # A delivery that was cancelled in it, by a reload, leaves it to its thread.
    with outbox.taking_over:
        try:
            for path in sorted(inbox.glob(f"*{_SUFFIX}")):
                count += _take_over(path, outbox)
        except OSError as exc:
            raise AgentError(f"{inbox}: {exc.strerror}") from exc
    return count


def _take_over(path: Path, outbox: Outbox) -> int:
    try:
        items = msgspec.json.decode(path.read_bytes(), type=list[NewItem])
        outbox.put(items)
    except (OSError, ValueError, TooLarge, UsageError) as exc:
        path.rename(path.with_suffix(_REFUSED))
        _log.error("what another command left is set aside as %s: %s", path.stem + _REFUSED, exc)
        return 0
    path.unlink()
    return len(items)
