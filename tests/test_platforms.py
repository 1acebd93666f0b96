"""What can be known here of other systems: no module needs what they lack.

`scripts/check` types every branch for each of them. Here a process that takes itself for one, and
has none of the modules of POSIX, imports every module of the project anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
IMPORTS_ALL = """
import importlib, os, pkgutil, sys, types
import agent, at

NOT_THERE = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
NAMES = [
    module.name
    for package in (at, agent)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
]

def import_all():
    for name in NAMES:
        importlib.import_module(name)

import_all()  # the libraries, as they are here
import asyncio
loop = asyncio.new_event_loop()
for name in [each for each in sys.modules if each.partition(".")[0] in {"at", "agent"}]:
    del sys.modules[name]
sys.modules.update(dict.fromkeys(NOT_THERE))
sys.modules["msvcrt"] = types.ModuleType("msvcrt")  # what is there, and not here
os.O_NOINHERIT = os.O_BINARY = 0
asyncio.ProactorEventLoop = asyncio.SelectorEventLoop
sys.platform = sys.argv[1]
import_all()

from at.protocol.errors import PortError
from at.virtual.server.pty import PtyServer

async def serve():
    PtyServer(sys.argv[2], print)

try:
    loop.run_until_complete(serve())
except PortError as error:
    print(error, error.hint)
"""


def test_every_module_is_imported_where_no_module_of_posix_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS_ALL, "win32", str(tmp_path / "kit")],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Windows has no pseudo-terminals" in done.stdout
    assert "--tcp" in done.stdout


@pytest.mark.parametrize("package", ["at", "agent"])
def test_a_system_is_asked_for_in_the_one_way_that_types_are_checked_by(package: str) -> None:
    other = re.compile(r"\bos\.name\b|platform\.system\(|hasattr\((os|signal|socket|select|time)\b")
    assert [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (ROOT / package).rglob("*.py")
        for line in path.read_text().splitlines()
        if other.search(line)
    ] == []
