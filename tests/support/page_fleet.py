"""A fleet of virtual kits with faults, for the page: something to see of every state.

    with fleet(folder) as served: served.agent["CELLAGENT_CONFIG"] …

Each kit is served by one process; the agent is started by who uses it.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KITS = {
    "dock-3": ("--fault", "denied=15"),
    "gate-2": (),
    "lift-4": ("--fault", "weak-signal=40", "--fault", "crash=6"),
    "right": (),
    "roof-5": ("--fault", "no-sim"),
}
"""A kit's name -> the options of its virtual modem. One more, yard-1, is not plugged in."""

IN_SERVICE = ("gate-2", "right")
"""Those that the services know."""


@dataclass
class Fleet:
    environment: dict[str, str]
    """For the agent and for commands beside it."""
    folder: Path

    @contextlib.contextmanager
    def agent(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run the agent, ready, until the block ends."""
        with _started("run", "--json", *words, environment=self.environment) as (process, _):
            yield process


@contextlib.contextmanager
def fleet(folder: Path, kits: Mapping[str, Sequence[str]] = KITS) -> Iterator[Fleet]:
    """Serve a stand-in and kits; write their profile."""
    with contextlib.ExitStack() as stack:
        _, cloud = stack.enter_context(_started("cloud", "serve"))
        keys = {"yard-1": {"port": str(folder / "yard-1")}}
        for name, options in kits.items():
            pty = ("--instant", "--pty", str(folder / name))
            stack.enter_context(_started("modem", "virtual", *pty, *options))
            keys[name] = {"port": str(folder / name)}
        config = folder / "config.toml"
        config.write_text(_profile(cloud, keys))
        credentials = cloud["credentials"]
        environment = {
            "CELLAGENT_CONFIG": str(config),
            "CELLAGENT_STATE_DIR": str(folder / "state"),
            "CELLAGENT_API_KEY": credentials["api_key"],
            "CELLAGENT_ORG_TOKEN": credentials["organization_auth_token"],
            "CELLAGENT_PROJECT_KEY": credentials["project_key"],
        }
        if in_service := [str(folder / name) for name in IN_SERVICE if name in kits]:
            # Registered is enough: the proof wants a network, which the agent turns on later.
            words = ("provision", "run", *in_service, "--registration", "onboard")
            subprocess.run(
                [sys.executable, "-m", "agent", *words],
                env={**os.environ, **environment},
                capture_output=True,
                check=False,
            )
        yield Fleet(environment, folder)


def _profile(cloud: Mapping[str, Any], kits: Mapping[str, Mapping[str, str]]) -> str:
    hosts = {name: url for name, url in cloud["urls"].items() if name != "downloads"}
    lines = [
        'profile = "lab"\n[profiles.lab]\nbase = "standin"\n[profiles.lab.hosts]',
        *(f"{name} = {json.dumps(url)}" for name, url in hosts.items()),
        f"[profiles.lab.account]\norganization = {json.dumps(cloud['organization'])}",
        f"project = {json.dumps(cloud['project'])}",
    ]
    lines.append('[profiles.lab.kit]\nkeep_online = "always"\nsettle_s = 0.0')
    for name, values in kits.items():
        lines.append(f"[profiles.lab.kits.{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines)


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
