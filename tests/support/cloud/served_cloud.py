"""The stand-in in a process of its own, and memfault-cli, as it was released, that talks to it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

PEERS = Path(__file__).resolve().parents[3] / ".peers" / "bin"
MEMFAULT = PEERS / "memfault"


class ServedCloud:
    """A stand-in that is served by a process of its own, and the tool that talks to it."""

    def __init__(self, ready: dict[str, Any], folder: Path) -> None:
        self.ready = ready
        self.folder = folder
        self.url: str = ready["urls"]["api"]
        self.key = ["--project-key", ready["credentials"]["project_key"]]
        place = ["--org", ready["organization"], "--project", ready["project"]]
        self.token = ["--org-token", ready["credentials"]["organization_auth_token"], *place]
        self.user = ["--email", ready["credentials"]["user_email"], *place,
                     "--password", ready["credentials"]["user_api_key"]]  # fmt: skip

    def run(
        self, credential: list[str], *arguments: str, tool: str = "memfault", exit_code: int = 0
    ) -> str:
        done = subprocess.run(
            [str(PEERS / tool), "--url", self.url, *credential, *arguments],
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == exit_code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def data(self, path: str) -> Any:
        place = f"organizations/{self.ready['organization']}/projects/{self.ready['project']}"
        bearer = f"Bearer {self.ready['credentials']['organization_auth_token']}"
        with httpx.Client(trust_env=False) as client:
            answer = client.get(
                f"{self.url}/api/v0/{place}/{path}", headers={"Authorization": bearer}
            )
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def control(self, **wishes: Any) -> Any:
        """Change the running stand-in; return the answer."""
        return control(self.ready, **wishes)


def control(ready: Mapping[str, Any], **wishes: Any) -> Any:
    """Change a running stand-in over its control endpoint; return the answer."""
    url = f"{ready['urls']['device_cloud']}/control"
    headers = {"Authorization": f"Bearer {ready['credentials']['control_token']}"}
    answer = httpx.post(url, json=wishes, headers=headers, timeout=60, trust_env=False)
    assert answer.status_code == 200, answer.text
    return answer.json()


@contextlib.contextmanager
def served_cloud(folder: Path) -> Iterator[ServedCloud]:
    """Serve a stand-in until the block ends."""
    command = [sys.executable, "-m", "agent", "cloud", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield ServedCloud(json.loads(process.stdout.readline()), folder)
        finally:
            process.terminate()
