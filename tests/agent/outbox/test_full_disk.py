"""A disk that others have filled: what waits is delivered, and that frees space."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# It runs where it may mount a small file system of its own.
MOUNT = ("unshare", "--map-root-user", "--user", "--mount", "sh", "-c")
PROGRAM = """
import json, os, sys
sys.path[:0] = ["tests/support"]
from pathlib import Path
from outboxes import LIMITS, event, outbox, totals
from agent.outbox import ItemKind, NewItem, OutboxFull
from agent.outbox.items import Selection
from agent.config.profile import OutboxSettings

disk = Path(sys.argv[1])
def used():
    return {path.name: path.stat().st_blocks for path in (disk / "state").iterdir()}
def fill():
    with open(disk / "filler", "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
def items(box):
    return box.transact(lambda store: store.take("kit", ItemKind.EVENT, Selection(1, 1 << 40)))
large = [NewItem(ItemKind.EVENT, "kit", b"%05d" % n + bytes(7000)) for n in range(400)]
with outbox(disk) as box:
    for item in large:
        box.put([item])
fill()
with outbox(disk) as box:
    before = used()
    for _ in range(50):
        try:
            box.put([NewItem(ItemKind.EVENT, "kit", bytes(600_000))])
        except OutboxFull as error:
            said = str(error)
    refused_used = used() == before
    listed = len(box.transact(lambda store: store.list_items()))
    trouble = box.transact(lambda store: store.disk_trouble())
    delivered = []
    while batch := items(box):
        delivered += [item.body for item in batch]
        box.transact(lambda store: store.remove_delivered([item.id for item in batch]))
        if not len(delivered) % 20:
            fill()  # what is freed is taken by others at once
    left = totals(box)
(disk / "filler").unlink()
with outbox(disk) as box:
    again = totals(box).waiting
    box.put([event(1)])
print(json.dumps({
    "said": said, "refused_used_nothing": refused_used, "listed": listed,
    "trouble": str(trouble), "try": trouble.hint if trouble else "",
    "delivered": delivered == [item.body for item in large],
    "waiting": left.waiting, "counted": left.counts["delivered"], "again": again,
}))
"""


def mounted(folder: Path) -> str:
    """Run the program on a full file system; return what it printed."""
    folder.mkdir()
    mount = f'mount -t tmpfs -o size=8m disk {folder} && exec {sys.executable} -c "$0" {folder}'
    done = subprocess.run([*MOUNT, mount, PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def can_mount() -> bool:
    """Tell whether this user may mount a file system in a name space of its own."""
    command = [*MOUNT, "mount -t tmpfs disk /mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not can_mount(), reason="needs name spaces: sysctl user.max_user_namespaces")
def test_on_a_full_disk_all_that_waits_is_delivered_and_a_refusal_takes_no_room(tmp_path: Path):
    import json

    said = json.loads(mounted(tmp_path / "disk"))
    assert "disk is full" in said.pop("said")
    assert "disk is full" in said.pop("trouble")
    assert "free some space" in said.pop("try")
    assert said == {
        "refused_used_nothing": True,
        "listed": 400,
        "delivered": True,
        "waiting": 0,
        "counted": 400,
        "again": 0,
    }
