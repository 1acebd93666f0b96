"""The console of a kit: each thing told apart, from any cut of the bytes."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zephyr_dumps import arch, header, memory, printed

from agent.console.chunk_lines import ChunkLine, DamagedChunk
from agent.console.dump_lines import CapturedDump, DamagedDumpLine
from agent.console.fault_lines import FaultText, Reboot
from agent.console.log_line import LogLine
from agent.console.reader import ConsoleReader, OverlongLine
from agent.console.zephyr_coredump import DumpStatus

DUMP = header() + arch() + memory(0x20000000, bytes(range(100)))
# Written by hand after the formats of the kernel's log subsystem.
CONSOLE = (
    b"*** Booting nRF Connect SDK v3.1.0 ***\r\n"
    b"[00:00:10.123,456] <inf> app: started\r\n"
    b"\x1b[1;33m[00:00:11.000,000] <wrn> lte/lc: searching\x1b[0m\r\n"
    b"[00:00:12.000,000] <inf> mflt: MC:CAAA:\r\n"
    b"[00:00:47.000,000] <err> os: >>> ZEPHYR FATAL ERROR 3: Kernel oops on CPU 0\r\n"
    + printed(DUMP)
    + b"--- 4 messages dropped ---\r\n"
    b"uart:~$ "
)


def heard(*pieces: bytes) -> list[object]:
    reader = ConsoleReader()
    return [item for piece in pieces for item in reader.receive(piece)] + reader.finish()


def dumps(text: bytes) -> list[CapturedDump]:
    return [item for item in heard(text) if isinstance(item, CapturedDump)]


def test_each_thing_in_a_console_is_told_apart():
    items = heard(CONSOLE)
    assert [type(item) for item in items] == [
        LogLine,
        Reboot,
        LogLine,
        LogLine,
        ChunkLine,
        LogLine,
        FaultText,
        CapturedDump,
        LogLine,
        LogLine,
    ]
    assert items[1].banner == "nRF Connect SDK v3.1.0"
    assert items[3] == LogLine(
        "searching",
        "warning",
        "lte/lc",
        "00:00:11.000,000",
        "[00:00:11.000,000] <wrn> lte/lc: searching",
    )
    assert items[6].reason == 3
    assert bytes(items[7].data) == DUMP


@pytest.mark.contract("O5.1")
@given(st.sets(st.integers(0, len(CONSOLE))))
def test_what_is_heard_does_not_depend_on_where_the_bytes_were_cut(cuts):
    edges = [0, *sorted(cuts), len(CONSOLE)]
    pieces = [CONSOLE[a:b] for a, b in itertools.pairwise(edges)]
    assert heard(*pieces) == heard(CONSOLE)


@pytest.mark.parametrize(
    ("line", "level", "module", "text"),
    [
        (b"[00:00:01.000,000] <dbg> net: f: hello", "debug", "net", "f: hello"),
        (b"<inf> app: no time", "info", "app", "no time"),
        (b"[00:00:01.000,000] <err> no module", "error", None, "no module"),
        (b"W: minimal", "warning", None, "minimal"),
        (
            b"uart:~$ [00:00:01.000,000] <inf> app: behind a prompt",
            "info",
            "app",
            "behind a prompt",
        ),
        (b"\x1b[8D\x1b[J[00:00:01.000,000] <inf> app: redrawn", "info", "app", "redrawn"),
        (b"uart:~$ W: minimal, behind a prompt", "warning", None, "minimal, behind a prompt"),
        (b"[00:00:01.000] E: app: stamped", "error", "app", "stamped"),
        (b"E: text: of a line without a stamp", "error", None, "text: of a line without a stamp"),
        (b"[00000012] <inf> app: raw ticks", "info", "app", "raw ticks"),
        (b"[   12.345678] <inf> app: as Linux", "info", "app", "as Linux"),
        (b"[2026-01-02T03:04:05,000123Z] <inf> app: a date", "info", "app", "a date"),
        (b"[00:00:01.000,000] <err> [ 7 main] app: a thread", "error", "app", "a thread"),
        (b"[00:00:01.000,000] <err> [x] is no thread", "error", None, "[x] is no thread"),
        (b"[bench 3] [00:00:01.000,000] <inf> app: tagged", "info", "app", "tagged"),
        (b"2026-01-02 03:04:05 [00:00:01.000,000] <inf> app: saved", "info", "app", "saved"),
        (b"00> [00:00:01.000,000] <inf> app: by RTT", "info", "app", "by RTT"),
        (b"\x1b[0;31mE (1234) wifi: a companion\x1b[0m", "error", "wifi", "a companion"),
        (b"AT+CFUN=1", None, None, "AT+CFUN=1"),
        (b"it said <inf> app: x", None, None, "it said <inf> app: x"),
        (b"bad \xff byte", None, None, "bad \\xff byte"),
    ],
)
def test_log_lines_of_every_form_are_read(line, level, module, text):
    (item,) = heard(line + b"\n")
    assert (item.level, item.module, item.text) == (level, module, text)


def test_a_line_as_long_as_the_formatter_allows_may_be_cut():
    (item,) = heard(b"x" * 127)
    assert item.cut


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"[00:00:01.000,000] <err> os: ***** BUS FAULT *****", "bus fault"),
        (b"E: Faulting instruction address (r15/pc): 0x00001234", "faulting instruction"),
        (b"E: Current thread: 0x20001000 (main)", "current thread"),
        (b"ASSERTION FAIL [x] @ WEST_TOPDIR/a.c:12", "ASSERTION FAIL [x] @ WEST_TOPDIR/a.c:12"),
        (b"FATAL ERROR: SecureFault", "FATAL ERROR: SecureFault"),
        (b"Faulting instruction address = 0xae42714c", "faulting instruction"),
        (b"Current thread ID = 0x2000a98c", "current thread"),
        (b"[   12.3] Kernel panic - not syncing: x", "Kernel panic - not syncing: x"),
    ],
)
def test_the_text_of_a_crash_is_recognised(line, what):
    _, fault = heard(line)
    assert fault.what == what


CRASH = (
    b"E: ***** HARD FAULT *****\nE:   Fault escalation (see below)\n"
    b"E: ***** MPU FAULT *****\nE: Faulting instruction address (r15/pc): 0x00001234\n"
    b"E: >>> ZEPHYR FATAL ERROR 19: Unknown error on CPU 0\n"
    b"E: Current thread: 0x20001000 (main)\n"
)
START = (
    b"*** Booting MCUboot v2.1.0 ***\n*** Using nRF Connect SDK v2.7.0 ***\n"
    b"*** Booting nRF Connect SDK v2.7.0 ***\n*** Using Zephyr OS v3.6.99 ***\n"
)


@pytest.mark.parametrize(
    ("text", "faults", "reboots"),
    [
        (CRASH, 1, 0),
        (CRASH + CRASH, 2, 0),
        (b"E: >>> ZEPHYR FATAL ERROR 3: Kernel oops on CPU 0\n" * 2, 2, 0),
        (b"ASSERTION FAIL [a] @ a.c:1\nE: >>> ZEPHYR FATAL ERROR 4: Kernel panic on CPU 0\n", 1, 0),
        (b"ASSERTION FAIL [a] @ a.c:1\nASSERTION FAIL [b] @ a.c:2\n", 2, 0),
        (b"E: ***** USAGE FAULT *****\n*** Booting Zephyr OS build v4.1.0 ***\n" * 2, 2, 2),
        (START, 0, 1),
        (b"Booting from ROM..*** Booting Zephyr OS build zephyr-v2.3.0  ***\n", 0, 1),
        (b"***** Booting Zephyr OS v1.14.1 *****\n", 0, 1),
        (b"***** delaying boot 500ms (per build configuration) *****\n", 0, 0),
        (b"uart:~$ *** Booting Zephyr OS build v2.7.99 ***\n", 0, 1),
        (b"rst:0xc (RTC_SW_CPU_RST),boot:0x9 (SPI_FAST_FLASH_BOOT)\n", 0, 1),
        (b"the *** middle *** of a line\n", 0, 0),
    ],
    ids=[
        "a crash of many lines",
        "two crashes",
        "two crashes of one line",
        "an assertion that ends the kernel",
        "assertions that end nothing",
        "crashes with a start between them",
        "a start by way of the bootloader",
        "a banner behind other words",
        "an old banner",
        "an old notice",
        "a banner behind a prompt",
        "a companion chip",
        "three asterisks",
    ],
)
def test_a_crash_and_a_start_are_each_counted_once(text, faults, reboots):
    reader = ConsoleReader()
    reader.receive(text)
    reader.finish()
    assert (reader.counts.faults, reader.counts.reboots) == (faults, reboots)


@pytest.mark.parametrize(
    "prefix", ["", "E: ", "[14:36:08.267][E][coredump:052]: ", "\x1b[1;31mE: "]
)
@pytest.mark.parametrize("width", [32, 7])
def test_a_dump_is_gathered_behind_any_prefix(prefix, width):
    (captured,) = dumps(printed(DUMP, prefix, width))
    assert captured.dump.usable
    assert bytes(captured.data) == DUMP


def test_other_lines_and_colours_do_not_break_a_dump():
    text = printed(DUMP).replace(b"\r\n", b"\x1b[0m \r\n[00:00:48.000,000] <inf> app: tick\r\n")
    assert dumps(text)[0].dump.usable


LINES = printed(DUMP, "").splitlines(keepends=True)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param(b"".join(LINES[:-1]), DumpStatus.INCOMPLETE, id="no end"),
        pytest.param(
            b"".join(LINES[:2] + LINES[3:]), DumpStatus.DAMAGED, id="a line lost at a block"
        ),
        pytest.param(
            b"".join(LINES[:-2] + LINES[-1:]), DumpStatus.INCOMPLETE, id="the last line lost"
        ),
        pytest.param(
            b"".join([*LINES[:-1], b"#CD:ERROR CANNOT DUMP#\n", LINES[-1]]),
            DumpStatus.ERROR,
            id="error",
        ),
        pytest.param(b"#CD:BEGIN#\n#CD:5a450\n#CD:END#\n", DumpStatus.DAMAGED, id="an odd digit"),
        pytest.param(b"#CD:BEGIN#\n#CD:5a4g\n#CD:END#\n", DumpStatus.DAMAGED, id="no digit"),
        pytest.param(
            b"#CD:LOCATION 0x20000\n#CD:BEGIN#\n#CD:END#\n", DumpStatus.EMPTY, id="in memory"
        ),
        pytest.param(b"#CD:BEGIN#\n#CD:00010203\n#CD:END#\n", DumpStatus.NOT_A_DUMP, id="pretty"),
        pytest.param(
            b"".join([*LINES[:-1], b"--- 2 messages dropped ---\n", LINES[-1]]),
            DumpStatus.INCOMPLETE,
            id="the kit dropped lines",
        ),
    ],
)
def test_a_dump_that_is_not_whole_is_reported_as_what_it_is(text, status):
    (captured,) = dumps(text)
    assert captured.dump.status is status


def test_a_new_beginning_ends_the_dump_before_it():
    first, second = dumps(b"".join(LINES[:3]) + b"".join(LINES))
    assert first.dump.status is DumpStatus.INCOMPLETE
    assert second.dump.usable


def test_a_line_of_a_dump_that_has_not_begun_is_damage():
    (item,) = heard(b"#CD:5a45\n")
    assert isinstance(item, DamagedDumpLine)


def test_damage_is_counted_and_the_reader_goes_on():
    reader = ConsoleReader()
    items = reader.receive(
        b"MC:C$A:\nMC:CAAA:\n#CD:zz\n<inf> app: on\n--- 3 messages dropped ---\n"
    )
    assert [type(item) for item in items] == [
        DamagedChunk,
        ChunkLine,
        DamagedDumpLine,
        LogLine,
        LogLine,
    ]
    counts = reader.counts
    assert (counts.damaged_chunks, counts.chunks, counts.damaged_dump_lines) == (1, 1, 1)
    assert counts.dropped_by_kit == 3


def test_text_that_got_mixed_up_with_a_chunk_is_shown():
    chunk, rest = heard(b"half a sentence MC:CAAA: and its end\n")
    assert isinstance(chunk, ChunkLine)
    assert rest.text == "half a sentence  and its end"


@given(st.binary(max_size=200), st.integers(1, 64))
def test_any_bytes_in_any_pieces_are_the_same_items(data, size):
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert heard(*pieces) == heard(data)


def test_a_line_without_an_end_stays_within_its_bound():
    reader = ConsoleReader(max_line=1000)
    for _ in range(100):
        assert reader.receive(b"x" * 500) == []
        assert len(reader._pending) <= 1000
    (item,) = reader.receive(b"\nMC:CAAA:\n")[:1]
    assert isinstance(item, OverlongLine)
    assert item.size == 50_000
    assert reader.counts.chunks == 1


def test_a_large_dump_costs_no_more_than_twice_its_size():
    dump = header() + memory(0x20000000, bytes(512 * 1024))
    text = printed(dump)
    pieces = [text[at : at + 4096] for at in range(0, len(text), 4096)]
    reader = ConsoleReader()
    tracemalloc.start()
    captured = [item for piece in pieces for item in reader.receive(piece)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert captured[0].dump.usable
    assert peak < 2 * len(dump)
