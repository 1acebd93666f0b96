"""The device cloud's document holds for whatever schemathesis thinks of (clause D1.2)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from standin import StandIn

SETTINGS = Path(__file__).parents[1] / "schemathesis.toml"
# The larger form is for a quiet hour: CELLAGENT_SCHEMATHESIS_EXAMPLES=100.
EXAMPLES = os.environ.get("CELLAGENT_SCHEMATHESIS_EXAMPLES", "3")


@pytest.mark.timeout(900)
@pytest.mark.contract("D1.2", "D1.5")
@pytest.mark.parametrize(
    ("credential", "part"),
    [
        ("api_key", ("--exclude-path-regex", "/location/(?!history)")),
        ("organization_auth_token", ("--include-path-regex", "/organizations/")),
        ("service_token", ("--include-path-regex", "^/v1/location/")),
    ],
)
async def test_every_answer_is_one_that_the_document_declares(
    standin: StandIn, credential: str, part: tuple[str, str], tmp_path: Path
) -> None:
    tool = Path(sys.executable).with_name("schemathesis")
    process = await asyncio.create_subprocess_exec(
        *(str(tool), "--config-file", str(SETTINGS)),
        *("run", standin.urls["device_cloud"] + "/v1/openapi.json", *part),
        *("--header", f"Authorization: {standin.bearer(credential)['Authorization']}"),
        *("--max-examples", EXAMPLES, "--phases", "examples,coverage,fuzzing", "--seed", "1"),
        *("--continue-on-failure", "--no-color", "--generation-database", "none"),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-6000:]
