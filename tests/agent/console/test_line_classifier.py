"""The console of a kit: each thing told apart, from any cut of the bytes."""

from __future__ import annotations

import base64
import itertools
import json
import quopri
import urllib.parse
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.console import line_classifier
from agent.console.chunk_lines import ChunkLine, DamagedChunk
from agent.console.dump_lines import CapturedDump, DamagedDumpLine
from agent.console.fault_lines import FaultText, Reboot
from agent.console.line_classifier import ConsoleReader, Overlong, decode_item, encode_item
from agent.console.log_line import LogLine
from tests.support.dumps.console_items import DUMP, items_of
from tests.support.dumps.zephyr_dumps import printed

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


def test_each_thing_in_a_console_is_told_apart():
    items = items_of(CONSOLE)
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
    assert items_of(*pieces) == items_of(CONSOLE)


@pytest.mark.parametrize("columns", [80, 66, 48])
def test_what_a_narrow_terminal_has_wrapped_is_put_together(columns: int):
    # As `tmux capture-pane` and the hardcopy of `screen` leave it.
    chunk = bytes([8, *range(50)])
    text = printed(DUMP) + b"MC:" + base64.b64encode(chunk) + b":\r\n"
    rows = (
        row[at : at + columns] for row in text.split(b"\r\n") for at in range(0, len(row), columns)
    )
    dump, exported = items_of(b"\n".join(rows))
    assert (bytes(dump.data), exported.chunk) == (DUMP, chunk)
    assert dump.dump.usable


@pytest.mark.parametrize("size", [60, 64, 65, 66])
@pytest.mark.parametrize("columns", [30, 40, 43])
def test_a_chunk_over_several_rows_is_put_together(columns: int, size: int):
    chunk = bytes([8, *range(size)])
    text = b"MC:" + base64.b64encode(chunk) + b":"
    rows = [text[at : at + columns] for at in range(0, len(text), columns)]
    assert [type(item) for item in items_of(b"\n".join(rows))] == [ChunkLine]
    lost, *rest = items_of(b"\n".join([*rows[:-1], b"ready\n"]))
    assert isinstance(lost, DamagedChunk)
    assert [item.text for item in rest] == [*(row.decode() for row in rows[1:-1]), "ready"]


@pytest.mark.parametrize("size", range(54, 60))
def test_a_chunk_in_a_mail_or_an_address_is_read(size: int):
    chunk = bytes([8, *range(255, 255 - size, -1)])
    text = b"MC:" + base64.b64encode(chunk) + b":"
    spelt = (
        quopri.encodestring(text + b"\n"),
        urllib.parse.quote(text, safe="").encode(),
        b"GET /?c=" + urllib.parse.quote(text).encode() + b" HTTP/1.1",
    )
    for one in spelt:
        found = [item.chunk for item in items_of(one) if isinstance(item, ChunkLine)]
        assert found == [chunk]


def test_rows_that_no_colon_ends_are_searched_once(monkeypatch: pytest.MonkeyPatch):
    # As of a certificate, or of a file in a mail, behind an export that was cut.
    searched = []
    monkeypatch.setattr(
        line_classifier, "_WRAPPED", SimpleNamespace(search=lambda text: searched.append(len(text)))
    )
    rows = [b"MC:" + b"A" * 61, *[b"A" * 64] * 500]
    items = list(ConsoleReader().read([b"\n".join(rows)]))
    assert len(items) == len(rows)
    assert sum(searched) < 3 * 64


def test_a_row_of_digits_that_belongs_to_no_line_before_it_stays_what_it_is():
    first, rest = printed(DUMP, width=30).split(b"\r\n", 2)[1:]
    dump = b"#CD:BEGIN#\n" + first + b"\n" + b"0" * 60 + b"\n" + rest
    log, captured = items_of(dump)
    assert (log.text, captured.dump.usable) == ("0" * 60, True)
    assert [type(item) for item in items_of(b"MC:CAAA\nready:\n")] == [DamagedChunk, LogLine]


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

# Bootloaders of older kits, and the immutable one, have the application's banner.
_BANNER = b"*** Booting nRF Connect SDK v2.6.0 ***\n"
_ONE, _OTHER = b"Attempting to boot slot 0.\n", b"I: Jumping to the first image slot\n"


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
        ((_BANNER + _ONE + b"*** Booting MCUboot v2.1.0 ***\n" + _OTHER + _BANNER) * 2, 0, 2),
        ((_BANNER + _ONE + _BANNER + _OTHER + _BANNER) * 2, 0, 2),
        ((_BANNER + _OTHER) * 3, 0, 2),
        (b"Booting from ROM..*** Booting Zephyr OS build zephyr-v2.3.0  ***\n", 0, 1),
        (b"***** Booting Zephyr OS v1.14.1 *****\n", 0, 1),
        (b"***** delaying boot 500ms (per build configuration) *****\n", 0, 0),
        (b"********** Asset tracker v1.2 **********\n***** Default *****\n", 0, 0),
        (b"***** Stack Check Fail! *****\n***** UNDEFINED INSTRUCTION ABORT *****\n", 1, 0),
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
        "starts by way of two",
        "starts by way of two that are called as the application",
        "a bootloader that begins anew, of which the last one may be the application",
        "a banner behind other words",
        "an old banner",
        "an old notice",
        "an application's name",
        "older headings",
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
    chunk, rest = items_of(b"half a sentence MC:CAAA: and its end\n")
    assert isinstance(chunk, ChunkLine)
    assert rest.text == "half a sentence  and its end"


@given(st.binary(max_size=200), st.integers(1, 64))
def test_any_bytes_in_any_pieces_are_the_same_items(data, size):
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert items_of(*pieces) == items_of(data)


def test_a_line_without_an_end_stays_within_its_bound():
    reader = ConsoleReader(max_line=1000)
    for _ in range(100):
        assert reader.receive(b"x" * 500) == []
        assert len(reader._pending) <= 1000
    (item,) = reader.receive(b"\nMC:CAAA:\n")[:1]
    assert isinstance(item, Overlong)
    assert item.size == 50_000
    assert reader.counts.chunks == 1
    reader.receive(b"MC:" + b"A" * 2000 + b":\n")
    assert (reader.counts.overlong, reader.counts.damaged_chunks) == (2, 1), "its chunk is lost"


@given(at=st.integers(0, 5000), size=st.integers(1, 1500))
def test_a_chunk_anywhere_in_a_line_without_an_end_is_counted_as_lost(at: int, size: int):
    line = b"x" * at + b"MC:CAAA:" + b"x" * (6000 - at) + b"\n"
    reader = ConsoleReader(max_line=1000)
    (item,) = reader.read(line[start : start + size] for start in range(0, len(line), size))
    assert item == Overlong(line[:256], 6008)
    assert reader.counts.damaged_chunks == 1


PIECES = [
    b"*** Booting nRF Connect SDK v3.1.0 ***\r\n",
    b"[00:00:10.123,456] <inf> app: started\r\n",
    b"[00:00:47.000,000] <err> os: >>> ZEPHYR FATAL ERROR 3: Kernel oops on CPU 0\r\n",
    b"MC:CAAA:\r\n",
    b"MC:x:\r\n",
    printed(DUMP),
    b"#CD:BEGIN#\r\n#CD:5\r\n",
    b"\xff\x00 " * 500 + b"\r\n",
]


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=200)))
def test_every_item_is_the_same_on_the_other_side(pieces):
    reader = ConsoleReader(max_line=1000)
    items = [item for piece in pieces for item in reader.receive(piece)] + reader.finish()
    lines = [encode_item(item) for item in items]
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert [decode_item(json.loads(line)) for line in lines] == items


@pytest.mark.parametrize("line", [{}, {"is": "Path", "item": "/"}, {"is": "ChunkLine"}])
def test_what_is_no_item_is_refused(line):
    with pytest.raises(ValueError, match=r"item|object"):
        decode_item(line)


@pytest.mark.contract("O5.1")
@pytest.mark.parametrize("joined", range(2, printed(DUMP, "").count(b"#CD:")))
def test_a_dump_of_which_two_lines_ran_together_is_whole_and_one_line_counted(joined: int) -> None:
    lines = printed(DUMP, "").splitlines(keepends=True)
    lines[joined - 1] = lines[joined - 1].rstrip()
    damaged, dump = items_of(b"".join(lines))
    assert isinstance(damaged, DamagedDumpLine)
    assert isinstance(dump, CapturedDump)
    assert dump.data == DUMP


def test_a_crash_that_is_printed_by_shell_and_uart_is_counted_once() -> None:
    lines = [
        b"[00:00:48.000,000] <err> os: ***** BUS FAULT *****\r\n",
        b"[00:00:48.000,031] <err> os: >>> ZEPHYR FATAL ERROR 25: Unknown error on CPU 0\r\n",
    ]
    reader = ConsoleReader()
    for line in lines:
        reader.receive(line + b"uart:~$ \x1b[8D\x1b[J\x1b[1;31m" + line)
    assert reader.counts.faults == 1


def test_a_chunk_that_is_printed_by_shell_and_uart_is_read_once() -> None:
    lines = [
        b"[00:00:01.000,000] <inf> mflt: MC:SEICpwIBAwEHBwcHBwcHBwcHBwc=:\r\n",
        b"[00:00:01.000,031] <inf> mflt: MC:wBIHBwcHBwcHBwcHBwcHBwcHBwc=:\r\n",
        b"[00:00:01.000,061] <inf> mflt: MC:wBIHBwcHBwcHBwcHBwcHBwcHBwc=:\r\n",
    ]
    reader = ConsoleReader()
    twice = [line + b"uart:~$ \x1b[8D\x1b[J\x1b[1;31m" + line for line in lines]
    items = [item for line in twice for item in reader.receive(line)]
    assert items == items_of(b"".join(lines))
    assert reader.counts.chunks == len(lines)
    assert all(isinstance(item, ChunkLine) for item in items)
