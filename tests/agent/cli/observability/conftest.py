"""Profiles of a service that answers, and of one that cannot be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cloud.standin import StandIn


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a profile whose service cannot be reached; return its file."""
    return _write_profile(tmp_path, monkeypatch, "http://127.0.0.1:9", "0" * 32)


@pytest.fixture
def online(standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Write a profile whose service is the stand-in."""
    key = standin.credentials["project_key"]
    _write_profile(tmp_path, monkeypatch, standin.urls["device_cloud"], key)
    monkeypatch.setenv("CELLAGENT_ORG_TOKEN", standin.credentials["organization_auth_token"])
    return standin


def _write_profile(folder: Path, monkeypatch: pytest.MonkeyPatch, url: str, key: str) -> Path:
    path = folder / "config.toml"
    hosts = "".join(f'{name} = "{url}"\n' for name in ("chunks", "ingress", "files", "api"))
    path.write_text(
        f"[profiles.t.hosts]\n{hosts}[profiles.t.outbox]\nmin_free_bytes = 0\n"
        '[profiles.t.account]\norganization = "acme"\nproject = "kits"\n'
    )
    path.chmod(0o600)
    monkeypatch.setenv("CELLAGENT_CONFIG", str(path))
    monkeypatch.setenv("CELLAGENT_PROFILE", "t")
    monkeypatch.setenv("CELLAGENT_PROJECT_KEY", key)
    return path
