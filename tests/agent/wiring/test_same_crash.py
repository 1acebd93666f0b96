"""The same crash told twice, and another that looks the same: from the console to the outbox."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.console.line_classifier import ConsoleReader
from agent.observability.ingest.device_identity import IdentityTracker, PartialIdentity
from agent.outbox import ItemKind, NewItem, Outbox
from agent.wiring.forwarding import Forwarder
from at.virtual.console import export_lines
from tests.support.dumps.zephyr_dumps import arch, header, memory, printed
from tests.support.outbox.outboxes import Clock, outbox

DUMP = header() + arch() + memory(0x20000000, b"the same at every crash " * 4)
PRINTED = printed(DUMP)
FAULT = (
    b"[00:00:01.000,000] <err> os: ***** MPU FAULT *****\r\n"
    b"[00:00:01.000,000] <err> os: >>> ZEPHYR FATAL ERROR 19: Unknown error on CPU 0\r\n"
)
START = b"*** Booting nRF Connect SDK v2.7.0 ***\r\n"
EXPORT = "\r\n".join([*export_lines(b"\x02 an event without a time " * 8), ""]).encode()
MINUTE = 60.0


class Hearing:
    """A process that hears a kit's console and keeps what it hears in an outbox."""

    def __init__(self, box: Outbox) -> None:
        self.box = box
        self._reader = ConsoleReader()
        names = IdentityTracker(PartialIdentity("kit-1", "nrf9161"))
        self._forwarder = Forwarder(box, names)

    async def hear(self, *texts: bytes) -> None:
        for text in texts:
            await self._forwarder.forward(self._reader.receive(text), datetime.now(UTC))

    def kept(self, kind: ItemKind = ItemKind.COREDUMP) -> int:
        """Return how many items of a kind wait."""
        listed = self.box.transact(lambda store: store.list_items(1000))
        return sum(item.kind is kind for item in listed)


async def test_a_dump_that_is_printed_again_is_one_crash(tmp_path: Path):
    with outbox(tmp_path) as box:
        kit = Hearing(box)
        await kit.hear(FAULT, PRINTED, PRINTED, PRINTED + PRINTED)
        assert (kit.kept(), kit.kept(ItemKind.EVENT)) == (1, 1)


@pytest.mark.contract("C7")
@pytest.mark.parametrize("between", [FAULT, START, FAULT + START], ids=["fault", "start", "both"])
async def test_a_crash_that_looks_like_the_one_before_is_kept_with_its_trace(
    tmp_path: Path, between: bytes
):
    with outbox(tmp_path) as box:
        kit = Hearing(box)
        await kit.hear(FAULT, PRINTED, between, PRINTED)
        assert (kit.kept(), kit.kept(ItemKind.EVENT)) == (2, 2)
        await kit.hear(FAULT + PRINTED + START + FAULT + PRINTED + PRINTED)
        assert (kit.kept(), kit.kept(ItemKind.EVENT)) == (4, 4)


async def test_ten_minutes_apart_a_dump_is_another_crash_though_nothing_else_was_heard(
    tmp_path: Path,
):
    clock = Clock()
    with outbox(tmp_path, clock=clock) as box:
        kit = Hearing(box)
        await kit.hear(PRINTED)
        clock.now += 9 * MINUTE
        await kit.hear(PRINTED)
        assert kit.kept() == 1
        clock.now += MINUTE
        await kit.hear(PRINTED)
        assert kit.kept() == 2


async def test_a_dump_is_the_same_for_an_agent_that_was_restarted_unless_the_kit_crashed_since(
    tmp_path: Path,
):
    with outbox(tmp_path) as box:
        await Hearing(box).hear(START, FAULT, PRINTED)
    with outbox(tmp_path) as box:
        kit = Hearing(box)
        await kit.hear(PRINTED)
        assert kit.kept() == 1
        await kit.hear(FAULT, PRINTED)
        assert (kit.kept(), kit.kept(ItemKind.EVENT)) == (2, 2)


async def test_an_export_is_another_once_the_kit_has_started_again(tmp_path: Path):
    with outbox(tmp_path) as box:
        kit = Hearing(box)
        await kit.hear(EXPORT, EXPORT)
        chunks = kit.kept(ItemKind.CHUNK)
        assert chunks == EXPORT.count(b"MC:")
        await kit.hear(START, EXPORT, EXPORT)
        assert kit.kept(ItemKind.CHUNK) == 2 * chunks


def test_what_a_failed_commit_took_back_is_another_the_next_time(tmp_path: Path):
    with outbox(tmp_path) as box:
        box.put([NewItem(ItemKind.COREDUMP, "kit", DUMP, starts=0)])
        second = NewItem(ItemKind.COREDUMP, "kit", DUMP, starts=1)
        with pytest.raises(TypeError):
            box.put([second, NewItem(ItemKind.EVENT, "kit", cast("bytes", "\ud800"))])
        assert box.put([second]).duplicates == 0
        assert box.put([second]).duplicates == 1


HAPPENINGS = st.sampled_from(["crash", "print", "start", "minutes", "agent"])


@settings(max_examples=40)
@given(happenings=st.lists(HAPPENINGS, max_size=12))
def test_no_crash_that_was_heard_is_lost_and_no_reprint_is_kept(happenings: list[str]):
    async def run(folder: Path) -> None:
        clock, crashes, kept = Clock(), 0, 0
        settled = False  # whether the dump was heard, and nothing since that makes it another
        for part in _by_agent(happenings):
            with outbox(folder, clock=clock) as box:
                kit = Hearing(box)
                for what in part:
                    before = kit.kept()
                    if what == "crash":
                        await kit.hear(FAULT, PRINTED)
                        crashes += 1
                        assert kit.kept() == before + 1
                        settled = True
                    elif what == "print":
                        await kit.hear(PRINTED)
                        assert not settled or kit.kept() == before
                        settled = True
                    elif what == "start":
                        await kit.hear(START)
                        settled = False
                    else:
                        clock.now += 11 * MINUTE
                        settled = False
                    kept = kit.kept()
        assert kept >= crashes

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


def _by_agent(happenings: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for what in happenings:
        if what == "agent":
            parts.append([])
        else:
            parts[-1].append(what)
    return parts
