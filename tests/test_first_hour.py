"""The mistakes of the first hour, each made for real; the hint of the message is pasted."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands.first_hour import Ended, World, shared_cloud

TABLE = Path(__file__).with_name("first_hour.toml")
ROWS: dict[str, dict[str, Any]] = {
    row["name"]: row for row in tomllib.loads(TABLE.read_text())["mistake"]
}
_COMMAND = re.compile(r"`([^`]+)`")
_BAD = re.compile(r";:|[.;:,];|\.\.(?!\.)|::|  try: *$|--help|Traceback", re.MULTILINE)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with shared_cloud(tmp_path_factory.mktemp("cloud")) as names:
        yield names


@pytest.mark.parametrize("name", ROWS)
def test_a_mistake_is_named_and_its_hint_leads_on(
    name: str, cloud: dict[str, str], tmp_path: Path
) -> None:
    row = ROWS[name]
    with contextlib.ExitStack() as stack:
        world = World(tmp_path, stack, dict(cloud))
        for line in row.get("given", []):
            world.put(line)
        for line in row.get("before", []):
            done = world.type(line)
            assert done.code == 0, f"{line}: {done.said}"
        command = row["command"]
        done = world.type(command)
        _is_as_in(row, done, world)

        for line in _pasted(row, done, world):
            done = world.type(line, world.filled(row.get("typed", "")))
            assert row.get("corrected") or done.code == row.get("pasted_exit", 0), f"{line}: {done}"
        for line in row.get("by_hand", []):
            assert world.type(line).code == 0
        if not row.get("corrected"):
            done = world.type(command)
        then = row["then"]
        if then == "works":
            assert done.code == 0, done.said
        elif then != "end":
            _is_as_in(ROWS[then], done, world)


def _is_as_in(row: dict[str, Any], done: Ended, world: World) -> None:
    assert done.code == row["exit"], done
    said = " ".join((done.out + done.said).split())
    for words in (*row["says"], row.get("tries", "")):
        assert world.filled(words) in said, f"{words!r} is not in\n{done.out}{done.said}"
    assert not _BAD.search(done.said), done.said


def _pasted(row: dict[str, Any], done: Ended, world: World) -> list[str]:
    """Return the commands of the hint that are pasted, with what only the person knows."""
    text = done.out + done.said
    hint = re.split(r"try:\s", text, maxsplit=1)[-1].split("\n\n")[0]
    found = _COMMAND.findall(hint)
    lines = [found[number] for number in row.get("paste", [0] if found else [])]
    for holder, value in row.get("filled", {}).items():
        lines = [re.sub(rf"\b{holder}\b", world.filled(value), line) for line in lines]
    return lines


def test_there_are_forty_mistakes_and_each_leads_somewhere() -> None:
    assert len(ROWS) >= 40
    assert {row["then"] for row in ROWS.values()} <= {*ROWS, "works", "end"}
