from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.daemon.memory import KitMemory
from agent.daemon.positions import distance_m, moved


def at(lat: float, lon: float, uncertainty: float | None = 10.0) -> dict[str, float | None]:
    return {"lat": lat, "lon": lon, "uncertainty": uncertainty}


def test_the_distance_of_two_places_is_what_maps_say():
    # A degree of latitude is 111.2 km on a sphere; of longitude, half of it at 60 degrees north.
    assert distance_m(0, 0, 1, 0) == pytest.approx(111_195, abs=10)
    assert distance_m(60, 0, 60, 1) == pytest.approx(55_597, abs=20)
    assert distance_m(63.4, 10.4, 63.4, 10.4) == 0


@pytest.mark.parametrize(
    ("before", "now", "elsewhere"),
    [
        (None, at(63.4, 10.4), True),
        (at(63.4, 10.4), at(63.4, 10.4), False),
        (at(63.4, 10.4), at(63.4005, 10.4), False),  # 56 m
        (at(63.4, 10.4), at(63.41, 10.4), True),  # 1.1 km
        (at(63.4, 10.4, 1000.0), at(63.41, 10.4, 1000.0), False),
        (at(63.4, 10.4, None), at(63.41, 10.4, None), True),
    ],
)
def test_a_kit_has_moved_if_its_places_are_further_apart_than_uncertain(before, now, elsewhere):
    assert moved(before, now) is elsewhere


def test_what_is_known_of_a_kit_outlives_the_agent_and_damage(tmp_path: Path):
    memory = KitMemory(tmp_path, "left/../../kit")
    memory.learn(device_id="nrf-1", imei="001018340000016")
    memory.add_position(at(63.4, 10.4))
    memory.add_position(at(63.5, 10.4))
    files = sorted((tmp_path / "kits").iterdir())
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]
    assert KitMemory(tmp_path, "left/../../kit").known.device_id == "nrf-1"
    (history,) = [file for file in files if file.suffix == ".jsonl"]
    assert [json.loads(line)["lat"] for line in history.read_text().splitlines()] == [63.4, 63.5]
    (known,) = [file for file in files if file.suffix == ".json"]
    known.write_bytes(b"\x00garbage")
    assert KitMemory(tmp_path, "left/../../kit").known.device_id == ""


def test_the_history_of_positions_is_bounded(tmp_path: Path):
    memory = KitMemory(tmp_path, "kit")
    for number in range(3000):
        memory.add_position({"number": number, "filling": "x" * 1000})
    (history,) = (tmp_path / "kits").glob("*.jsonl")
    lines = history.read_text().splitlines()
    assert history.stat().st_size <= 1024 * 1024
    assert [json.loads(line)["number"] for line in lines][-1] == 2999
