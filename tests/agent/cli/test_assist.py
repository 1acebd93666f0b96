"""`cellagent assist` as a person calls it, against the stand-in."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from agent.cli import assist
from agent.config.write import set_value
from agent.location.agnss_file import parse_agnss
from agent.location.pgps_file import parse_pgps
from agent.location.position import Position
from tests.support.commands.command_line import cellagent
from tests.support.location.located_kit import LAT, LON, LocatedKit


@pytest.mark.contract("D8.2")
async def test_assistance_is_kept_and_shown(located_kit: LocatedKit, tmp_path: Path) -> None:
    out = tmp_path / "agnss.bin"
    done = await located_kit.run("assist", "agnss", "--types", "8,2,9", "--out", str(out), "--json")
    assert (done.code, list(done.lines[0])) == (0, ["bytes", "blocks"])
    assert done.lines[0]["bytes"] == out.stat().st_size
    assert [one["type"] for one in done.lines[0]["blocks"]] == [2, 8, 9]
    where = parse_agnss(out.read_bytes())[1].values[0]
    assert (
        Position(where["lat"] * 90 / 2**23, where["lon"] * 360 / 2**24).distance_m(LAT, LON) < 3e3
    )
    out = tmp_path / "pgps.bin"
    done = await located_kit.run("assist", "pgps", "--count", "4", "--out", str(out), "--json")
    assert (done.code, list(done.lines[0])) == (0, ["bytes", "until", "predictions"])
    assert len(parse_pgps(out.read_bytes()).predictions) == len(done.lines[0]["predictions"]) == 4
    table = (await located_kit.run("assist", "pgps", "--count", "2")).out.splitlines()
    assert table[0].split() == ["valid", "from", "satellites"]
    assert len(table) == 3


@pytest.mark.contract("D8.2")
async def test_the_serving_cell_goes_along_wherever_there_is_a_kit(located_kit: LocatedKit) -> None:
    asked = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        set_value("hosts.device_cloud", f"http://127.0.0.1:{port}", profile="sim")
        done = await located_kit.run("assist", "agnss", "--types", "2")
    assert done.code == 6
    assert re.search(r"/agnss\?types=2&mcc=1&mnc=1&tac=\d+&eci=\d+", asked[0])


async def test_a_kit_that_is_on_no_cell_gets_the_data_for_the_whole_world(
    located_kit: LocatedKit,
) -> None:
    assert (await located_kit.run("modem", "at", "AT+CFUN=4")).code == 0
    done = await located_kit.run("assist", "agnss", "--types", "2,9", "--json")
    assert done.code == 0, done.err
    assert "no serving cell: the data are for the whole world" in done.err
    assert (await located_kit.run("assist", "agnss", "--types", "8", "--json")).code != 0


@pytest.mark.contract("D8.2", "D8.3")
async def test_the_deprecated_get_brings_the_same_data_from_the_legacy_path_and_is_warned_of(
    located_kit: LocatedKit,
) -> None:
    refused = await located_kit.run("assist", "agnss", "--get", "--json")
    assert (refused.code, refused.lines[0]["error"]["kind"]) == (2, "usage")
    assert "location.legacy" in refused.lines[0]["error"]["try"]
    set_value("location.legacy", "true", profile="sim")
    newer = await located_kit.run("assist", "agnss", "--types", "2,8,9", "--json")
    assert "the location path without organization and project is deprecated" in newer.err
    older = await located_kit.run("assist", "agnss", "--types", "9,2,8", "--get", "--json")
    assert (older.code, older.lines) == (0, newer.lines)
    assert "GET /v1/location/agnss is deprecated: POST replaces it" in older.err
    filtered = await located_kit.run("assist", "agnss", "--get", "--filtered")
    assert filtered.code == 2
    assert "neither a filter nor a mask" in filtered.err


async def test_files_of_both_kinds_are_decoded_as_they_were_when_fetched(
    located_kit: LocatedKit, tmp_path: Path
) -> None:
    for kind in ("agnss", "pgps"):
        out = str(tmp_path / kind)
        fetched = await located_kit.run("assist", kind, "--out", out, "--json")
        decoded = await located_kit.run("assist", "decode", out, "--json")
        assert (decoded.code, decoded.lines) == (0, fetched.lines)


@pytest.mark.parametrize("content", [b"", b"\x02", b"\x01\x0a\x01", b"\x01\x02\x01\x00"])
async def test_a_damaged_file_is_named_with_its_damage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "assistance.bin"
    path.write_bytes(content)
    done = await cellagent("assist", "decode", str(path))
    assert done.code == 1
    assert str(path) in done.err


def test_data_that_cannot_be_kept_leaves_the_file_as_it_was_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "agnss.bin"
    out.write_bytes(b"before")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as raised:
        assist._save(out, b"after")
    assert raised.value.filename == str(out)
    assert [path.name for path in tmp_path.iterdir()] == ["agnss.bin"]
    assert out.read_bytes() == b"before"


def test_a_folder_that_is_not_there_is_told_with_the_name_that_was_given(tmp_path: Path) -> None:
    out = tmp_path / "missing" / "agnss.bin"
    with pytest.raises(FileNotFoundError) as raised:
        assist._save(out, b"data")
    assert raised.value.filename == str(out)
