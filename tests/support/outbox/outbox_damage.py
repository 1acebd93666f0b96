"""Damages of an outbox's files, of every kind, and what a start makes of each.

What must be kept is found without the code under test: an item whose frame stands, byte for byte,
at its place of some file.
"""

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from agent.config.profile import OutboxSettings
from agent.outbox import ItemKind, NewItem, Outbox
from agent.outbox.items import Selection
from agent.outbox.store import Store
from tests.support.outbox.outboxes import Clock, chunk

LIMITS = OutboxSettings(min_free_bytes=0, park_after=1)
PAGE = 4096
KINDS = ("flip", "many flips", "cut", "append", "zeroed page", "old page", "swap", "lost index")


@dataclass(frozen=True)
class Sound:
    """An outbox before it is damaged."""

    folder: Path
    frames: dict[bytes, tuple[int, bytes]]
    """Body of each item that waits or is parked -> offset and bytes of its frame."""
    finished: set[bytes]
    """Bodies of what was delivered or dropped."""


def body(number: int, size: int) -> bytes:
    """Return a body that no other is part of."""
    return b"%08d" % number + random.Random(number).randbytes(size)


def make(folder: Path, dice: random.Random) -> Sound:
    """Fill an outbox of several segments; some of it is delivered, dropped or parked."""
    finished = set[bytes]()

    def settle(store: Store) -> None:
        for device in ("kit", "other"):
            items = store.take(device, ItemKind.EVENT, Selection(dice.randrange(1, 12), 1 << 40))
            if items and dice.random() < 0.2:
                store.count_refusal([items.pop(0).id], "no", at_fault=True)
            store.remove_delivered([item.id for item in items])
            finished.update(item.body for item in items)

    with Outbox(folder, LIMITS, clock=Clock()) as box:
        number = 0
        for _ in range(dice.randrange(20, 160)):
            items = []
            for _ in range(dice.choice([1, 1, 3, 30])):
                number += 1
                size = dice.choice([0, 20, 300, 300, 3000, 20_000])
                device = dice.choice(["kit", "kit", "other"])
                items.append(NewItem(ItemKind.EVENT, device, body(number, size)))
            box.put(items)
            if dice.random() < 0.3:
                box.transact(settle)
        box.put([chunk(number)])
        frames = box.transact(frames_of)
    return Sound(folder, frames, finished)


def frames_of(store: Store) -> dict[bytes, tuple[int, bytes]]:
    """Return body -> offset and bytes of each frame of an item."""
    found = {}
    for entry in store.index.entries.values():
        data = entry.segment.path.read_bytes()
        frame = data[entry.offset : entry.offset + entry.length]
        found[frame[len(frame) - entry.size :]] = (entry.offset, frame)
    return found


def damage(folder: Path, kind: str, dice: random.Random) -> None:
    """Damage the files in `folder`."""
    files = sorted(path for path in folder.iterdir() if not path.name.endswith(".lock"))
    segments = [path for path in files if path.suffix == ".segment"]
    if kind == "lost index":
        for path in set(files) - set(segments):
            path.unlink()
        return
    if kind == "swap":
        one, other = dice.choice(segments), dice.choice(files)
        if other.name != "totals" and one != other:
            one.replace(folder / "swapping")
            other.replace(one)
            (folder / "swapping").replace(other)
        return
    path = dice.choice(segments if dice.random() < 0.9 else files)
    other = dice.choice(files).read_bytes()
    path.write_bytes(_damaged(bytearray(path.read_bytes()), kind, other, dice))


def _damaged(data: bytearray, kind: str, other: bytes, dice: random.Random) -> bytes:
    """Return the damaged content of a file; `other` is that of another, or the same."""
    used = len(bytes(data).rstrip(b"\0")) or 1
    at = dice.randrange(used)
    page = at // PAGE * PAGE
    match kind:
        case "flip":
            data[at] ^= 1 << dice.randrange(8)
        case "many flips":
            for _ in range(dice.choice([3, 30, 300])):
                data[dice.randrange(len(data))] = dice.randrange(256)
        case "cut":
            del data[at:]
        case "append":
            begin = dice.randrange(len(other) or 1)
            more = dice.choice([dice.randbytes(at % 9000), other[begin:], other[used:]])
            data[used if dice.random() < 0.5 else len(data) :] = more
        case "zeroed page":
            data[page : page + PAGE] = bytes(len(data[page : page + PAGE]))
        case "old page":
            new = other[page : page + PAGE] or bytes(PAGE)
            data[page : page + len(new)] = new
    return bytes(data)


@dataclass
class Verdict:
    """What a start made of a damage."""

    whole_lost: int = 0
    lost: int = 0
    counted: int = 0
    told: bool = False
    wrong: int = 0
    """Bodies that were never put."""
    again: int = 0
    """Finished items that wait again."""

    @property
    def silent(self) -> bool:
        """Whether something went wrong and nothing was told of it."""
        return not self.told and bool(self.lost or self.again or self.wrong)


def judged(sound: Sound, folder: Path) -> Verdict:
    """Open a damaged copy and compare; raises what the start raises."""
    contents = [path.read_bytes() for path in folder.iterdir()]
    whole = {
        body
        for body, (offset, frame) in sound.frames.items()
        if any(data.startswith(frame, offset) for data in contents)
    }
    with Outbox(folder, LIMITS, clock=Clock()) as box:
        verdict = Verdict(told=box.damage is not None)
        before = box.transact(lambda store: store.totals())
        box.transact(lambda store: store.retry_parked())
        found = set[bytes]()
        for device, kind in box.transact(lambda store: store.lanes()):
            while items := box.transact(
                lambda s, d=device, k=kind: s.take(d, k, Selection(10**6, 1 << 40))
            ):
                found |= {item.body for item in items}
        verdict.counted = before.counts.get("unreadable", 0)
        box.put([NewItem(ItemKind.EVENT, "new", b"new")])
    with Outbox(folder, LIMITS, clock=Clock()) as box:
        verdict.wrong += box.damage is not None  # it is told once
        verdict.wrong += b"new" not in {
            item.body
            for item in box.transact(lambda s: s.take("new", ItemKind.EVENT, Selection(9, 1 << 20)))
        }
        again = box.transact(lambda store: store.totals()).waiting
        verdict.wrong += again != len(found) + 1
    verdict.whole_lost = len(whole - found)
    verdict.lost = len(sound.frames.keys() - found)
    verdict.again = len(found & sound.finished)
    verdict.wrong += len(found - sound.frames.keys() - sound.finished)
    return verdict


def tried(sound: Sound, kind: str, seed: int, scratch: Path) -> Verdict:
    """Damage a copy by this kind and seed; return what a start makes of it."""
    folder = scratch / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sound.folder, folder)
    folder.chmod(0o700)
    damage(folder, kind, random.Random(seed))
    return judged(sound, folder)
