"""The ready line: its shape, and the private files that it names."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

from tests.support.cloud.standin import running_standin, serve

CREDENTIALS = {
    "api_key",
    "organization_auth_token",
    "project_key",
    "user_email",
    "user_password",
    "user_api_key",
    "service_key_file",
    "service_token",
    "evaluation_token",
    "control_token",
}
URLS = {"device_cloud", "api", "chunks", "ingress", "files", "provisioning", "downloads"}


def test_the_ready_line_has_the_fixed_shape_and_the_program_s_exit_code_is_ours() -> None:
    show = "import sys; sys.exit(7)"
    done = serve("--", sys.executable, "-c", show)
    assert done.returncode == 7, done.stderr
    (line,) = done.stdout.splitlines()
    ready = json.loads(line)
    assert ready["ready"] is True
    assert set(ready) == {"ready", "urls", "organization", "project", "team_id", "credentials"}
    assert set(ready["urls"]) == URLS
    assert set(ready["credentials"]) == CREDENTIALS


async def test_the_state_file_and_the_key_files_are_private_and_are_read_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state" / "cloud.sqlite"
    private_file = tmp_path / "a" / "service-key-location.pem"
    async with running_standin(tmp_path / "a", state=path) as first:
        key = first.credentials["api_key"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        key_file = private_file.stat()
        assert stat.S_IMODE(key_file.st_mode) == 0o600
        team = first.team_id
    async with running_standin(tmp_path / "b", state=path) as second:
        assert second.team_id == team
        assert second.credentials["api_key"] == key
