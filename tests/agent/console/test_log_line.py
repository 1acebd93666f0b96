"""Log lines in every form that firmware prints."""

from __future__ import annotations

import pytest

from tests.support.dumps.console_items import items_of


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
    (item,) = items_of(line + b"\n")
    assert (item.level, item.module, item.text) == (level, module, text)


def test_a_line_as_long_as_the_formatter_allows_may_be_cut():
    (item,) = items_of(b"x" * 127)
    assert item.cut
