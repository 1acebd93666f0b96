"""Charts: what is drawn where, gaps that stay gaps, and what is told to who cannot see them."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.daemon.snapshot import LastPosition, Place, Reading
from agent.page.charts import RSRP, SNR, plan, quality, signal, signal_file
from tests.support.page.statuses import NOW


def readings(*values: int | None) -> list[Reading]:
    """Return a reading a minute, the last of them now."""
    return [
        Reading(NOW - timedelta(minutes=len(values) - 1 - n), rsrp_dbm=value)
        for n, value in enumerate(values)
    ]


def lines(markup: str) -> list[str]:
    return re.findall(r'points="([^"]*)"', markup)


def test_the_range_is_fixed_and_the_newest_is_at_the_right() -> None:
    (line,) = lines(signal(RSRP, readings(-70, -135), NOW))
    assert line == "3540,0.0 3600,100.0"
    assert 'y1="69.2%"' in signal(RSRP, [], NOW), "the limit is at −115 dBm"


def test_what_is_out_of_range_is_at_its_edge() -> None:
    (line,) = lines(signal(RSRP, readings(-20, -156), NOW))
    assert [point.split(",")[1] for point in line.split()] == ["0.0", "100.0"]


def test_a_gap_stays_a_gap_and_a_lone_point_is_drawn() -> None:
    found = lines(signal(RSRP, readings(-90, -91, None, -92), NOW))
    assert [len(line.split()) for line in found] == [2, 2]
    apart = [readings(-90)[0], Reading(NOW + timedelta(minutes=9), rsrp_dbm=-90)]
    assert len(lines(signal(RSRP, apart, NOW + timedelta(minutes=9)))) == 2


def drawn_in(markup: str, name: str) -> list[dict[str, str]]:
    """Return the attributes of each element of a name, in their order, and its text as `""`."""
    elements = ET.fromstring(markup).iter(name)
    return [{**each.attrib, "": each.text or ""} for each in elements]


def percent(text: str) -> float:
    assert text.endswith("%")
    return float(text[:-1])


def test_the_bands_lie_one_below_the_other_over_the_whole_height_and_are_named() -> None:
    markup = signal(RSRP, [], NOW, axis=True)
    bands, texts = drawn_in(markup, "rect"), drawn_in(markup, "text")
    assert [each["class"] for each in bands] == ["q1", "q2", "q3", "q4", "q5"]
    below = 0.0
    for band in bands:
        assert percent(band["y"]) == pytest.approx(below, abs=0.11)
        assert band["width"] == "100%"
        below = percent(band["y"]) + percent(band["height"])
    assert below == pytest.approx(100, abs=0.11)
    words = [each[""] for each in texts]
    assert words[:5] == ["excellent −80", "good −90", "acceptable −100", "poor −110", "very poor"]
    assert [each["y"] for each in texts[:5]] == [each["y"] for each in bands]
    # The limit crosses the last band: its word lies below that line, whose own stands above it.
    assert [each["dy"] for each in texts[:5]] == ["1.2em"] * 4 + ["2.8em"]
    (limit,) = [each for each in drawn_in(markup, "line") if each["class"] == "lim"]
    assert (words[5], texts[5]["y"], texts[5]["dy"]) == ("weak below −115", limit["y1"], "-0.3em")
    assert drawn_in(signal(RSRP, [], NOW), "text") == []
    (band,) = drawn_in(signal(SNR, [], NOW, axis=True), "rect")
    assert (band["width"], band["height"]) == ("100%", "100%")


def test_each_quarter_of_the_hour_has_its_line_and_its_time() -> None:
    markup = signal(RSRP, [], NOW, axis=True)
    grid = [each for each in drawn_in(markup, "line") if each["class"] == "grid"]
    assert [(each["x1"], each["x2"], each["y1"], each["y2"]) for each in grid] == [
        (x, x, "0", "100%") for x in ("25%", "50%", "75%")
    ]
    times = drawn_in(markup, "text")[-3:]
    assert [(each[""], each["x"], each["y"]) for each in times] == [
        ("05:25", "25%", "97%"), ("05:40", "50%", "97%"), ("05:55", "75%", "97%"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("minutes", "x"), [(0, "100.00%"), (15, "75.00%"), (60, "0.00%"), (61, None), (-1, None)]
)
def test_a_moment_is_marked_where_it_lies_in_the_hour(minutes: int, x: str | None) -> None:
    markup = signal(SNR, [], NOW, at=NOW - timedelta(minutes=minutes))
    marks = [each for each in drawn_in(markup, "line") if each["class"] == "cursor"]
    assert [(each["x1"], each["x2"]) for each in marks] == ([] if x is None else [(x, x)])


def test_what_is_older_than_the_hour_is_left_out() -> None:
    assert lines(signal(RSRP, readings(-90), NOW + timedelta(hours=2))) == []


def test_a_chart_is_told_in_words() -> None:
    told = signal(RSRP, readings(-90, -97), NOW)
    assert 'aria-label="RSRP over the last hour: −97 to −90, newest −97 dBm"' in told
    assert "nothing heard" in signal(SNR, [], NOW)


@pytest.mark.parametrize(
    ("dbm", "word"),
    [(-80, "excellent"), (-81, "good"), (-100, "acceptable"), (-110, "poor"), (-111, "very poor")],
)
def test_a_level_has_a_word(dbm: int, word: str) -> None:
    assert quality(dbm) == word
    assert quality(None) == "not heard"


def position(lat: float, lon: float, uncertainty: float | None) -> LastPosition:
    return LastPosition(NOW.isoformat(), "Wi-Fi", lat, lon, uncertainty, None, 0, 7, [], [])


@given(
    lat=st.floats(-89, 89),
    lon=st.floats(-180, 180),
    uncertainty=st.none() | st.floats(0, 1e6),
    east=st.floats(-5, 5),
)
def test_any_position_is_drawn_with_a_round_scale(
    lat: float, lon: float, uncertainty: float | None, east: float
) -> None:
    drawn = plan(position(lat, lon, uncertainty), [Place(lat, lon + east), Place(lat, lon)])
    (scale,) = re.findall(r">(\d+) k?m</text>", drawn)
    mantissa = float(scale) / 10 ** math.floor(math.log10(float(scale)))
    assert round(mantissa, 6) in {1, 2, 5}
    assert "nan" not in drawn
    assert drawn.count("M") < 500, "the grid has few lines"


def test_a_position_lies_in_the_middle_with_its_uncertainty_its_scale_and_its_way() -> None:
    markup = plan(position(50, 10, 100 / 0.7), [Place(50.0005, 10.0010), Place(50, 10)])
    (around,) = drawn_in(markup, "circle")
    assert (around["cx"], around["cy"], float(around["r"])) == ("0", "0", pytest.approx(100 / 0.7))
    (way,) = drawn_in(markup, "polyline")
    assert way["points"] == "71.6,-55.7 0.0,-0.0", "east to the right, north to the top"
    inner = drawn_in(markup, "svg")[1]
    assert inner["viewBox"] == "-200 -200 400 400"
    (grid,) = [each for each in drawn_in(markup, "path") if each["class"] == "grid"]
    assert re.findall("M(-?[0-9]+) -200V200", grid["d"]) == ["-200", "-100", "0", "100", "200"]
    assert re.findall("M-200 (-?[0-9]+)H200", grid["d"]) == ["-200", "-100", "0", "100", "200"]
    scale, told = drawn_in(markup, "text")
    assert (scale[""], told[""]) == ("100 m", "±143 m")
    assert (percent(scale["y"]), percent(told["y"])) == (96, 14), "below, and above"
    assert "Position by Wi-Fi, ±143 m" in markup
    unknown = plan(position(50, 10, None))
    assert "Position by Wi-Fi, uncertainty not known" in unknown
    assert (len(drawn_in(unknown, "text")), drawn_in(unknown, "circle")[0]["r"]) == (1, "0")


def test_a_way_over_the_date_line_is_short() -> None:
    (way,) = lines(plan(position(0, 179.9999, 9), [Place(0, -179.9999)]))
    assert abs(float(way.split(",")[0])) < 100


def test_without_a_position_it_says_so() -> None:
    assert "No position yet" in plan(None)
    assert ">no position</text>" in plan(None), "for who sees it, too"


def test_the_file_of_a_signal_is_a_picture_by_itself() -> None:
    text = signal_file(readings(-80, -90, -100), NOW)
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    (line,) = [each for each in root.iter() if each.tag.endswith("polyline")]
    assert line.get("stroke")
    assert {each.get("class") for each in root.iter()} <= {None, "ch rsrp tall", "ch snr tall"}
    titles = [each for each in root if (each.text or "").endswith("2026-11-22 06:10 UTC")]
    charts = [each for each in root if each.tag.endswith("svg")]
    assert [title.text.partition(",")[0] for title in titles if title.text] == ["RSRP", "SNR"]
    below = 0
    for title, chart in zip(titles, charts, strict=True):
        assert below < int(title.get("y", "")) < int(chart.get("y", "")), "one below the other"
        assert int(chart.get("x", "")) == int(title.get("x", "")) > 0
        assert int(chart.get("x", "")) + int(chart.get("width", "")) < int(root.get("width", ""))
        below = int(chart.get("y", "")) + int(chart.get("height", ""))
    assert below < int(root.get("height", ""))
    (white,) = [each for each in root if each.tag.endswith("rect")]
    assert (white.get("width"), white.get("height"), white.get("fill")) == (
        "100%", "100%", "#ffffff",
    )  # fmt: skip
