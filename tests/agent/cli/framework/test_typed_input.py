"""Lines of standard input."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from agent.cli.framework.typed_input import InputLines
from agent.errors import UsageError


async def test_input_that_can_be_read_no_more_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a terminal that was closed under `nohup cellagent modem term`, which held its port."""
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb"), os.fdopen(writes, "wb") as cannot_be_read:
        monkeypatch.setattr(sys, "stdin", cannot_be_read)
        async with asyncio.timeout(60):
            assert [line async for line in InputLines()] == []


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"", []),
        (b"AT\nATI\n", [b"AT\n", b"ATI\n"]),
        (b"\nAT", [b"\n", b"AT"]),
        (b"x" * 65_536, [b"x" * 65_536]),
    ],
)
async def test_each_line_of_the_input_comes_with_its_end_and_the_last_as_it_is(
    written: bytes, lines: list[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "input").write_bytes(written)
    with (tmp_path / "input").open("rb") as given:
        monkeypatch.setattr(sys, "stdin", given)
        async with asyncio.timeout(60):
            assert [line async for line in InputLines()] == lines


async def test_a_line_of_the_input_that_never_ends_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "input").write_bytes(b"AT\n" + b"x" * 80_000)
    with (tmp_path / "input").open("rb") as given:
        monkeypatch.setattr(sys, "stdin", given)
        lines = InputLines()
        async with asyncio.timeout(60):
            assert await anext(lines) == b"AT\n"
            with pytest.raises(UsageError, match="longer than 65,536 bytes"):
                await anext(lines)
            async for _ in lines._pieces:
                pass  # its thread reads the file to the end, which must not be closed before
