from __future__ import annotations

import json
from pathlib import Path

from agent.daemon.kit.identity import KitStore


def at(lat: float, lon: float) -> dict[str, object]:
    return {"lat": lat, "lon": lon, "uncertainty": 10.0}


def test_what_is_known_of_a_kit_outlives_the_agent_and_damage(tmp_path: Path):
    store = KitStore(tmp_path, "left/../../kit")
    store.update(device_id="nrf-1", imei="001018340000016")
    store.append_position(at(63.4, 10.4))
    store.append_position(at(63.5, 10.4))
    files = sorted((tmp_path / "kits").iterdir())
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]
    assert KitStore(tmp_path, "left/../../kit").record.device_id == "nrf-1"
    (history,) = [file for file in files if file.suffix == ".jsonl"]
    assert [json.loads(line)["lat"] for line in history.read_text().splitlines()] == [63.4, 63.5]
    (known,) = [file for file in files if file.suffix == ".json"]
    known.write_bytes(b"\x00garbage")
    assert KitStore(tmp_path, "left/../../kit").record.device_id == ""


def test_the_history_of_positions_is_bounded(tmp_path: Path):
    store = KitStore(tmp_path, "kit")
    for number in range(3000):
        store.append_position({"number": number, "filling": "x" * 1000})
    (history,) = (tmp_path / "kits").glob("*.jsonl")
    lines = history.read_text().splitlines()
    assert history.stat().st_size <= 1024 * 1024
    assert [json.loads(line)["number"] for line in lines][-1] == 2999
