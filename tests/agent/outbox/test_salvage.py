"""A damaged file, a killed process: what can be read is salvaged, and no start fails."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from outboxes import bodies, event, outbox, totals

from agent.outbox import ItemKind


def test_a_damaged_file_is_set_aside_and_what_reads_is_salvaged(tmp_path: Path):
    items = [event(number) for number in range(500)]
    with outbox(tmp_path) as box:
        box.put(items)
        path = box.path
    data = bytearray(path.read_bytes())
    assert len(data) > 5 * 4096
    data[3 * 4096 : 3 * 4096 + 200] = b"\xff" * 200
    path.write_bytes(data)
    with outbox(tmp_path) as box:
        assert box.salvaged is not None
        found = bodies(box, ItemKind.EVENT)
        assert set(found) <= {item.body for item in items}
        assert len(found) >= 100
        assert totals(box).counts["damaged_files"] == 1
        box.put([event(1000)])
    assert list(path.parent.glob("*.damaged-*"))
    with outbox(tmp_path) as box:
        assert bodies(box, ItemKind.EVENT) == [*found, event(1000).body]


# Kills itself at a given one of the steps in which files are opened, renamed and removed.
KILLED_START = """
import os, sys
sys.path[:0] = ["tests/support"]
from pathlib import Path
from outboxes import outbox
left = int(sys.argv[2])
def at_step(name, arguments):
    global left
    opened = name == "open" and "outbox.sqlite" in str(arguments[0])
    if opened or name in ("os.rename", "os.remove", "sqlite3.connect"):
        left -= 1
        if not left:
            os.kill(os.getpid(), 9)
sys.addaudithook(at_step)
outbox(Path(sys.argv[1])).close()
"""


def test_a_start_that_is_killed_while_it_salvages_is_gone_on_with(tmp_path: Path):
    with outbox(tmp_path / "as it was") as box:
        box.put([event(number) for number in range(500)])
        path = box.path
    data = bytearray(path.read_bytes())
    data[3 * 4096 : 3 * 4096 + 200] = b"\xff" * 200
    path.write_bytes(data)
    for step in range(1, 100):
        folder = tmp_path / str(step)
        shutil.copytree(tmp_path / "as it was", folder)
        child = [sys.executable, "-c", KILLED_START, str(folder), str(step)]
        code = subprocess.run(child, check=False).returncode
        with outbox(folder) as box:
            assert totals(box).waiting >= 100, step
        names = {each.name.split("-")[0] for each in (folder / "state").iterdir()}
        assert names == {"outbox.sqlite", "outbox.sqlite.lock", "outbox.sqlite.damaged"}
        if code == 0:
            break
    assert step > 5


@pytest.mark.parametrize("content", [b"", b"no database at all", b"\0" * 8192])
def test_a_file_that_is_no_outbox_does_not_stop_the_start(tmp_path: Path, content: bytes):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "outbox.sqlite").write_bytes(content)
    with outbox(tmp_path) as box:
        box.put([event(1)])


def test_a_database_of_something_else_is_set_aside(tmp_path: Path):
    (tmp_path / "state").mkdir()
    connection = sqlite3.connect(tmp_path / "state" / "outbox.sqlite")
    connection.execute("CREATE TABLE notes(text)")
    connection.close()
    with outbox(tmp_path) as box:
        assert box.salvaged == 0


def test_no_random_damage_stops_a_start_or_brings_wrong_bytes(tmp_path: Path):
    # Seeded; `scripts/soak outbox` does a thousand.
    dice = random.Random(7)
    items = [event(number) for number in range(200)]
    with outbox(tmp_path) as box:
        box.put(items)
        path = box.path
    sound = path.read_bytes()
    wanted = {item.body for item in items}
    for round_ in range(25):
        data = bytearray(sound)
        for _ in range(dice.choice([1, 10, 100])):
            data[dice.randrange(len(data))] = dice.randrange(256)
        if round_ % 5 == 0:
            del data[dice.randrange(len(data)) :]
        for part in path.parent.iterdir():
            part.unlink()
        path.write_bytes(data)
        with outbox(tmp_path) as box:
            assert set(bodies(box, ItemKind.EVENT)) <= wanted
            box.put([event(9999)])


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path):
    program = (
        "import sys; sys.path[:0] = ['tests/support']\n"
        "from pathlib import Path; from outboxes import outbox, chunk\n"
        "box = outbox(Path(sys.argv[1])); start = int(sys.argv[2])\n"
        "for number in range(start, start + 10**6):\n"
        "    box.put([chunk(number)]); print(number, flush=True)\n"
    )
    heard: list[int] = []
    for _ in range(3):
        start = (heard[-1] + 1) if heard else 0
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), str(start)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        heard += [int(child.stdout.readline()) for _ in range(50)]
        child.kill()
        heard += [int(line) for line in child.stdout.read().splitlines() if line.isdigit()]
        child.stdout.close()
        child.wait()
    with outbox(tmp_path) as box:
        kept = [int.from_bytes(body[2:10], "little") for body in bodies(box)]
    assert set(heard) <= set(kept)
    assert kept == sorted(kept)
