"""Install released third-party tools into `.peers`, for the tests that run them unmodified.

They have an environment of their own, from a hashed lock: the project depends on none of them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".peers"
LOCK = ROOT / "requirements-peers.lock"


def main() -> int:
    python = PEERS / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = PEERS / "installed.sha256"
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text().strip() == wanted:
        return 0
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-cache-dir"]
    # One of the tools has no wheel: it is built with the setuptools of the lock, which so comes
    # first, and on its own.
    lines = LOCK.read_text().replace("\\\n", " ").splitlines()
    build = PEERS / "build-requirements.txt"
    build.write_text("".join(f"{line}\n" for line in lines if line.startswith("setuptools==")))
    built = ["--no-build-isolation", "--use-pep517"]  # an older pip warns of its other way
    for step in (["-r", str(build)], [*built, "-r", str(LOCK)]):
        if subprocess.run([*pip, "install", "--require-hashes", *step], check=False).returncode:
            print("could not install the tools: check the connection to the package index")
            return 1
    stamp.write_text(wanted + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
