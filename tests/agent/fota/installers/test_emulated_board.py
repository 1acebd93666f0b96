"""MCUboot itself, on an emulated board: images are swapped, tried, confirmed and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("smpclient", reason="pip install 'cellagent[mcuboot]'")

from emulated_board import Moment, emulated_board, needs_board, updated

pytestmark = [pytest.mark.peer, pytest.mark.contract("C6"), needs_board]


def never(_stage: str, _share: float) -> bool:
    return False


async def test_an_update_runs_is_confirmed_and_stays(tmp_path: Path) -> None:
    async with emulated_board(tmp_path) as board:
        ended = await updated(tmp_path, board, never)
    assert ended.detail.startswith("2.0.0 runs; intact")
    assert (ended.status, ended.runs, ended.confirmed) == ("SUCCEEDED", "2.0.0", True)


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
