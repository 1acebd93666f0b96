"""What `console --save` does when the disk does not take it, and whose its items are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent.cli.console import sinks
from agent.cli.console.sinks import FileSink, device_identity, outbox_sink
from agent.cli.framework.session import Session
from agent.config.write import write_profile
from agent.console.chunk_lines import ChunkLine
from agent.console.line_classifier import ConsoleReader
from agent.daemon.kit.store import KitStore, kits_folder
from agent.files.paths import state_dir
from agent.observability.ingest.device_identity import IdentityTracker, PartialIdentity
from agent.outbox import Outbox
from agent.outbox.items import OutboxFull
from tests.support.dumps.zephyr_dumps import arch, header, memory, printed
from tests.support.harness.full_disk import files_end_at

pytestmark = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="no /dev/full here: it is Linux that has one"
)
_NAMES = PartialIdentity("kit-1", "nrf9161dk")
CHUNKS = [ChunkLine(bytes([8, number, 0, 0])) for number in range(3)]
DUMP = header() + arch() + memory(0x20000000, bytes(100))


async def test_what_a_full_disk_does_not_take_waits_and_is_saved_in_its_order(tmp_path: Path):
    notes: list[str] = []
    sink = FileSink(tmp_path, IdentityTracker(_NAMES), notes.append)
    chunks = tmp_path / "chunks.jsonl"
    chunks.symlink_to("/dev/full")
    await sink.store(CHUNKS[:2])
    await sink.store(ConsoleReader().receive(printed(DUMP)))
    assert [note.split(":")[0] for note in notes] == ["not kept yet, it waits in memory"]
    chunks.unlink()
    await sink.store(CHUNKS[2:])
    saved = [json.loads(line)["chunk"] for line in chunks.read_text().splitlines()]
    assert saved == [item.chunk.hex() for item in CHUNKS]
    assert (tmp_path / "coredump.bin").read_bytes() == DUMP
    assert notes[-1] == "all is kept now"
    await sink.close()
    assert not any("lost" in note for note in notes)


async def test_half_a_line_that_found_room_is_taken_back(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, IdentityTracker(_NAMES), lambda _note: None)
    chunks = tmp_path / "chunks.jsonl"
    await sink.store(CHUNKS[:1])
    first = chunks.read_text()
    with files_end_at(len(first) + 5):
        await sink.store(CHUNKS[1:])
    assert chunks.read_text() == first
    await sink.close()
    saved = [json.loads(line)["chunk"] for line in chunks.read_text().splitlines()]
    assert saved == [item.chunk.hex() for item in CHUNKS]


async def test_beyond_what_may_wait_the_oldest_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "_MOST_WAITING", 2)
    notes: list[str] = []
    sink = FileSink(tmp_path, IdentityTracker(_NAMES), notes.append)
    chunks = tmp_path / "chunks.jsonl"
    chunks.symlink_to("/dev/full")
    await sink.store(CHUNKS)
    chunks.unlink()
    with pytest.raises(OSError, match="No space left"):
        await sink.close()
    saved = [json.loads(line)["chunk"] for line in chunks.read_text().splitlines()]
    assert saved == [item.chunk.hex() for item in CHUNKS[1:]]
    assert notes[-1].startswith("lost, as it could not be saved: 1 item ")


async def test_what_is_never_taken_is_told_as_lost(tmp_path: Path):
    notes: list[str] = []
    sink = FileSink(tmp_path, IdentityTracker(_NAMES), notes.append)
    (tmp_path / "chunks.jsonl").symlink_to("/dev/full")
    await sink.store(CHUNKS)
    with pytest.raises(OSError, match="No space left") as failed:
        await sink.close()
    assert failed.value.filename == str(tmp_path / "chunks.jsonl")
    assert notes[-1].startswith("lost, as it could not be saved: 3 items")


async def test_what_the_outbox_never_takes_ends_the_command_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def full(*_: object) -> None:
        raise OutboxFull("the disk is full")

    write_profile("lab", {"hosts": {"chunks": "http://127.0.0.1:9"}}, {"project_key": "a-key-1"})
    monkeypatch.setattr(Outbox, "aput", full)
    notes: list[str] = []
    names = IdentityTracker(_NAMES)
    with pytest.raises(OutboxFull, match="the disk is full"):
        async with outbox_sink(Session(profile_name="lab"), names, notes.append) as store:
            await store(CHUNKS)
    assert "lost, as it could not be kept: 3 items (chunks, dumps)" in notes


def test_what_is_known_of_a_kit_on_a_port_is_what_this_profile_knows() -> None:
    write_profile("lab", {"kit": {"port": "/dev/ttyS1"}}, {})
    session = Session(profile_name="lab")
    KitStore(state_dir(), "another", "kit").update(port="/dev/ttyS1", known_id="of-another")
    assert device_identity(session, PartialIdentity()).sender == "of-another"
    KitStore(state_dir(), "lab", "kit").update(port="/dev/ttyS1", known_id="of-lab")
    os.utime(kits_folder(state_dir(), "lab") / "kit.json", (0, 0))
    assert device_identity(session, PartialIdentity()).sender == "of-lab"
