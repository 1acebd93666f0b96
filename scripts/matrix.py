"""Run the tests with other interpreters, and with other versions of what the project depends on.

scripts/matrix                 every row that this machine can have, the others named
scripts/matrix --list          the rows
scripts/matrix NAME -- -k at   a row; what follows `--` goes to pytest

An interpreter is one on PATH or of pyenv, else that of a Debian suite, which root can have in a
folder by `debootstrap` (from $DEBIAN_MIRROR, if that is set). What a row installs is chosen by uv,
anew each time, below `.peers/matrix`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import environment

Words = list[str | Path]
ROOT = environment.ROOT
FOLDER = ROOT / ".peers" / "matrix"
LOCK = environment.LOCKS / "matrix.lock"
SUITES = {"3.13": "trixie", "3.14": "sid"}
"""Debian's suites by their Python."""
TESTS = ("-m", "not peer", "-q", "-n", "4", "--dist", "worksteal")
HTTPX2 = """
import sys
import httpcore2, httpx2
sys.modules["httpcore"] = httpcore2
sys.modules["httpx"] = httpx2
"""
SERIALX = """
import sys
import serialx, serialx.tools.list_ports
sys.modules["serial"] = serialx
sys.modules["serial.tools"] = serialx.tools
sys.modules["serial.tools.list_ports"] = serialx.tools.list_ports
"""
"""Have a process take httpx2 for httpx, serialx for pyserial: to which the project may move."""
SERIALX_FAILS = (
    # No port opens: it has its name when it is made, and pyserial-asyncio works on pyserial's.
    "test_event_loop.py",
    "test_threaded.py",
    # A port of the list does not say where on the USB it is (`location`).
    "test_a_port_is_the_same_by_whatever_name",
    "test_ports_are_listed_in_the_order_of_their_places_and_interfaces",
)
HTTPX2_FAILS = ("test_a_name_that_idna_forbids_is_no_valid_http",)
"""It asks the resolver for such a name."""
EXPECTED = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if any(part in item.nodeid for part in {fails!r}):
            item.add_marker(pytest.mark.xfail(reason="scripts/matrix says why", strict=True))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """An interpreter, and which versions of the dependencies."""

    name: str
    python: str
    resolution: str = "highest"
    more: tuple[str, ...] = ()
    sitecustomize: str = ""
    tests: tuple[str, ...] = ()
    """Which of them; all, where none is named."""
    fails: tuple[str, ...] = ()
    """Parts of the names of tests that fail, and have to."""


ROWS = (
    Row("3.11-floors", "3.11", "lowest-direct"),
    Row("3.11-newest", "3.11"),
    Row("3.12-newest", "3.12"),
    Row("3.13-newest", "3.13"),
    Row("3.14-newest", "3.14"),
    Row("httpx2", "3.11", more=("httpx2",), sitecustomize=HTTPX2,
        tests=("tests/agent/http", "tests/agent/cloud"), fails=HTTPX2_FAILS),
    Row("serialx", "3.11", more=("serialx",), sitecustomize=SERIALX,
        tests=("tests/at/transport", "tests/at/ports"), fails=SERIALX_FAILS),
)  # fmt: skip


class NotHad(Exception):
    """The machine cannot have what a row needs; the message says what."""


def main(arguments: list[str]) -> int:
    tests = list(TESTS)
    if "--" in arguments:
        at = arguments.index("--")
        arguments, tests = arguments[:at], [*tests, *arguments[at + 1 :]]
    parser = argparse.ArgumentParser(prog="scripts/matrix")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true", help="the rows, and nothing more")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.names) - {row.name for row in ROWS}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    if chosen.list:
        print("\n".join(row.name for row in ROWS))
        return 0
    failed = 0
    for row in ROWS:
        if chosen.names and row.name not in chosen.names:
            continue
        try:
            code = _run(row, tests)
        except NotHad as why:
            print(f"  not had  {row.name}: {why}", flush=True)
            continue
        print(f"  {'ok' if code == 0 else 'FAILED':7}  {row.name}", flush=True)
        failed += code != 0
    return 1 if failed else 0


def _run(row: Row, tests: Sequence[str]) -> int:
    within, python = _interpreter(row.python)
    uv, place = _uv(), FOLDER / row.name
    subprocess.run([*within, uv, "venv", "--quiet", "--clear", "--python", python, place],
                   env=_known(), check=True)  # fmt: skip
    own = place / "bin" / "python"
    install: Words = [uv, "pip", "install", "--quiet", "--python", own]
    groups = ["--group", "test", "--group", "build", "--resolution", row.resolution]
    what = [*groups, "--editable", f"{ROOT}[all]", *row.more]
    subprocess.run([*within, *install, *what], cwd=ROOT, env=_known(), check=True)
    options = [*row.tests, *tests]
    if row.sitecustomize:
        packages = next((place / "lib").glob("python*/site-packages"))
        (packages / "sitecustomize.py").write_text(row.sitecustomize)
        (packages / "expected_failures.py").write_text(EXPECTED.format(fails=row.fails))
        # What it imports may have a plugin of pytest, which is imported before pytest then.
        options += ["-p", "expected_failures", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return subprocess.run(
        [*within, own, "-m", "pytest", *options], cwd=ROOT, check=False
    ).returncode


def _interpreter(version: str) -> tuple[list[str | Path], str]:
    """Return the words that begin a command in its place, and the interpreter. Raises NotHad."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for found in (shutil.which(name), *sorted(pyenv.glob(f"{version}.*/bin/{name}"))):
        # A launcher of other versions may have the name, and no such interpreter.
        if (
            found
            and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0
        ):
            return [], str(found)
    suite = SUITES.get(version)
    if suite is None:
        raise NotHad(f"no {name} on PATH or of pyenv, and no suite of Debian has it")
    folder = FOLDER / "debian" / suite
    if not (folder / "usr" / "bin" / name).exists():
        if os.name != "posix" or os.getuid() != 0 or not shutil.which("debootstrap"):
            raise NotHad(
                f"no {name} on PATH or of pyenv; as root, with debootstrap, Debian's {suite} has it"
            )
        packages = f"--include=ca-certificates,{name},{name}-venv,gcc,{name}-dev,git,socat"
        mirror = [place for place in (os.environ.get("DEBIAN_MIRROR"),) if place]
        command: Words = ["debootstrap", "--variant=minbase", packages, suite, folder, *mirror]
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise NotHad(f"debootstrap of {suite}: {done.stdout.strip().splitlines()[-1]}")
    # The project stands there at the same path; all else of the machine that a test needs, too.
    shared = " && ".join(
        f"mkdir -p {folder}{path} && mount --rbind {path} {folder}{path}"
        for path in ("/dev", "/proc", "/sys", "/tmp", str(ROOT))  # noqa: S108 - shared on purpose
    )
    trusted = "/etc/ssl/certs/ca-certificates.crt"
    names = f"cp /etc/resolv.conf /etc/hosts {folder}/etc/ && cp -L {trusted} {folder}{trusted}"
    inside = f'{shared} && {names} && cd / && exec chroot {folder} sh -c \'cd "$0"; exec "$@"\''
    return ["unshare", "--mount", "sh", "-c", f'{inside} {ROOT} "$@"', "sh"], f"/usr/bin/{name}"


def _uv() -> Path:
    """Return uv, installed from its hashed lock."""
    uv = FOLDER / "uv" / "bin" / "uv"
    if not uv.is_file() and not environment.install_aside(LOCK, FOLDER / "uv"):
        sys.exit("could not install uv: check the connection to the package index")
    return uv


def _known() -> dict[str, str]:
    """Return the environment for uv, which does not read the settings of pip."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    index = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return {**os.environ, **({"UV_DEFAULT_INDEX": index} if index else {})}


if __name__ == "__main__":
    environment.enter(environment.DEVELOPMENT)
    sys.exit(main(sys.argv[1:]))
