"""What a power cut would leave of the outbox: its writes and syncs, traced, replayed with losses.

A kill proves nothing about power: the system still writes what the process handed over. Here the
process is traced (strace), and each cut keeps what was synced and a random part of the rest.
"""

import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from agent.outbox import ItemKind, Outbox
from agent.outbox.items import Selection
from tests.support.outbox.outboxes import LIMITS

FOLDER = "box"
LOCK = "outbox.sqlite.lock"
CALLS = "trace=openat,lseek,write,fsync,fdatasync,ftruncate,truncate,unlink,rename"
_LINE = re.compile(r"(\d+) +(.*)")
_NAMED = re.compile(
    r'(unlink|rename|truncate|openat)\((?:AT_FDCWD[^,]*, )?"([^"]*)"(?:, (.*))?\) = \d'
)
_CALL = re.compile(r'(\w+)\((\d+)<([^>]*)>(?:, (?:"([^"]*)")?(.*))?\) = (-?\d+)', re.DOTALL)

WRITER = """
import os, sys
from pathlib import Path
from tests.support.outbox.outboxes import LIMITS, chunk
from agent.outbox import Outbox
box = Outbox(Path(sys.argv[1]), LIMITS)
for number in range(int(sys.argv[2])):
    box.put([chunk(number)])
    os.write(1, b"ack %d\\n" % number)
os._exit(0)
"""


@dataclass(frozen=True, slots=True)
class Event:
    """One traced call: "write", "truncate", "unlink", "rename" (to `data`), "sync" or "ack"."""

    what: str
    path: str = ""
    offset: int = 0
    data: bytes = b""
    number: int = 0


def can_trace() -> bool:
    """Tell whether strace is here and may trace."""
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return tried.returncode == 0


def traced(folder: Path, count: int) -> list[Event]:
    """Run a process that puts `count` items into an outbox; return what it did to its files."""
    folder.mkdir(parents=True)
    log = folder / "strace.log"
    box = folder / FOLDER
    command = ["strace", "-f", "-y", "-xx", "-s", "10000000", "-e", CALLS, "-o", str(log)]
    subprocess.run(
        [*command, sys.executable, "-c", WRITER, str(box), str(count)],
        check=True,
        capture_output=True,
        timeout=600,
    )
    return _events(log.read_text(), str(box))


def _events(log: str, folder: str) -> list[Event]:
    events: list[Event] = []
    unfinished: dict[str, str] = {}
    places: dict[str, int] = {}
    for line in log.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        pid, text = match.groups()
        if text.endswith(" <unfinished ...>"):
            unfinished[pid] = text.removesuffix(" <unfinished ...>")
            continue
        if text.startswith("<... "):
            # Taken at its end: a sync that has not ended counts for nothing.
            text = unfinished.pop(pid, "") + text.partition(" resumed>")[2]
        if named := _NAMED.match(text):
            events += _named(named, folder, places)
            continue
        call = _CALL.match(text)
        if call is not None and int(call[6]) >= 0:
            events += _event(call, folder, places)
    return events


def _named(call: re.Match[str], folder: str, places: dict[str, int]) -> list[Event]:
    """Return what a call with a path did; a file that is opened is written from its beginning."""
    what, path, rest = call[1], Path(_bytes(call[2]).decode()), call[3] or ""
    if str(path.parent) != folder:
        return []
    if what == "rename":
        new = Path(_bytes(rest.strip('"')).decode()).name
        return [Event("rename", path.name, data=new.encode())]
    if what == "openat":
        places[path.name] = 0
        return [Event("truncate", path.name)] if "O_TRUNC" in rest else []
    return [Event(what, path.name, int(rest) if what == "truncate" else 0)]


def _event(call: re.Match[str], folder: str, places: dict[str, int]) -> list[Event]:
    name, descriptor, path, data, rest, result = call.groups()
    path = bytes.fromhex(path.replace("\\x", "")).decode() if path.startswith("\\x") else path
    if descriptor == "1" and data is not None:
        words = _bytes(data).split()
        return [Event("ack", number=int(words[1]))] if words[:1] == [b"ack"] else []
    if not path.startswith(folder):
        return []
    file = Path(path).name
    if name in {"fsync", "fdatasync"}:
        return [Event("sync", file)]
    if name == "lseek":
        places[file] = int(result)
    if name == "write":
        offset, places[file] = places[file], places[file] + int(result)
        return [Event("write", file, offset, _bytes(data or "")[: int(result)])]
    if name == "ftruncate":
        return [Event("truncate", file, int((rest or "").strip(", ")))]
    return []


def _bytes(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))


def unsynced_at_acknowledgement(events: list[Event]) -> list[int]:
    """Return the acknowledgements before which some write to the outbox was not synced."""
    dirty: set[str] = set()
    early = []
    for event in events:
        # Nothing depends on the totals: they count what is lost to damage.
        if event.what in {"write", "truncate"} and event.path not in {"totals", LOCK}:
            dirty.add(event.path)
        elif event.what == "rename":
            dirty.add(FOLDER)
        elif event.what == "sync":
            dirty.discard(event.path)
        elif event.what == "ack" and dirty:
            early.append(event.number)
    return early


def after_cut(events: list[Event], at: int, dice: random.Random) -> dict[str, bytearray]:
    """Return the files after a power cut behind event `at`: what was not synced may be lost."""
    synced: dict[str, int] = {}
    for number, event in enumerate(events[:at]):
        if event.what == "sync":
            synced[event.path] = number
    files: dict[str, bytearray] = {}
    for number, event in enumerate(events[:at]):
        if event.what not in {"write", "truncate", "unlink", "rename"}:
            continue
        # That a file is gone, or has another name, is known to its folder.
        synced_by = FOLDER if event.what in {"unlink", "rename"} else event.path
        if number > synced.get(synced_by, -1) and dice.random() < 0.5:
            continue
        if event.what == "unlink":
            files.pop(event.path, None)
            continue
        if event.what == "rename":
            files[event.data.decode()] = files.pop(event.path, bytearray())
            continue
        content = files.setdefault(event.path, bytearray())
        if event.what == "truncate":
            del content[event.offset :]
            content += bytes(event.offset - len(content))
            continue
        end = event.offset + len(event.data)
        content += bytes(max(0, end - len(content)))
        content[event.offset : end] = event.data
    return files


def lost_in_power_cuts(folder: Path, puts: int, cuts: int, dice: random.Random) -> tuple[int, int]:
    """Cut the power `cuts` times; return how many cuts were made and what was lost in them."""
    events = traced(folder / "traced", puts)
    lost = 0
    for number in range(cuts):
        at = dice.randrange(len(events) + 1)
        acknowledged = {event.number for event in events[:at] if event.what == "ack"}
        box = folder / f"cut{number}"
        box.mkdir(parents=True, mode=0o700)
        for name, content in after_cut(events, at, dice).items():
            (box / name).write_bytes(content)
        with Outbox(box, LIMITS) as outbox:
            items = outbox.transact(
                lambda store: store.take("kit", ItemKind.CHUNK, Selection(1 << 40, 1 << 60))
            )
        there = {int.from_bytes(item.body[2:10], "little") for item in items}
        lost += len(acknowledged - there)
        shutil.rmtree(box)
    return cuts, lost
