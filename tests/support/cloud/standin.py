"""The stand-in cloud inside a test's own event loop, on a real loopback socket.

    async def test_something(standin):              # the fixture of tests/conftest.py
        standin.urls["device_cloud"]                # as in the ready line of `cloud serve`
        standin.credentials["api_key"]              # likewise
        standin.clock.advance(3600)                 # its time, not the machine's
        standin.cloud.settings.discover_s = 0       # see agent.standin.state.Settings
        standin.cloud.table(TEAMS)                  # its whole memory
        await standin.client.get("/v1/devices", headers=standin.bearer("api_key"))

`running_standin()` is the same without pytest; `split=True` gives each host a port of its own,
`strict=True` as well, and none takes what another is for,
`devices=N` a fleet, `state=PATH` a file, `faults=[…]` as `--fault` takes them.
"""

import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from agent.standin.clock import Clock
from agent.standin.faults import active_faults, set_faults
from agent.standin.ready_line import credentials
from agent.standin.serve import serving
from agent.standin.state import ORGANIZATION, PROJECT, Cloud, open_cloud
from tests.support.cloud.declared_answers import check_declared


@dataclass
class StandIn:
    cloud: Cloud
    credentials: dict[str, str]
    client: httpx.AsyncClient
    """Its base URL is the device cloud's."""
    organization: str = ORGANIZATION
    project: str = PROJECT

    @property
    def urls(self) -> dict[str, str]:
        return self.cloud.urls

    @property
    def clock(self) -> Clock:
        return self.cloud.clock

    @property
    def team_id(self) -> str:
        return self.cloud.team_id

    @property
    def ready(self) -> dict[str, Any]:
        """What the ready line of `cloud serve` says."""
        return {
            "urls": self.urls,
            "organization": self.organization,
            "project": self.project,
            "team_id": self.team_id,
            "credentials": self.credentials,
        }

    async def control(self, changes: dict[str, Any], status: int = 200) -> Any:
        """Change the running stand-in over its control endpoint; return the answer."""
        answer = await self.client.post(
            "/control", headers=self.bearer("control_token"), json=changes
        )
        assert answer.status_code == status, answer.text
        return answer.json()

    def bearer(self, name: str) -> dict[str, str]:
        """Return the header that sends a credential of the ready line."""
        return {"Authorization": f"Bearer {self.credentials[name]}"}


@contextlib.asynccontextmanager
async def running_standin(
    folder: Path,
    *,
    split: bool = False,
    strict: bool = False,
    devices: int = 0,
    state: Path | None = None,
    faults: Sequence[str] = (),
) -> AsyncIterator[StandIn]:
    cloud = open_cloud(state, devices=devices)
    set_faults(cloud, faults)
    async with serving(cloud, split=split, strict=strict):
        base = cloud.urls["device_cloud"]

        async def note(request: httpx.Request) -> None:
            request.extensions["faults"] = active_faults(cloud)

        async def check(answer: httpx.Response) -> None:
            if not answer.request.extensions["faults"]:
                await check_declared(answer)

        hooks = {"request": [note], "response": [check]}
        # Where nothing is encrypted, reading the system's CAs would take longer than most tests.
        async with httpx.AsyncClient(
            base_url=base,
            trust_env=False,
            verify=base.startswith("https"),
            timeout=60,
            event_hooks=hooks,
        ) as client:
            yield StandIn(cloud, credentials(cloud, folder), client)


def serve(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `cellagent cloud serve` to its end."""
    command = [sys.executable, "-m", "agent", "cloud", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
