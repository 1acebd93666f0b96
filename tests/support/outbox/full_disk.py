"""An outbox on a disk that others fill: a small file system, or one that is counted.

Where this user may mount none, the writes of a child process are counted: of what makes a file
longer, only what the disk has room for is written. The outbox writes no file with holes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MOUNT = ("unshare", "--map-root-user", "--user", "--mount", "sh", "-c")
_SIZE = 8 << 20

_COUNTED = """
import errno, io, os, shutil, sys
from pathlib import Path
from agent.files import private_files

disk, write = Path(sys.argv[1]), os.write
def free():
    return SIZE - sum(path.stat().st_size for path in disk.rglob("*") if path.is_file())
def counted(descriptor, data):
    size, at = os.fstat(descriptor).st_size, os.lseek(descriptor, 0, os.SEEK_CUR)
    room = max(0, size - at) + free()
    if data and room <= 0:
        raise OSError(errno.ENOSPC, "No space left on device")
    return write(descriptor, bytes(data)[:room])
class Counted(io.FileIO):
    def write(self, data):
        return os.write(self.fileno(), data)
def opened(path, mode, opener=None, buffering=-1):
    return Counted(path, mode, opener=opener)
os.write, private_files.open, open = counted, opened, opened
shutil.disk_usage = lambda path: shutil._ntuple_diskusage(SIZE, SIZE - free(), free())
""".replace("SIZE", str(_SIZE))

_PROGRAM = """
import json, random, sys
from pathlib import Path
from tests.support.outbox.outboxes import LIMITS, event, outbox, totals
from agent.outbox import ItemKind, NewItem, OutboxFull
from agent.outbox.items import Selection

disk, dice = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
# Of the last, the notes of what is delivered need more room than their segment has left.
count, most = dice.choice([(50, 60_000), (400, 7000), (1500, 1000), (2600, 120)])
def used():
    return {path.name: path.stat().st_blocks for path in (disk / "state").iterdir()}
def fill():
    with open(disk / "filler", "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
large = [NewItem(ItemKind.EVENT, "kit", b"%05d" % n + bytes(dice.randrange(most)))
         for n in range(count)]
with outbox(disk) as box:
    for at in range(0, count, 50):
        box.put(large[at : at + 50])
said, refused_used, delivered = "", 0, []
while True:
    fill()
    with outbox(disk) as box:
        before = used()
        for _ in range(10):
            try:
                box.put([NewItem(ItemKind.EVENT, "kit", bytes(600_000))])
            except OutboxFull as error:
                said = str(error)
        refused_used += used() != before
        listed = len(box.transact(lambda store: store.list_items(count))) + len(delivered)
        trouble = box.transact(lambda store: store.disk_trouble())
        first = len(delivered)
        bounds = Selection(dice.choice([1, 1, 20]), 1 << 40)
        for _ in range(dice.randrange(20, 2000)):
            items = box.transact(lambda store: store.take("kit", ItemKind.EVENT, bounds))
            if not items:
                break
            delivered += [item.body for item in items]
            box.transact(lambda store: store.remove_delivered([item.id for item in items]))
            if dice.random() < 0.3:
                fill()  # what is freed is taken by others at once
        left = totals(box)
    if listed != count or len(delivered) == first:
        break
(disk / "filler").unlink()
with outbox(disk) as box:
    again = totals(box).waiting
    box.put([event(1)])
print(json.dumps({
    "said": said, "trouble": str(trouble), "try": trouble.hint if trouble else "",
    "refusals that took room": refused_used,
    "not listed": count - listed,
    "not delivered": count - len(delivered),
    "not in order": int(delivered != [item.body for item in large]),
    "still waiting": left.waiting + again,
    "not counted": count - left.counts["delivered"],
}))
"""


def can_mount() -> bool:
    """Tell whether this user may mount a file system in a name space of its own."""
    command = [*_MOUNT, "mount -t tmpfs disk /mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def tried(folder: Path, seed: int, *, mounted: bool) -> dict[str, str | int]:
    """Fill an outbox, then its disk; deliver; return what was said, and counts that must be 0."""
    folder.mkdir()
    command = [sys.executable, "-c", _COUNTED + _PROGRAM, str(folder), str(seed)]
    if mounted:
        mount = f'mount -t tmpfs -o size={_SIZE} disk "$1" && exec "$0" -c "$3" "$1" "$2"'
        command = [*_MOUNT, mount, sys.executable, str(folder), str(seed), _PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    found: dict[str, str | int] = json.loads(done.stdout)
    return found
