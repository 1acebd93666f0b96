"""Software types and versions are what uploads, files and devices have named."""

from __future__ import annotations

import pytest

from tests.support.cloud.observability import push_chunk, upload, with_token
from tests.support.cloud.standin import StandIn
from tests.support.dumps.sdk_bytes import EXAMPLE_SINGLE


async def test_each_way_names_its_type_and_version(standin: StandIn) -> None:
    caller = with_token(standin)
    assert await caller.data("~/software_types") == []
    build = {"version": "1.2.3", "software_type": "app"}
    payload = {"software_version": build, "hardware_version": "dk"}
    part = {
        "software_version": {**build, "software_type": "modem"},
        "hardware_version": "dk",
        "component_version": "3.1.0",
    }
    symbols = {"software_version": {"version": "1.0:7", "software_type": "android"}}
    bill = {"software_version": "1.2.2", "software_type": "app"}
    for kind, path, body in (
        ("OTA_PAYLOAD", "releases/ota_payload", payload),
        ("OTA_PAYLOAD", "releases/ota_payload", part),
        ("SYMBOL_FILE", "symbols", symbols),
        ("SBOM", "sboms", bill),
    ):
        answer = await upload(caller, b"content", kind, f"~/{path}", body, "~/upload")
        assert answer.status_code == 202, answer.text
    await push_chunk(standin, EXAMPLE_SINGLE, "kit-1")
    by_name = {one.pop("name"): one for one in await caller.data("~/software_types")}
    assert by_name["app"]["is_primary_type"]
    assert not by_name["modem"]["is_primary_type"]
    assert by_name["test-software"] == {"is_primary_type": False, "active_device_count": 1}

    async def versions(of: str) -> list[str]:
        found = await caller.data(f"~/software_types/{of}/software_versions")
        return [one["version"] for one in found]

    assert await versions("app") == ["1.2.2", "1.2.3"]
    assert await versions("modem") == ["3.1.0"]
    assert await versions("android") == ["1.0:7"]
    assert await versions("test-software") == ["1.0.0-test"]


@pytest.mark.parametrize("path", ["software_versions", "software_versions/1.2.3"])
async def test_what_nothing_named_is_not_there(standin: StandIn, path: str) -> None:
    answer = await with_token(standin)("GET", f"~/software_types/app/{path}")
    assert answer.status_code == 404
    assert "app" in answer.json()["error"]["message"]
