"""The device cloud's document holds for whatever schemathesis thinks of (clause D1.2)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from standin import StandIn

# What an expression, a PEM or a zip must be is more than a schema says, so whether generated data
# is taken is not asked; every answer must still be one that the document declares.
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,response_headers_conformance,unsupported_method"
)


@pytest.mark.timeout(300)
@pytest.mark.contract("D1.2", "D1.5")
@pytest.mark.parametrize("credential", ["api_key", "organization_auth_token"])
async def test_every_answer_is_one_that_the_document_declares(
    standin: StandIn, credential: str, tmp_path: Path
) -> None:
    tool = Path(sys.executable).with_name("schemathesis")
    process = await asyncio.create_subprocess_exec(
        *(str(tool), "run", standin.urls["device_cloud"] + "/v1/openapi.json"),
        *("--header", f"Authorization: {standin.bearer(credential)['Authorization']}"),
        *("--checks", CHECKS, "--max-examples", "3", "--phases", "fuzzing"),
        *("--continue-on-failure", "--no-color", "--seed", "1", "--generation-database", "none"),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-6000:]
