"""A kit that is located, and a profile of the stand-in, for the tests of the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.config.write import set_default_profile, write_profile
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import ROOT
from tests.support.location.located_kit import LAT, LON, LocatedKit, use_profile_with_companion
from tests.support.location.moving_kit import moving_kit


@pytest.fixture
async def located_kit(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocatedKit]:
    """Yield a registered kit, the stand-in being the profile's."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    use_profile_with_companion(standin, tmp_path)
    async with moving_kit(tmp_path) as kit:
        kit.go_to(LAT, LON)
        located = LocatedKit(kit, standin)
        assert (await located.run("modem", "at", "AT+CFUN=1")).code == 0
        yield located


@pytest.fixture
def standin_profile(standin: StandIn, private_home: Path) -> str:
    """Write a profile for the stand-in, and make it the one that is used."""
    given = standin.credentials
    hosts = {name: url for name, url in standin.urls.items() if name != "downloads"}
    account = {"organization": standin.organization, "project": standin.project}
    write_profile(
        "sim",
        {"hosts": hosts, "account": {**account, "email": given["user_email"]}},
        {
            "api_key": given["api_key"],
            "organization_token": given["organization_auth_token"],
            "project_key": given["project_key"],
            "user_api_key": given["user_api_key"],
            "user_password": given["user_password"],
            "service_token": given["service_token"],
            "evaluation_token": given["evaluation_token"],
        },
    )
    set_default_profile("sim")
    return "sim"


@pytest.fixture
def closed_service(private_home: Path) -> None:
    """Use a profile with all that a location call needs, but for a service that listens."""
    hosts = {"device_cloud": "http://127.0.0.1:9"}  # the port of `discard`
    account = {"organization": "acme", "project": "kits"}
    secrets = {"organization_token": "token-of-a-test"}
    write_profile("closed", {"hosts": hosts, "account": account}, secrets)
    set_default_profile("closed")
