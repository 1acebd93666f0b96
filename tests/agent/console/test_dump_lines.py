"""Core dumps on a console: complete, damaged, cut short."""

from __future__ import annotations

import tracemalloc

import pytest

from agent.console.dump_lines import DUMP_MARK, CapturedDump, DamagedDumpLine
from agent.console.line_classifier import ConsoleReader
from agent.console.zephyr_coredump import DumpStatus, parse_dump
from agent.console.zephyr_registers import registers
from tests.support.dumps.console_items import DUMP, items_of
from tests.support.dumps.zephyr_dumps import header, memory, printed


def dumps(text: bytes) -> list[CapturedDump]:
    return [item for item in items_of(text) if isinstance(item, CapturedDump)]


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


@pytest.mark.parametrize("prompt", [b"", b"uart:~$ \x1b[8D\x1b[J\x1b[1;31m"])
def test_a_dump_of_which_each_line_is_printed_by_shell_and_uart_is_read_once(prompt):
    alike = DUMP + memory(0x2000_0000, bytes(200))  # of its lines some are the same
    text = printed(alike)
    each_twice = b"".join(line + prompt + line for line in text.splitlines(keepends=True))
    for console in (each_twice + text, text + each_twice):
        once, again = dumps(console)
        assert once.dump.usable
        assert bytes(once.data) == bytes(again.data) == alike
    assert all(isinstance(item, CapturedDump) for item in items_of(each_twice))


def test_two_dumps_that_ran_together_are_damaged():
    text = printed(DUMP).replace(b"#CD:END#\r\n", b"") + printed(DUMP).replace(b"#CD:BEGIN#", b"")
    (captured,) = dumps(text)
    assert captured.dump.status is DumpStatus.DAMAGED
    assert captured.dump.detail == f"another dump begins at byte {len(DUMP)}"


def kept(dump: bytes, prefix: str, end: bytes) -> bytes:
    """Return the lines of a dump with `end` behind each but BEGIN, which does not tell it."""
    text = printed(dump, prefix).replace(b"\r\n", end + b"\n")
    return text.replace(b"BEGIN#" + end, b"BEGIN#")


@pytest.mark.parametrize(
    "end", ['"}', '\\r\\n","stream":"stdout"}', '\\u001b[0m", "level": 3}', '"', '"]']
)
def test_a_dump_is_gathered_from_lines_that_are_kept_as_json(end):
    (captured,) = dumps(kept(DUMP, '{"log":"E: ', end.encode()))
    assert captured.dump.usable
    assert bytes(captured.data) == DUMP


@pytest.mark.parametrize(
    "end",
    [
        "<CR><LF>",
        "^M",
        "</div>",
        "<br>",
        " |",
        ",RX",
        "\\r\\n'",
        "[0m",
        "\0",
        "\x07",
        "\\x1b[0m'],",
        '" t=1',
        " (kit.py:43)",
    ],
)
def test_a_dump_is_gathered_from_lines_that_a_program_has_set_in_others(end):
    (captured,) = dumps(kept(DUMP, "E: ", end.encode()))
    assert captured.dump.usable
    assert bytes(captured.data) == DUMP


@pytest.mark.parametrize(
    "end",
    [
        "<ESC>[0m<CR><LF>",
        "^[[0m^M$",
        "#033[0m#015",
        "\\033[0m\\r",
        "\u241b[0m",
        "[0D][0A]",
        "\tkit 1",
    ],
)
def test_a_dump_is_gathered_whatever_stands_behind_its_begin_and_each_line(end):
    text = printed(DUMP, "E: ").replace(b"\r\n", end.encode() + b"\n")
    (captured,) = dumps(text)
    assert captured.dump.usable
    assert bytes(captured.data) == DUMP
    (spoilt,) = dumps(text.replace(DUMP[:32].hex().encode(), DUMP[:32].hex().encode()[:-2] + b"g0"))
    assert spoilt.dump.status is DumpStatus.DAMAGED
    _, other = dumps(text + printed(DUMP, "E: ").replace(b"\r\n", b" x\r\n").replace(b"# x", b"#"))
    assert other.dump.status is DumpStatus.DAMAGED


@pytest.mark.parametrize("end", [b"\\n", b"\\r\\n", b"<br>", b"<br />", b" "])
@pytest.mark.parametrize("prefix", ["", "[00:00:47.549,863] <err> coredump: "])
def test_a_dump_is_gathered_from_one_line_whose_ends_are_spelt_out_or_lost(prefix, end):
    text = b'{"dump": "' + end.join(printed(DUMP, prefix).splitlines()) + b'", "n": 1}\n'
    (captured,) = dumps(text)
    assert captured.dump.usable or not (prefix or end.strip())  # nothing says that no digit is lost
    assert bytes(captured.data) == DUMP


@pytest.mark.parametrize(
    "wrong", [b",", b"|", b"]", b"}", b"<", b'"', b"\\", b"[", b"^", b"\x07", b"g"]
)
def test_a_digit_that_became_what_may_stand_behind_is_damage(wrong):
    text = printed(DUMP, "")
    line = text.splitlines()[2]
    for at in range(len(DUMP_MARK), len(line)):
        (captured,) = dumps(text.replace(line, line[:at] + wrong + line[at + 1 :]))
        assert captured.dump.status is DumpStatus.DAMAGED


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
            b"".join([*LINES[:-2], b"--- 2 messages dropped ---\n", LINES[-1]]),
            DumpStatus.INCOMPLETE,
            id="the kit dropped lines",
        ),
    ],
)
def test_a_dump_that_is_not_whole_is_reported_as_what_it_is(text, status):
    (captured,) = dumps(text)
    assert captured.dump.status is status


def test_a_dump_that_the_kit_could_not_write_is_told_though_another_one_begins():
    failed, whole = dumps(b"#CD:BEGIN#\n#CD:ERROR CANNOT DUMP#\n" + b"".join(LINES))
    assert failed.dump.status is DumpStatus.ERROR
    assert bytes(whole.data) == DUMP


def test_a_dump_whose_lengths_add_up_is_complete_whatever_else_the_kit_dropped():
    text = b"".join([*LINES[:-1], b"--- 2 messages dropped ---\n", LINES[-1]])
    captured, later = dumps(text + b"".join(LINES))
    assert captured.dump.usable
    assert captured.dump.dropped_messages == 2
    assert later.dump.dropped_messages == 0


@pytest.mark.parametrize(
    "spoil", [lambda line: line[:-3] + b"\n", lambda line: line.replace(b"#CD:", b"#C:")]
)
def test_what_stands_behind_a_damaged_line_is_not_read(spoil):
    lines = printed(DUMP, "", width=16).splitlines(keepends=True)
    lines[3] = spoil(lines[3])
    (captured,) = dumps(b"".join(lines))
    assert (captured.dump.status, captured.dump.size) == (DumpStatus.DAMAGED, len(captured.data))
    whole = registers(parse_dump(DUMP), DUMP)
    found = registers(captured.dump, captured.data)
    assert found == dict(list(whole.items())[: len(found)])
    assert 0 < len(found) < len(whole)


def test_a_dump_that_is_larger_than_any_memory_is_kept_up_to_the_bound(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("agent.console.dump_lines.MAX_DUMP", 100)
    (captured,) = dumps(printed(DUMP, "", width=16))
    assert (captured.dump.status, len(captured.data)) == (DumpStatus.DAMAGED, 100)
    assert captured.dump.detail == "the dump exceeds 100 bytes"


def test_a_new_beginning_ends_the_dump_before_it():
    first, second = dumps(b"".join(LINES[:3]) + b"".join(LINES))
    assert first.dump.status is DumpStatus.INCOMPLETE
    assert second.dump.usable


def test_a_line_of_a_dump_that_has_not_begun_is_damage():
    (item,) = items_of(b"#CD:0001\n")
    assert isinstance(item, DamagedDumpLine)


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
