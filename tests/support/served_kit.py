"""A virtual modem in a process of its own, and released tools that are run on it, unmodified."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".peers" / "bin"
SHIM = ROOT / "tests" / "peers" / "shim"
PATIENCE_S = 90


@dataclass(frozen=True)
class ServedKit:
    """A virtual modem in a process of its own: `port` is its link, `state` its state file."""

    port: Path
    state: Path
    folder: Path

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


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[ServedKit]:
    """Serve a virtual modem until the block ends."""
    kit = ServedKit(folder / "kit", folder / "kit.state", folder)
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "agent", "modem", "virtual", "--instant"),
            *("--pty", str(kit.port), "--state", str(kit.state), *options),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        assert json.loads(server.stdout.readline())["ready"]
        yield kit
    finally:
        server.terminate()
        assert server.wait(10) == 0
        server.stdout.close()
        assert not kit.port.is_symlink()
