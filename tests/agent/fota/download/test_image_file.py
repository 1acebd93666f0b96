"""The file that an image arrives in, beside what fetches it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from agent.fota.download.image_file import ImageFile

SIZE = 256 * 1024 * 1024


async def test_one_that_is_given_up_while_it_is_hashed_reads_from_no_other_file(
    tmp_path: Path,
) -> None:
    for name in ("image.bin", "other.bin"):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, SIZE)
    with ImageFile(tmp_path / "image.bin") as file:
        loading = asyncio.create_task(file.load(SIZE))
        while not file.size:  # noqa: ASYNC110 - a thread has no event of the loop
            await asyncio.sleep(0)
        loading.cancel()
        await asyncio.wait([loading])
    other = os.open(tmp_path / "other.bin", os.O_RDONLY)
    number = os.dup2(other, file._handle)
    await asyncio.get_running_loop().shutdown_default_executor()
    assert os.lseek(other, 0, os.SEEK_CUR) == 0
    for each in {number, other}:
        os.close(each)
