"""The stand-in cloud in a process of its own: killed, started again where it was, told to fail."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.support.cloud.served_cloud import control
from tests.support.harness.own_port import own_port

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 90


class RestartableStandIn:
    """`ready` is its ready line. `environment` says where a profile is written, if one is."""

    def __init__(
        self, folder: Path, port: int, environment: Mapping[str, str], write_profile: str = ""
    ) -> None:
        self.state = folder / "cloud.state"
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        self._listen = f"127.0.0.1:{port}"
        self._process: subprocess.Popen[str] | None = None
        profile = ["--write-profile", write_profile] if write_profile else []
        self.ready = self.start(*profile)

    def start(self, *options: str) -> Any:
        """Serve, at the same place and with the same state as before."""
        command = (sys.executable, "-m", "agent", "cloud", "serve", "--state", str(self.state))
        self._process = subprocess.Popen(
            [*command, "--listen", self._listen, *options],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def kill(self) -> None:
        """Kill it where it stands."""
        if self._process is not None:
            self._process.kill()
        self.stop()

    def stop(self) -> None:
        """Tell it to stop, and wait until it has."""
        process, self._process = self._process, None
        if process is not None and process.stdout is not None:
            process.terminate()
            process.wait(PATIENCE_S)
            process.stdout.close()

    def control(self, **wishes: object) -> None:
        """Switch what `agent.standin.control` names, such as faults."""
        control(self.ready, **wishes)

    def registered_keys(self) -> dict[str, str]:
        """Return the public key (PEM) of each device, read from its file once it has stopped."""
        assert self._process is None
        with contextlib.closing(sqlite3.connect(self.state)) as connection:
            rows = connection.execute("SELECT value FROM rows WHERE name = 'device_keys'")
            found = [msgspec.msgpack.decode(value) for (value,) in rows]
        return {row["device_id"]: row["public"] for row in found}


@contextlib.contextmanager
def restartable_standin(
    folder: Path, environment: Mapping[str, str], write_profile: str = ""
) -> Iterator[RestartableStandIn]:
    """Serve until the block ends."""
    with own_port() as port:
        cloud = RestartableStandIn(folder, port, environment, write_profile)
        try:
            yield cloud
        finally:
            cloud.stop()
