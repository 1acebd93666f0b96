"""Levels fall with the distance, and the kit moves along its path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.levels import rsrp_to_dbm
from at.virtual.radio_world import Coordinates, MeasuredCell, load_world


def test_the_kit_moves_along_its_path_and_back() -> None:
    world = load_world()
    places = [world.position(60.0 * step) for step in range(21)]
    assert places[0] == places[20]
    assert len(set(places)) == 11
    assert places[:11] == places[10:][::-1]


@given(north_m=st.floats(0, 20_000), east_m=st.floats(0, 20_000))
def test_what_is_in_range_is_sorted_by_level_and_above_the_floor(
    north_m: float, east_m: float
) -> None:
    world = load_world()
    start = world.position(0.0)
    where = Coordinates(start.lat + north_m / 111_195, start.lon + east_m / 50_000)
    cells = world.cells(where)
    assert [one.rsrp_dbm for one in cells] == sorted((one.rsrp_dbm for one in cells), reverse=True)
    points = world.access_points(where)
    assert [one.rssi_dbm for one in points] == sorted(
        (one.rssi_dbm for one in points), reverse=True
    )


@given(level=st.integers(-160, -40))
def test_levels_become_indices_of_the_standard(level: int) -> None:
    cell = load_world().cells(load_world().position(0.0))[0].cell
    measured = MeasuredCell(cell, level, 100.0)
    assert -16 <= measured.rsrp_index <= 97
    assert measured.rsrp_index != 0
    assert 1 <= measured.rsrq_index <= 34
    assert rsrp_to_dbm(measured.rsrp_index) == max(-156, min(-44, level))
    assert 0 <= measured.snr_index <= 49


@pytest.mark.parametrize(("distance_m", "advance"), [(0.0, 0), (78.0, 16), (1e9, 20512)])
def test_the_timing_advance_is_the_round_trip_in_steps_of_16(
    distance_m: float, advance: int
) -> None:
    cell = load_world().cells(load_world().position(0.0))[0].cell
    assert MeasuredCell(cell, -90, distance_m).timing_advance == advance
