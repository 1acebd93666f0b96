"""A PostgreSQL cluster of a test's own, in a temporary folder, on a socket there alone."""

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
        with postgres_if_there() as server:
            yield server.url
    except PostgresMissing as missing:
        pytest.skip(str(missing))


class PostgresServer:
    """A cluster that can be killed and started again; `url` is its first database."""

    def __init__(self, tools: Path, folder: Path, user: str | None) -> None:
        self._tools, self._folder, self._user = tools, folder, user
        self.url = f"postgresql://bench@/postgres?host={folder}"
        who = ["-A", "trust", "-U", "bench", "--no-sync"]
        _run([tools / "initdb", "-D", folder / "data", *who], user, folder)

    def start(self) -> None:
        """Start it, also after it was killed."""
        options = f"-k {self._folder} -c listen_addresses= -c fsync=off"
        self._control("-w", "-o", options, "-l", self._folder / "log", "start")

    def kill(self) -> None:
        """Stop it where it stands: every connection is lost, nothing is tidied up."""
        self._control("-m", "immediate", "stop")

    def execute(self, statement: str) -> None:
        """Run one statement in its first database."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def new_database(self, name: str) -> str:
        """Make an empty database; return its URL."""
        self.execute(f"CREATE DATABASE {name}")
        return self.url.replace("/postgres?", f"/{name}?")

    def _control(self, *arguments: str | Path) -> None:
        command = [self._tools / "pg_ctl", "-D", self._folder / "data", *arguments]
        _run(command, self._user, self._folder)


@contextmanager
def postgres_if_there() -> Iterator[PostgresServer]:
    """Start a cluster and yield it. Raises PostgresMissing.

    The server refuses root, so as root it is given to the user that its package made.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [
        Path(path).parent for path in [shutil.which("initdb")] if path
    ]
    if not found:
        raise PostgresMissing("needs a PostgreSQL server: apt-get install postgresql")
    user = "postgres" if os.geteuid() == 0 else None
    # A socket's path has at most about 100 characters: pytest's own folders are too deep.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    if user is not None:
        owner = pwd.getpwnam(user)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    try:
        server = PostgresServer(found[-1], folder, user)
        server.start()
        try:
            yield server
        finally:
            server.kill()
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
