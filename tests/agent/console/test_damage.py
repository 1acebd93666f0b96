"""One byte of a console damaged: nothing wrong is taken for right, and what is lost is counted."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.console.chunk_lines import ChunkLine, DamagedChunk
from agent.console.dump_lines import CapturedDump
from agent.console.fault_lines import Reboot
from agent.console.line_classifier import ConsoleReader
from agent.console.zephyr_coredump import DumpStatus
from agent.observability.ingest.chunk_codec import Reassembler, encode
from tests.support.dumps.zephyr_dumps import arch, header, memory, printed, threads, trailer

PREFIX = b"[00:00:01.000,000] <inf> mflt: "
MESSAGES = [b"\x02" + bytes(range(60)), b"\x02" + bytes(range(100, 130)), b"\x03" + bytes(200)]
EXPORT = b"".join(
    PREFIX + b"MC:" + base64.b64encode(chunk) + b":\r\n"
    for message in MESSAGES
    for chunk in encode(message, 80)
)
BODY = header(flag=1) + arch() + memory(0x20000000, bytes(range(256)))
CHECKED = BODY + trailer(BODY)
DUMP = printed(CHECKED)
UNCHECKED = printed(header() + BODY[12:])

damages = st.tuples(
    st.sampled_from(["change", "insert", "delete"]), st.integers(0, 1 << 16), st.integers(0, 255)
)


def damaged(text: bytes, damage: tuple[str, int, int]) -> bytes:
    how, at, byte = damage
    at %= len(text)
    put = b"" if how == "delete" else bytes([byte])
    return text[:at] + put + text[at if how == "insert" else at + 1 :]


def heard(text: bytes) -> tuple[list[object], ConsoleReader]:
    reader = ConsoleReader()
    return [*reader.receive(text), *reader.finish()], reader


@pytest.mark.contract("O5.1")
@given(damages)
def test_a_message_comes_out_as_it_was_or_its_loss_is_counted(damage):
    items, reader = heard(damaged(EXPORT, damage))
    reassembler = Reassembler()
    found = [
        each
        for item in items
        if isinstance(item, ChunkLine)
        for each in reassembler.receive(item.chunk)
    ] + reassembler.finish()
    whole = [each for each in found if isinstance(each, bytes)]
    assert [message for message in MESSAGES if message in whole] == whole
    if whole != MESSAGES:
        assert reader.counts.damaged_chunks + len(found) - len(whole) > 0


@given(damages)
def test_a_checked_dump_is_whole_only_as_it_was(damage):
    items, _ = heard(damaged(DUMP, damage))
    dumps = [item for item in items if isinstance(item, CapturedDump)]
    assert all(bytes(item.data) == CHECKED for item in dumps if item.dump.usable)


@pytest.mark.parametrize(
    "line", [b"MX:", b"XC:", b"MCX", b"C:", b"M:", b"MC", b"[00:00:01.000,000] <inf> mflt: XC:"]
)
def test_an_export_whose_mark_is_damaged_is_not_taken_for_text_alone(line):
    text = line + base64.b64encode(b"\x08\x02\x01\x02\x03\x04") + b":\x1b[0m\r\n"
    items, reader = heard(text)
    assert [type(item) for item in items][:1] == [DamagedChunk]
    assert reader.counts.damaged_chunks == 1


@pytest.mark.parametrize(
    "line",
    [
        b"C:/users/abcd:",
        b"results of the MCU measurements:",
        b"MCUboot:",
        b"FC:AAAA:",
        b"MC",
        b"a:",
        b"eMMC:ready",
        b"BMC:1.2 is up",
        b"CELL: 1",
        b"CODE: 5",
        b"SIM1: ready",
        b"SCAN: done",
        b"SERIALNUMBER: 7",
    ],
)
def test_text_that_looks_almost_like_an_export_is_text(line):
    _, reader = heard(line + b"\n")
    assert reader.counts.damaged_chunks == 0


@pytest.mark.parametrize("mark", [b"#CX:", b"#C:", b"#D:", b"CD:", b"XCD:", b"#CD"])
def test_a_dump_one_of_whose_marks_is_damaged_is_damaged(mark):
    lines = DUMP.splitlines(keepends=True)
    lines[3] = lines[3].replace(b"#CD:", mark)
    items, reader = heard(b"".join(lines))
    (dump,) = [item for item in items if isinstance(item, CapturedDump)]
    assert dump.dump.status is DumpStatus.DAMAGED
    assert reader.counts.damaged_dump_lines == 1
    _, reader = heard(lines[3])
    assert reader.counts.damaged_dump_lines == 0  # outside a dump it is text


def test_a_dump_whose_begin_came_damaged_is_whole():
    first = DUMP.index(b"#CD:BEGIN#")
    for at in range(first, first + len(b"#CD:BEGIN#")):
        items, _ = heard(damaged(DUMP, ("change", at, ord("?"))))
        (dump,) = [item for item in items if isinstance(item, CapturedDump)]
        assert (dump.dump.status, bytes(dump.data)) == (DumpStatus.COMPLETE, CHECKED)


@pytest.mark.parametrize("end", [b"#CD:EXD#", b"", b"*** Booting Zephyr OS build v4.1.0 ***"])
def test_a_dump_with_a_right_crc_is_whole_whatever_became_of_its_end(end: bytes):
    items, _ = heard(DUMP.replace(b"#CD:END#", end))
    (dump,) = [item for item in items if isinstance(item, CapturedDump)]
    assert (dump.dump.status, bytes(dump.data)) == (DumpStatus.COMPLETE, CHECKED)


def test_a_restart_ends_the_dump_that_it_cut_short():
    text = DUMP[: len(DUMP) // 2] + b"\r\n*** Booting Zephyr OS build v4.1.0 ***\r\n"
    reader = ConsoleReader()
    (dump,) = [each for each in reader.receive(text) if isinstance(each, CapturedDump)]
    assert dump.dump.status is DumpStatus.INCOMPLETE
    assert dump.dump.detail == "the kit restarted"


@pytest.mark.parametrize(
    ("cut", "chunks", "dumps"), [(b"MC:CAUAAA", 1, 0), (DUMP[: len(DUMP) // 2 + 5], 0, 1)]
)
def test_a_restart_is_seen_in_the_line_that_it_cut_short(cut: bytes, chunks: int, dumps: int):
    items, reader = heard(cut + b"*** Booting Zephyr OS build v4.1.0 ***\r\n")
    assert isinstance(items[-1], Reboot)
    counts = reader.counts
    assert (counts.reboots, counts.damaged_chunks, counts.dumps) == (1, chunks, dumps)
    assert not any(isinstance(each, CapturedDump) and each.dump.usable for each in items)


def section_lines(*blocks: bytes, sizes: tuple[int, ...]) -> list[bytes]:
    """Return the lines of blocks as the kernel prints them: each header and body begins one."""
    lines = []
    for block, size in zip(blocks, sizes, strict=True):
        body = block[size:]
        lines += [block[:size], *(body[at : at + 32] for at in range(0, len(body), 32))]
    return [b"#CD:" + line.hex().encode() + b"\n" for line in lines if line]


@pytest.mark.parametrize("lost", [2, 3, 4, 6, 7, 8, 10, 15])
def test_a_missing_line_is_not_taken_for_a_block_of_an_unknown_kind(lost):
    # Memory full of a letter that is no block's: whatever byte comes to stand first is one.
    blocks = (header(), arch(), threads(b"Q" * 70), memory(0x20000000, b"Q" * 200))
    lines = section_lines(*blocks, sizes=(12, 5, 5, 11))
    begin, end = [b"#CD:BEGIN#\n"], [b"#CD:END#\n"]
    items, _ = heard(b"".join(begin + lines + end))
    assert items[0].dump.status is DumpStatus.COMPLETE
    items, _ = heard(b"".join(begin + lines[:lost] + lines[lost + 1 :] + end))
    assert not items[0].dump.usable


EXPORTED = EXPORT.splitlines()
DUMPED = DUMP.splitlines()


@pytest.mark.contract("O5.1")
@given(st.lists(st.sampled_from([*EXPORTED, *DUMPED]), min_size=2, max_size=12))
def test_lines_that_ran_together_lose_no_chunk(lines):
    items, reader = heard(b"".join(lines))
    chunks = [item.chunk for item in items if isinstance(item, ChunkLine)]
    assert chunks == [
        base64.b64decode(line.removeprefix(PREFIX)[3:-1]) for line in lines if line in EXPORTED
    ]
    assert reader.counts.chunks == len(chunks)


@pytest.mark.parametrize("at", range(1, len(DUMPED) - 2))
def test_a_chunk_behind_the_digits_of_a_dump_is_lifted_and_damages_a_dump_without_crc(at):
    for dump, status in ((UNCHECKED, DumpStatus.DAMAGED), (DUMP, DumpStatus.COMPLETE)):
        lines = dump.splitlines()
        lines[at] += EXPORTED[0] + b"00"
        items, reader = heard(b"\n".join(lines))
        (found,) = [item for item in items if isinstance(item, CapturedDump)]
        assert (reader.counts.chunks, found.dump.status) == (1, status)


@given(st.lists(st.binary(max_size=80).map(lambda piece: piece.replace(b"\0", b"#CD:"))))
def test_any_bytes_are_heard(pieces):
    reader = ConsoleReader()
    for piece in pieces:
        reader.receive(piece)
    reader.finish()
    assert reader.counts.lines >= 0
