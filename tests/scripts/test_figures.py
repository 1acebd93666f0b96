"""The table of a tree's shape counts what its words say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "figures.py"
FILES = {
    "at/one.py": """\
'''Tell

# no comment
'''

from agent.room.two import (
    Twice,
)
# why
""",
    "agent/room/two.py": """\
class Twice:
    X = '''
#'''
    def f(self):
        return 1  # noqa
""",
    "agent/room/three.py": """\
if TYPE_CHECKING:
    import at.one
class Twice: pass
""",
    "agent/other/four.py": "class _Twice: pass\n",
    "agent/standin/five.py": """\
from typing import Any
def routes(cloud: Any) -> list[Any]:
    cloud.served = cloud.ready = True
    cloud.served = False
    return [Endpoint('Any', methods=['GET'])]
""",
    "tests/agent/room/test_two.py": "def test_it(monkeypatch):\n    monkeypatch.setattr(1, 2, 3)\n",
}


def figures(tree: Path) -> dict[str, str]:
    for name, text in FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    shown = subprocess.run(
        [sys.executable, str(SCRIPT), str(tree)], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.strip("| ").split(" | ") for line in shown.splitlines()[2:])
    return {row[0]: row[1] for row in rows}


def test_the_figures_of_a_small_tree(tmp_path: Path) -> None:
    found = figures(tmp_path)
    assert found["files of `at` and `agent`"] == "5"
    assert found["code lines"] == "16"  # a # within a text is taken for a comment
    assert found["import lines of all code"] == "37.5 % (6)"
    assert found["longest function, lines"] == "4 (`agent/standin/five.py:routes`)"
    assert found["files with exactly one importer"] == "2"
    assert found["`Any` per 1,000 code lines"] == "125.0 (2)"
    assert found["`Any` as a word, imports and texts as well"] == "250.0 (4)"
    assert found["flags that are set to True or False"] == "2 ()"
    assert found["routes of the stand-in that name their methods themselves"] == "1"
    assert found["public class names repeated within a room"] == "1 (agent/room: Twice)"
    assert found["public class names repeated in the tree"] == "1"
    assert found["docstrings that begin with Tell, Have, Let, Take"] == "1 (Tell 1)"
    assert found["`noqa`"] == "1"
    assert found["mocks per test"] == "1.000 (1)"
    assert found["modules with a test file of their name"] == "1 of 5"
