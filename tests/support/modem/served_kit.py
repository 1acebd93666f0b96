"""A virtual modem in a process of its own, and released tools that are run on it, unmodified."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / ".peers" / "bin"
SHIM = ROOT / "tests" / "peers" / "shim"
PATIENCE_S = 90


def started(*options: str) -> subprocess.Popen[str]:
    """Start the command; its ready line is on its standard output."""
    return subprocess.Popen(
        [sys.executable, "-m", "agent", "modem", "virtual", "--instant", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def modem_virtual(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run the command until the block ends; give its process and its ready line."""
    server = started(*options)
    assert server.stdout is not None
    try:
        yield server, json.loads(server.stdout.readline())
    finally:
        if server.poll() is None:
            server.kill()
        server.wait(60)
        server.stdout.close()


@dataclass(frozen=True)
class ServedKit:
    """A virtual modem in a process of its own: `port` is its link, `state` its state file."""

    port: Path
    state: Path
    folder: Path
    process: subprocess.Popen[str]

    def until_ready(self) -> None:
        """Wait until it serves."""
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline())["ready"]

    def stop(self) -> int:
        """Terminate the process, also if it is suspended; return its exit code."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        code = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def saved(self) -> dict[str, object]:
        return json.loads(self.state.read_text())

    def run(
        self,
        tool: str,
        *arguments: str,
        stdin: str = "",
        code: int | None = 0,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a tool of the peers' environment in a folder of its own."""
        done = subprocess.run(
            [str(PEERS / tool), *arguments],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": str(SHIM),
                "PEER_TERMINAL": os.path.realpath(self.port),
                "COLUMNS": "200",
                **(environment or {}),
            },
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if code is not None:
            assert done.returncode == code, done.stdout + done.stderr
        return done


def launched(folder: Path, *options: str, port: Path | None = None) -> ServedKit:
    """Start a virtual modem in a process of its own; `until_ready` waits for it.

    `folder` keeps its state; `port` is its link, where that is not in the same folder.
    """
    port, state = port or folder / "kit", folder / "kit.state"
    process = started("--pty", str(port), "--state", str(state), *options)
    return ServedKit(port, state, folder, process)


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[ServedKit]:
    """Serve a virtual modem until the block ends."""
    kit = launched(folder, *options)
    try:
        kit.until_ready()
        yield kit
    finally:
        assert kit.stop() == 0
        assert not kit.port.is_symlink()
