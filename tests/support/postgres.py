"""A PostgreSQL cluster of a test's own, in a temporary folder, on a socket there alone."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class PostgresMissing(Exception):
    """There is no PostgreSQL server on this machine; says what would help."""


@contextmanager
def postgres_cluster() -> Iterator[str]:
    """Start a cluster and yield its URL; skip the test where PostgreSQL is not installed."""
    try:
        with postgres_cluster_if_there() as url:
            yield url
    except PostgresMissing as missing:
        pytest.skip(str(missing))


@contextmanager
def postgres_cluster_if_there() -> Iterator[str]:
    """Start a cluster and yield its URL. Raises PostgresMissing.

    The server refuses root, so as root it is given to the user that its package made.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [
        Path(path).parent for path in [shutil.which("initdb")] if path
    ]
    if not found:
        raise PostgresMissing("needs a PostgreSQL server: apt-get install postgresql")
    tools, user = found[-1], "postgres" if os.geteuid() == 0 else None
    # A socket's path has at most about 100 characters: pytest's own folders are too deep.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    if user is not None:
        owner = pwd.getpwnam(user)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    data = folder / "data"
    try:
        _run(
            [tools / "initdb", "-D", data, "-A", "trust", "-U", "bench", "--no-sync"], user, folder
        )
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        start = [tools / "pg_ctl", "-D", data, "-w", "-o", options, "-l", folder / "log", "start"]
        _run(start, user, folder)
        try:
            yield f"postgresql://bench@/postgres?host={folder}"
        finally:
            _run([tools / "pg_ctl", "-D", data, "-m", "immediate", "stop"], user, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str | Path], user: str | None, folder: Path) -> None:
    subprocess.run(
        [str(part) for part in command],
        user=user,
        cwd=folder,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"},
    )
