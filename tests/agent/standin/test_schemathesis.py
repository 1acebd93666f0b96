"""Both documents hold for whatever schemathesis thinks of: every check, every operation.

The tool is run as docs/howto/schemathesis has it run; a credential that opens a part of a
document alone is tried on that part.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.cloud.observability import an_event
from tests.support.cloud.standin import StandIn, running_standin

ROOT = Path(__file__).parents[3]
SETTINGS = ROOT / "docs" / "howto" / "schemathesis"
# The larger form is for a quiet hour: CELLAGENT_SCHEMATHESIS_EXAMPLES=100.
EXAMPLES = os.environ.get("CELLAGENT_SCHEMATHESIS_EXAMPLES", "3")
ONE_BY_ONE = ("--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES)
# Of a credential that only opens what another one covered in full: the examples and what is drawn.
OPENED = ("--phases", "examples,fuzzing")
CHAINS = ("--phases", "stateful", "--max-examples", "20")
DEVICE_CLOUD = "/v1/openapi.json"
LEGACY_LOCATION = "^/v1/location/(?!history|anchors)"
LOCATION = "^/v1/organizations/.*/location/"  # the very operations, at their newer addresses
OBSERVABILITY = "/api/v0/openapi.json"


@pytest.fixture
async def standin(tmp_path: Path) -> AsyncIterator[StandIn]:
    """Keep everything in a file, which has bounds of its own: what it cannot hold would show."""
    state = tmp_path / "cloud.sqlite"
    async with running_standin(tmp_path / "standin", state=state) as running:
        yield running


def header(standin: StandIn, credential: str) -> str:
    if credential == "project_key":
        return f"Service-Project-Key: {standin.credentials['project_key']}"
    if credential.startswith("user_"):
        pair = f"{standin.credentials['user_email']}:{standin.credentials[credential]}"
        return f"Authorization: Basic {base64.b64encode(pair.encode()).decode()}"
    return f"Authorization: {standin.bearer(credential)['Authorization']}"


async def run(standin: StandIn, document: str, credential: str, folder: Path, *more: str) -> str:
    """Return what the tool prints. Fails where it found anything."""
    host = "device_cloud" if document == DEVICE_CLOUD else "api"
    shutil.copytree(SETTINGS, folder / "run")
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        *("run", standin.urls[host] + document, "--header", header(standin, credential)),
        *("--checks", "all", "--continue-on-failure", "--seed", "1"),
        *("--no-color", "--generation-database", "none", *more),
        cwd=folder / "run",
        # In a folder of its own, each run would look anew which characters each encoding has.
        env={
            **os.environ,
            "NO_PROXY": "127.0.0.1",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis"),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0, output[-8000:]
    return output


@pytest.mark.timeout(900)
@pytest.mark.contract("D1.2", "D1.5")
@pytest.mark.parametrize(
    ("credential", "part"),
    [
        ("api_key", ("--exclude-path-regex", "/location/(?!history|anchors)|/long-range/")),
        ("organization_auth_token", ("--include-path-regex", "/long-range/")),
        ("organization_auth_token", ("--include-path-regex", LOCATION, *OPENED)),
        ("service_token", ("--include-path-regex", LEGACY_LOCATION)),
        ("evaluation_token", ("--include-path-regex", LEGACY_LOCATION, *OPENED)),
    ],
)
async def test_the_device_cloud_does_as_its_document_says(
    standin: StandIn, credential: str, part: tuple[str, ...], tmp_path: Path
) -> None:
    await run(standin, DEVICE_CLOUD, credential, tmp_path, *ONE_BY_ONE, *part)


@pytest.mark.timeout(900)
@pytest.mark.contract("O4.3", "O4.4")
@pytest.mark.parametrize(
    ("credential", "part"),
    [
        ("user_password", ("--exclude-tag", "project key")),
        ("organization_auth_token", ("--include-tag", "projects")),
        ("project_key", ("--include-tag", "project key")),
    ],
)
async def test_the_observability_service_does_as_its_document_says(
    standin: StandIn, credential: str, part: tuple[str, ...], tmp_path: Path
) -> None:
    known = {**an_event(), "hardware_version": "nrf9161dk", "software_type": "zephyr-app"}
    key = {"Service-Project-Key": standin.credentials["project_key"]}
    ingress = standin.urls["ingress"]
    sent = await standin.client.post(f"{ingress}/api/v0/events", json=[known], headers=key)
    assert sent.status_code == 202
    await run(standin, OBSERVABILITY, credential, tmp_path, *ONE_BY_ONE, *part)


@pytest.mark.timeout(900)
@pytest.mark.contract("D1.2", "O3.1")
@pytest.mark.parametrize(
    ("document", "credential"),
    [(DEVICE_CLOUD, "api_key"), (OBSERVABILITY, "user_api_key")],
    ids=["device cloud", "observability"],
)
async def test_what_was_made_can_be_fetched_changed_and_forgotten(
    standin: StandIn, document: str, credential: str, tmp_path: Path
) -> None:
    output = await run(standin, document, credential, tmp_path, *CHAINS)
    walked = re.search(r"API Links: +(\d+) covered", output)
    assert walked is not None
    assert int(walked[1]) > 0, "no link was walked"
