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
    assert "RSRP, dBm, the hour up to 2026-11-22" in text
