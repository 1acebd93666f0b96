from __future__ import annotations

import pytest
from credential_calls import Push

from agent.auth.credential import ProjectKey
from agent.config.secrets import Secret
from agent.errors import ConfigError, WrongCredential


@pytest.mark.contract("O4.3")
async def test_the_project_key_goes_under_the_configured_header_to_its_own_paths_only() -> None:
    credential = ProjectKey(Secret("project-key-of-the-test"), header="Memfault-Project-Key")
    assert await credential.headers(Push()) == {"memfault-project-key": "project-key-of-the-test"}
    for path in (
        "/api/v0/organizations/o/projects/p/events",
        "/auth/me",
        "/api/v0/events/../organizations",
        "/v1/devices",
        "/api/v0/chunks/a/b",
    ):
        with pytest.raises(WrongCredential, match="none of the paths"):
            await credential.headers(Push(path))
    for path in (
        "/api/v0/chunks/TESTSERIAL",
        "/api/v0/upload",
        "/api/v0/upload/coredump",
        "/api/v0/upload/custom-data-recording",
        "/api/v0/releases/latest",
    ):
        await credential.headers(Push(path))
    with pytest.raises(ConfigError, match="no header name"):
        ProjectKey(Secret("project-key-of-the-test"), header="X: 1\r\nY")
