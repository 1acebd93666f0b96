"""One kit opened: its console from a bounded ring, filters, exports, and hostile text as text."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.config import Secret
from agent.console.log_line import LogLine, parse_line
from agent.daemon.control.socket import ControlSocket, control_socket_of
from agent.daemon.recent import AT, CONSOLE, DECISIONS, HTTP, NETWORK, RecentMoments
from agent.daemon.snapshot import (
    Cell,
    ConsoleStatus,
    EventsStatus,
    FotaStatus,
    HeardCell,
    LastJob,
    LastPosition,
    LocationStatus,
    Place,
    Reading,
    State,
)
from agent.page.kit import console_text, kit_view, signal_csv
from agent.page.moment_feed import MomentFeed
from agent.page.timeline import LANES, decisions, lanes, recording
from agent.page.view import Painted, Surroundings, View, live, whole_page
from at.transcripts.steps import Direction
from at.transcripts.transcript import parse_transcript
from tests.support.page.page_agent import FakeAgent
from tests.support.page.statuses import NOW, kit


def console(*lines: str) -> MomentFeed:
    feed = MomentFeed(ControlSocket(Path("none.sock")), "a", lambda: None)
    feed.recent = RecentMoments(NOW.timestamp)
    feed.recent.add_console([parse_line(line.encode()) for line in lines])
    return feed


def shown(feed: MomentFeed, **chosen: Any) -> View:
    return kit_view(kit("a"), feed, NOW, Painted(), **chosen)


def values_of(part: str) -> dict[str, str]:
    """Return the text beside each name of a list of facts."""
    pairs = re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", part)
    return {name: re.sub("<[^>]*>", "", value) for name, value in pairs}


def lines_of(view: View) -> list[str]:
    return [view.parts[name] for name in view.lists["columns/wide/lines"]]


async def test_an_agent_that_comes_back_has_moments_of_its_own(
    agent: FakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.page.moment_feed.RETRY_S", 0)
    changed = asyncio.Event()
    feed = MomentFeed(control_socket_of(tmp_path, "lab"), "a", changed.set)

    async def until_last(text: str) -> list[str]:
        while (texts := [each.text for each in feed.recent.of(CONSOLE)])[-1:] != [text]:
            await changed.wait()
            changed.clear()
        return texts

    agent.print("before")
    following = asyncio.ensure_future(feed.run())
    await until_last("before")
    await agent.stop()
    agent.recent = RecentMoments(NOW.timestamp)
    agent.print("after")
    await agent.start()
    assert await until_last("after") == ["after"]
    following.cancel()


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
    feed.recent.add_console([LogLine(hostile, line=hostile)])
    (line,) = lines_of(shown(feed))
    inside = line.partition('<span class="">')[2].removesuffix("</span></div>")
    assert "<" not in inside
    assert all(each.isprintable() for each in inside)


def test_a_console_that_is_not_live_says_why() -> None:
    feed = console("hello")
    feed.trouble = "it went away"
    assert "not live: it went away" in shown(feed).parts["console"]


def test_what_happened_stands_in_lanes_on_the_time_axis_of_the_signal() -> None:
    feed = console("<err> os: BUS FAULT", "<inf> a: well")
    feed.recent.add(AT, "> AT+CESQ")
    feed.recent.add(DECISIONS, "link: the modem is turned on again", "warning")
    feed.recent.add(NETWORK, "registered, home network")
    view = shown(feed)
    for words in ("Console: 2 in the last hour, 1 of trouble", "AT: 1 in the last hour",
                  "HTTP: 0 in the last hour"):  # fmt: skip
        assert words in view.parts["signal"]
    decided = view.parts["decisions"]
    assert decided.index("registration: registered") < decided.index("turned on"), "newest first"
    assert "/kits/a?at=2026-11-22T06:10:02Z" in decided
    assert "around" not in view.parts


def test_a_moment_that_is_opened_has_what_happened_within_three_seconds_lane_by_lane() -> None:
    feed, now = console(), NOW.timestamp()
    times = iter([now - 4, now - 3, now + 3, now + 4])
    feed.recent = RecentMoments(lambda: next(times))
    for text in ("too early", "the first", "the last", "too late"):
        feed.recent.add(HTTP, text)
    part = shown(feed, at=NOW).parts["around"]
    assert "the first" in part
    assert "the last" in part
    assert "too early" not in part
    assert "too late" not in part
    assert "at=2026-11-22T06:09:56Z" in part


def test_of_too_many_the_nearest_to_a_moment_are_shown_and_the_others_are_counted() -> None:
    feed, now = console(), NOW.timestamp()
    times = iter([now - 2] * 70 + [now])
    feed.recent = RecentMoments(lambda: next(times))
    for number in range(71):
        feed.recent.add(AT, f"> AT+{number}.")
    part = shown(feed, at=NOW).parts["around"]
    assert '<p class="then"><time datetime="2026-11-22T06:10:02Z">02.0</time>' in part
    assert "AT+70." in part
    assert "11 more, further away" in part


@pytest.mark.parametrize(("minutes", "x"), [(-1, None), (0, "98.39%"), (30, "48.39%"), (60, None)])
def test_the_moment_that_is_opened_is_marked_on_every_chart_of_the_hour(
    minutes: int, x: str | None
) -> None:
    part = shown(console(), at=NOW - timedelta(minutes=minutes)).parts["signal"]
    marked = part.count(f'<line class="cursor" x1="{x}" x2="{x}"')
    assert marked == (0 if x is None else 2 + len(LANES))
    assert part.count("cursor") == marked


def test_the_recording_of_a_stretch_is_a_transcript_without_secrets_and_identities() -> None:
    feed, now = console(), NOW.timestamp()
    times = iter([now - 60, now, now + 1, now + 2, now + 3])
    feed.recent = RecentMoments(lambda: next(times))
    for text in ("> AT", "> AT+CGSN=1", '< +CGSN: "352656100367872"', "< OK", '> AT+CPIN="4711"'):
        feed.recent.add(AT, text)
    text = recording(kit("a"), feed.recent, NOW, None)
    steps = parse_transcript(text).steps
    assert [(step.direction, step.at_s) for step in steps] == [
        (Direction.SENT, 0.0), (Direction.RECEIVED, 1.0), (Direction.RECEIVED, 2.0),
        (Direction.SENT, 3.0),
    ]  # fmt: skip
    assert steps[0].data == b"AT+CGSN=1\r"
    assert "352656100367872" not in text
    assert "4711" not in text
    upto = recording(kit("a"), feed.recent, None, NOW + timedelta(seconds=1))
    assert len(parse_transcript(upto).steps) == 3


def test_the_download_has_no_secret() -> None:
    key = Secret("8444cd3d6e4b8831e351ed76c2b0b1a3").reveal()
    pem = (
        "-----BEGIN ENCRYPTED PRIVATE KEY-----",
        "c2VjcmV0c2VjcmV0",
        "-----END ENCRYPTED PRIVATE KEY-----",
    )
    stored = "uart:~$ settings get mqtt/pass", "in a word"
    printed = ('AT+CPIN="1234"', '+CGSN: "352656100367872"', f"sent with {key}", *pem, *stored,
               "hello")  # fmt: skip
    text = "".join(console_text(console(*printed)))
    assert stored[1] not in text, "which the line before it asked for"
    assert pem[1] not in text, "which is known by the line before it"
    assert "1234" not in text
    assert key not in text, "that of the profile has no name in that line"
    assert "352656100367872" not in text, "nor whose kit it is"
    assert text.endswith("2026-11-22T06:10:02Z hello\n")


def test_each_value_stands_beside_its_own_name() -> None:
    """No two of them are alike: none can stand in another's place unnoticed."""
    reading = Reading(NOW, rsrp_dbm=-97, snr_db=6.0, supply_mv=3710, temperature_c=-4)
    one = kit(
        "a",
        reading=reading,
        history=[reading],
        registration=5,
        restarts=3,
        device_id="the-device",
        imei="the-imei",
        model="the-model",
        firmware="the-firmware",
        application="the-application",
        dialect="at-host",
        cell=Cell(plmn="24201", phys_cell_id=247, band=20),
    )
    one.concern(ConsoleStatus).faults = 2
    one.concern(EventsStatus).next_try = NOW + timedelta(minutes=3)
    one.concern(FotaStatus).last = LastJob("job-1", "SUCCEEDED", "2026-11-22T06:00:00Z", "intact")
    one.concern(LocationStatus).position = LastPosition(
        "2026-11-22T06:09:00Z", "MCELL", 63.4, 10.39, 120.0, None, 2, 0, [], []
    )
    parts = kit_view(one, console(), NOW, Painted()).parts
    assert values_of(parts["facts"]) == {
        "Network": "registered, roaming (5)",
        "Cell": "B20 · PCI 247 · 24201",
        "Power": "3.71 V · −4 °C",
        "Restarts": "3",
        "Crashes": "2",
        "Heartbeat": "next 06:13:02",
        "Position": "MCELL, 06:09:00, ±120 m",
        "Update": "last: SUCCEEDED",
        "Outbox": "empty",
    }
    assert values_of(parts["identity"]) == {
        "Device": "the-device",
        "IMEI": "the-imei",
        "Model": "the-model",
        "Firmware": "the-firmware",
        "Application": "the-application",
        "Port": "/dev/a",
        "Dialect": "at-host",
        "Last update": "SUCCEEDED: intact",
    }
    assert "63.40000, 10.39000, ±120 m by MCELL" in parts["position"]
    assert "RSRP −97 dBm" in parts["signal"]
    assert "SNR 6 dB" in parts["signal"]


def test_a_lane_has_a_bar_for_each_half_minute_with_the_height_and_the_worst_of_it() -> None:
    now = NOW.timestamp()
    recent = RecentMoments(lambda: now)
    for seconds_ago, level in ((3600, ""), (3599, ""), (1800, "warning"), (1799, ""), (0, "error")):
        now = NOW.timestamp() - seconds_ago
        recent.add(CONSOLE, "x", level)
    by_name = dict(zip(LANES, lanes(recent, NOW, None), strict=True))
    bars = re.findall("<rect ([^>]*)", by_name[CONSOLE])
    assert [
        [re.findall(f'{name}="([^"]*)"', bar)[0] for name in ("class", " x", " y", "height")]
        for bar in bars
    ] == [
        ["f-edge", "0.00%", "35%", "65%"],
        ["f-bad", "50.00%", "0%", "100%"],
        ["f-bad", "99.17%", "35%", "65%"],
    ]
    assert 'aria-label="Console: 4 in the last hour, 2 of trouble"' in by_name[CONSOLE]
    assert ">Console 4</text>" in by_name[CONSOLE]
    assert "<rect" not in by_name[AT]
    assert 'aria-label="AT: 0 in the last hour"' in by_name[AT]


def test_a_decision_has_its_date_its_colour_and_what_happened_around_it() -> None:
    now = NOW.timestamp() - 86400
    recent = RecentMoments(lambda: now)
    recent.add(DECISIONS, "gave up", "warning")
    shown = decisions(kit("a"), recent, NOW)
    assert 'href="/kits/a?at=2026-11-21T06:10:02Z#around"' in shown
    assert ">21 Nov 06:10<" in shown
    assert '<span class="attn">gave up</span>' in shown
    assert 'role="region"' in shown


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


def test_the_neighbours_of_the_serving_cell_are_a_table() -> None:
    one = kit("a")
    view = kit_view(one, console(), NOW, Painted())
    assert "None heard" in view.parts["neighbors"]
    one.concern(LocationStatus).neighbors = [HeardCell(6400, 247, -97.0), HeardCell(6400, 8)]
    table = kit_view(one, console(), NOW, Painted()).parts["neighbors"]
    assert "<td>6400</td><td>247</td><td>\N{MINUS SIGN}97</td>" in table
    assert "<td>8</td><td>–</td>" in table


def test_the_stretch_to_download_is_chosen_from_the_hour_that_is_shown() -> None:
    signal = kit_view(kit("a"), console(), NOW, Painted()).parts["signal"]
    assert 'action="/kits/a/recording.txt"' in signal
    assert 'name="from" step="1" value="2026-11-22T05:11:00"' in signal
