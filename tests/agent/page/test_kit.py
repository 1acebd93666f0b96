"""One kit opened: its console from a bounded ring, filters, exports, and hostile text as text."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statuses import NOW, kit

from agent.console.line_classifier import OverlongLine
from agent.console.log_line import LogLine, parse_line
from agent.daemon.control.protocol import DumpNotice, LostNotice, TroubleNotice
from agent.daemon.control.socket import ControlSocket
from agent.daemon.snapshot import Place, Reading, State
from agent.page.console_feed import LIMIT, ConsoleFeed
from agent.page.kit import console_text, kit_view, signal_csv
from agent.page.view import Painted, Surroundings, View, live, whole_page


def console(*lines: str) -> ConsoleFeed:
    feed = ConsoleFeed(ControlSocket(Path("none.sock")), "a", lambda: NOW, lambda: None)
    for line in lines:
        feed.take(parse_line(line.encode()))
    return feed


def shown(feed: ConsoleFeed, **chosen: str) -> View:
    return kit_view(kit("a"), feed, NOW, Painted(), **chosen)


def lines_of(view: View) -> list[str]:
    return [view.parts[name] for name in view.lists["columns/wide/lines"]]


def test_lines_have_their_time_and_an_error_its_colour() -> None:
    (first, second) = lines_of(shown(console("<err> os: BUS FAULT", "plain")))
    assert "06:10:02" in first
    assert 'class="bad"' in first
    assert "&lt;err&gt; os: BUS FAULT" in first
    assert "plain" in second


def test_the_console_is_filtered_by_text_and_by_level() -> None:
    feed = console("<inf> a: one", "<err> b: two", "<wrn> a: three")
    assert len(lines_of(shown(feed, match="A: "))) == 2
    assert len(lines_of(shown(feed, level="warning"))) == 2
    none = shown(feed, match="nowhere")
    assert lines_of(none) == []
    assert "0 of 3 lines" in none.parts["console"]
    assert "Nothing was printed" in shown(console()).parts["console"]


@pytest.mark.parametrize(
    "hostile",
    ["<script>alert(1)</script>", "\x1b]0;title\x07\x9b31m", "a\u202eb", "'\"><img src=x>"],
)
def test_what_a_kit_prints_gives_no_orders(hostile: str) -> None:
    feed = console()
    feed.take(LogLine(hostile, line=hostile))
    (line,) = lines_of(shown(feed))
    inside = line.partition('<span class="">')[2].removesuffix("</span></div>")
    assert "<" not in inside
    assert all(each.isprintable() for each in inside)


def test_a_line_of_ten_megabytes_is_cut_and_told() -> None:
    feed = console()
    feed.take(LogLine("x", line="x" * 10_000_000))
    feed.take(OverlongLine(b"y" * 256, 10_000_000))
    first, second = lines_of(shown(feed))
    assert len(first) < 5000
    assert "a line of 10000000 characters" in first
    assert "a line of 10000000 bytes" in second


@given(st.lists(st.integers(0, 60_000), max_size=30))
def test_the_newest_lines_are_kept_within_the_limit(sizes: list[int]) -> None:
    feed = console()
    for size in sizes:
        feed.take(LogLine("", line="z" * size))
    assert sum(len(each.text) for each in feed.lines) <= LIMIT
    numbers = [each.number for each in feed.lines]
    assert numbers == list(range(len(sizes) - len(numbers) + 1, len(sizes) + 1))


def test_a_week_of_lines_does_not_grow() -> None:
    feed, painted = console(), Painted()
    for number in range(50_000):
        feed.take(LogLine("", line=f"line {number} " + "x" * 40))
    assert len(lines_of(kit_view(kit("a"), feed, NOW, painted))) == 200
    assert sum(len(each.text) for each in feed.lines) <= LIMIT


def test_what_was_lost_or_taken_out_is_a_line_and_trouble_is_told() -> None:
    feed = console()
    feed.take(LostNotice(3))
    feed.take(DumpNotice(100))
    feed.take(DumpNotice(0))
    feed.take(TroubleNotice("it went away"))
    view = shown(feed)
    assert ["3 lines" in line or "core dump" in line for line in lines_of(view)] == [True, True]
    assert "not live: it went away" in view.parts["console"]
    feed.take(TroubleNotice(""))
    assert "not live" not in shown(feed).parts["console"]


def test_the_download_has_no_secret() -> None:
    text = "".join(console_text(console('AT+CPIN="1234"', "hello")))
    assert "1234" not in text
    assert text.endswith("2026-11-22T06:10:02Z hello\n")


def test_the_signal_is_a_chart_a_table_and_a_file() -> None:
    history = [
        Reading(NOW - timedelta(minutes=1), rsrp_dbm=-97, snr_db=6.0),
        Reading(NOW, rsrp_dbm=-99, supply_mv=3710),
    ]
    one = kit("a", reading=history[-1], history=history)
    part = kit_view(one, console(), NOW, Painted()).parts["signal"]
    assert "RSRP over the last hour: −99 to −97, newest −99 dBm" in part
    assert part.index("06:10:02") < part.index("06:09:02"), "the newest first"
    assert signal_csv(one).splitlines() == [
        "at,rsrp_dbm,snr_db,supply_mv,temperature_c",
        "2026-11-22T06:09:02Z,-97,6.0,,",
        "2026-11-22T06:10:02Z,-99,,3710,",
    ]


def test_the_whole_page_stands_without_any_script() -> None:
    one = kit("a", state=State.TROUBLE)
    one.concerns[3].track = [Place(63.4, 10.4)]  # type: ignore[union-attr]
    view = kit_view(one, console("hello"), NOW, Painted())
    text = whole_page(view, Surroundings("/kits/a", "profile lab", False, *live(NOW, None, "")), ())
    assert text.count("<h1>") == 1
    for words in ("hello", "its port went away", "No position yet", 'role="log"', "noscript"):
        assert words in text
    for name in view.parts:
        assert text.count(f'id="{name}"') == 1, name
    assert " style=" not in text
    assert "onclick" not in text
