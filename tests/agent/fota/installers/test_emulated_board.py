"""MCUboot itself, on an emulated board: images are swapped, tried, confirmed and taken back."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from tests.support.fota.signed_images import public_pem, signing_key

pytest.importorskip("smpclient", reason="pip install 'cellagent[mcuboot]'")

from agent.fota.installers.mcuboot import McubootInstaller
from agent.fota.jobs import FirmwareType
from tests.support.cloud.standin import StandIn
from tests.support.fota.emulated_board import (
    Moment,
    emulated_board,
    needs_board,
    other_version,
    updated,
)

pytestmark = [pytest.mark.peer, pytest.mark.contract("C6"), needs_board]


def never(_stage: str, _share: float) -> bool:
    return False


async def test_an_update_runs_is_confirmed_and_stays(tmp_path: Path) -> None:
    async with emulated_board(tmp_path) as board:
        ended = await updated(tmp_path, board, never)
    assert ended.detail.startswith("2.0.0 runs; intact")
    assert (ended.status, ended.runs, ended.confirmed) == ("SUCCEEDED", "2.0.0", True)


@pytest.mark.contract("D9.2")
async def test_the_command_updates_the_board_by_a_job_of_the_cloud(
    tmp_path: Path, standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = standin.urls["device_cloud"]
    async with emulated_board(tmp_path) as board:
        config = tmp_path / "config.toml"
        config.write_text(
            f'[profiles.desk]\nbase = "standin"\nhosts.device_cloud = "{host}"\n'
            'kit.device_id = "kit-1"\nkit.port = "virtual:"\nkit.settle_s = 0\n'
            f'fota.installer = "mcuboot"\nkit.mcuboot_port = "{board.port}"\n'
        )
        monkeypatch.setenv("CELLAGENT_CONFIG", str(config))
        monkeypatch.setenv("CELLAGENT_API_KEY", standin.credentials["api_key"])

        async def cellagent(*words: str) -> dict[str, Any]:
            command = (sys.executable, "-m", "agent", *words, "--json", "--profile", "desk")
            process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
            out, err = await process.communicate()
            assert process.returncode == 0, (out, err)
            return json.loads(out.splitlines()[-1])

        public = public_pem(signing_key("ecdsa")).decode()
        headers = {**standin.bearer("api_key"), "content-type": "text/csv"}
        row = f'kit-1,,,APP,"{public}"\n'.encode()
        await standin.client.post("/v1/devices", content=row, headers=headers)
        while await McubootInstaller(board.port).running(FirmwareType.APP) is None:
            pass  # it is starting
        await cellagent("fota", "offer", str(other_version(tmp_path, "2.0.0")))
        ended = await cellagent("fota", "pull")
        again = await cellagent("fota", "pull")
    assert (ended["status"], ended["delivered"]) == ("SUCCEEDED", True)
    assert ended["detail"].startswith("2.0.0 runs; ")
    assert again == {"job": None}


async def test_an_image_that_does_not_start_goes_back_and_has_failed(tmp_path: Path) -> None:
    async with emulated_board(tmp_path) as board:
        ended = await updated(
            tmp_path, board, lambda stage, _: stage == "swap", later_s=3, starts=False
        )
    assert "runs 0.0.0 as before" in ended.detail
    assert (ended.status, ended.runs, ended.confirmed) == ("FAILED", "0.0.0", True)


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        (lambda stage, share: stage == "upload" and share > 0.4, "SUCCEEDED"),
        (lambda stage, _: stage == "swap", "SUCCEEDED"),
        (lambda stage, _: stage == "confirm", "FAILED"),
        (lambda stage, _: stage == "confirmed", "SUCCEEDED"),
    ],
    ids=["upload", "swap", "confirm", "confirmed"],
)
async def test_power_that_is_cut_leaves_what_was_reported(
    tmp_path: Path, moment: Moment, status: str
) -> None:
    async with emulated_board(tmp_path) as board:
        ended = await updated(tmp_path, board, moment)
    assert ended.cuts == 1
    assert ended.true
    assert ended.status == status
