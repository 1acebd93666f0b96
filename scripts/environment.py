"""Make the project's `.venv` from a hashed lock, touching nothing outside it.

The other scripts call this first, so that each works in a fresh clone with nothing but Python.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Within a row of scripts/matrix, what the row has installed is what is tested.
IN_ROW = Path(sys.prefix).resolve().is_relative_to((ROOT / ".peers" / "matrix").resolve())
VENV = Path(sys.prefix) if IN_ROW else ROOT / ".venv"
RUNTIME = ROOT / "requirements.lock"
DEVELOPMENT = ROOT / "requirements-dev.lock"
LOCKS = ROOT / "scripts" / "locks"
"""Of what tests and scripts run of others: each in an environment of its own."""
BUILT = ("--no-build-isolation", "--use-pep517")
"""What has no wheel is built with what is there; an older pip warns of its other way."""
_NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")


def python() -> Path:
    """Return the interpreter of `.venv`, or of the row of `scripts/matrix` that this runs in."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def ensure(lock: Path) -> Path:
    """Install `lock` and this project into `.venv` unless that was done; return its interpreter.

    The development lock contains the runtime lock, so the larger one satisfies both.
    """
    if sys.version_info < (3, 11):  # noqa: UP036 - an older interpreter is what this line is for
        newer = [name for name in _NEWER if shutil.which(name)]
        way = f"`{newer[0]} {' '.join(sys.argv)}`" if newer else "install one of these versions"
        version = ".".join(map(str, sys.version_info[:3]))
        sys.exit(f"Python 3.11 or later is needed; this is {version}\n  try: {way}")
    if IN_ROW:
        return python()
    wanted = {_digest(lock), _digest(DEVELOPMENT)}
    stamp = VENV / "installed.sha256"
    if stamp.is_file() and stamp.read_text().strip() in wanted:
        return python()
    print(f"making .venv from {lock.name} (the first time takes a minute)", file=sys.stderr)
    if not python().is_file():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    if not install_lock(python(), lock) or not install(python(), *BUILT, "--no-deps", "-e", ROOT):
        sys.exit(
            "could not install the packages named above: check the connection to the package index"
        )
    stamp.write_text(_digest(lock) + "\n")
    return python()


def run(arguments: list[str | Path], **environment: str) -> int:
    """Run the interpreter of `.venv` in the project's folder; return its exit code."""
    command = [str(python()), *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, check=False
    ).returncode


def enter(lock: Path) -> None:
    """Go on in the interpreter of `.venv`, unless it runs already."""
    ensure(lock)
    if Path(sys.prefix).resolve() != VENV.resolve():
        os.chdir(ROOT)
        os.execv(python(), [str(python()), *sys.argv])  # noqa: S606 - that is the point


def _digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def requirements(lock: Path) -> list[str]:
    """Return the pins of `lock`, each with its hashes on the same line."""
    return lock.read_text().replace("\\\n", " ").splitlines()


def install_lock(target: Path, lock: Path) -> bool:
    """Install what `lock` names, and nothing else, for the interpreter `target`."""
    # setuptools comes first: one dependency has no wheel, and is built with it.
    build = target.parent.parent / "build-requirements.txt"
    build.write_text(
        "".join(f"{line}\n" for line in requirements(lock) if line.startswith("setuptools=="))
    )
    # A lock is whole, so nothing is resolved: before 23.3, pip would look at the newest release of
    # what a package wants by an extra, and refuse the whole lock once that is not the locked one.
    whole = ("--no-deps", "--require-hashes", "-r")
    return (
        install(target, *whole, build)
        and install(target, *BUILT, *whole, lock)
        and subprocess.run([*pip(target), "check"], check=False).returncode == 0
    )


def install_aside(lock: Path, folder: Path) -> bool:
    """Install what `lock` names into a folder of its own; return whether it succeeded."""
    return install(python(), "--no-deps", "--require-hashes", "--target", folder, "-r", lock)


def install(target: Path, *arguments: str | Path) -> bool:
    """Run `pip install` of the interpreter `target`; return whether it succeeded."""
    command = [*pip(target), "install", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def pip(target: Path) -> list[str]:
    """Return the words that run pip of the interpreter `target`."""
    return [str(target), "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-cache-dir"]
