"""A fleet of virtual kits with faults, for the page: something to see of every state.

    with fleet(folder) as served, served.agent("--page", "127.0.0.1:0"): …

Each kit is served by one process; the agent is started by who uses it.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.commands.running_agent import write_profile

KITS = {
    "dock-3": ("--fault", "denied=15"),
    "gate-2": (),
    "lift-4": ("--fault", "weak-signal=40"),
    "right": (),
    "roof-5": ("--fault", "no-sim"),
}
"""A kit's name -> the options of its virtual modem. One more, yard-1, is not plugged in."""

WITH_CONSOLE = "lift-4"
"""The kit whose application prints on a port of its own, on which it can be made to crash."""

IN_SERVICE = ("gate-2", "right")
"""Those that the services know."""

_ALWAYS_ONLINE = '[profiles.bench.kit]\nkeep_online = "always"\nsettle_s = 0.0'


@dataclass
class Fleet:
    environment: dict[str, str]
    """For the agent and for commands beside it."""
    console: Path

    def command(self, *words: str) -> Any:
        """Return what a command beside the agent says as JSON."""
        command = [sys.executable, "-m", "agent", *words, "--json"]
        environment = {**os.environ, **self.environment}
        # `status` exits with 1 while anything is in trouble, as some of these kits are.
        said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
        return json.loads(said.stdout)

    def crash(self) -> None:
        """Have the kit with a console crash, once the agent reads what it prints."""
        phase = ""
        while phase != "well":
            kits = self.command("status")["kits"]
            concerns = next(kit["concerns"] for kit in kits if kit["name"] == WITH_CONSOLE)
            phase = next(each["phase"] for each in concerns if each["concern"] == "console")
        terminal = os.open(self.console, os.O_WRONLY | os.O_NOCTTY)
        os.write(terminal, b"mflt test hardfault\r")
        os.close(terminal)

    @contextlib.contextmanager
    def agent(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run the agent, ready, until the block ends."""
        with _started("run", "--json", *words, environment=self.environment) as (process, _):
            yield process


@contextlib.contextmanager
def fleet(folder: Path) -> Iterator[Fleet]:
    """Serve a stand-in and kits; write their profile."""
    with contextlib.ExitStack() as stack:
        _, cloud = stack.enter_context(_started("cloud", "serve"))
        console = folder / "console"
        for name, options in KITS.items():
            pty = ["--instant", "--pty", str(folder / name)]
            if name == WITH_CONSOLE:
                pty += ["--console", str(console)]
            stack.enter_context(_started("modem", "virtual", *pty, *options))
        kits = {name: {"port": str(folder / name)} for name in ("yard-1", *KITS)}
        kits[WITH_CONSOLE]["console_port"] = str(console)
        environment = write_profile(folder, cloud, kits, _ALWAYS_ONLINE)
        in_service = [str(folder / name) for name in IN_SERVICE]
        words = ("provision", "run", *in_service, "--registration", "onboard", "--set-clock")
        subprocess.run(
            [sys.executable, "-m", "agent", *words],
            env={**os.environ, **environment},
            capture_output=True,
            check=True,
        )
        yield Fleet(environment, console)


@contextlib.contextmanager
def _started(
    *words: str, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run a command that prints a ready line; give its process, and that line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agent", *words],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
