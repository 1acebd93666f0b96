"""What is stored of a kit, and outlives the agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.daemon.kit.store import KitRecord, KitStore, names_of
from agent.errors import AgentError
from agent.observability.ingest.device_identity import PartialIdentity


def at(lat: float, lon: float) -> dict[str, object]:
    return {"lat": lat, "lon": lon, "uncertainty": 10.0}


def test_what_is_known_of_a_kit_outlives_the_agent_and_damage(tmp_path: Path):
    store = KitStore(tmp_path, "lab", "left/../../kit")
    store.update(device_id="nrf-1", imei="001018340000016")
    store.append_position(at(63.4, 10.4))
    store.append_position(at(63.5, 10.4))
    files = sorted((tmp_path / "kits" / "lab").iterdir())
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]
    assert KitStore(tmp_path, "lab", "left/../../kit").record.device_id == "nrf-1"
    (history,) = [file for file in files if file.suffix == ".jsonl"]
    assert [json.loads(line)["lat"] for line in history.read_text().splitlines()] == [63.4, 63.5]
    (known,) = [file for file in files if file.suffix == ".json"]
    known.write_bytes(b"\x00garbage")
    assert KitStore(tmp_path, "lab", "left/../../kit").record.device_id == ""


def test_two_profiles_may_call_their_kits_by_the_same_name(tmp_path: Path):
    of_before = tmp_path / "kits"
    of_before.mkdir(mode=0o700)
    (of_before / "kit.json").write_text('{"imei": "1", "known_id": "of-before"}')
    (of_before / "kit.positions.jsonl").write_text("{}\n")
    first, second = KitStore(tmp_path, "first", "kit"), KitStore(tmp_path, "second", "kit")
    assert (first.record.known_id, second.record) == ("of-before", KitRecord())
    second.update(imei="2", known_id="of-second")
    second.append_position(at(63.4, 10.4))
    assert KitStore(tmp_path, "first", "kit").record == first.record
    assert (of_before / "first" / "kit.positions.jsonl").read_text() == "{}\n"
    assert names_of(tmp_path, "second", "of-before") == PartialIdentity()


def test_what_a_full_disk_did_not_take_of_a_kit_is_stored_when_it_has_room(tmp_path: Path):
    store = KitStore(tmp_path, "lab", "kit")
    in_its_place = tmp_path / "kits" / "lab" / "kit.json"
    in_its_place.mkdir(mode=0o700, parents=True)
    in_its_place.parent.chmod(0o700)
    in_its_place.parent.parent.chmod(0o700)
    with pytest.raises(AgentError):
        store.update(online=True)
    store.update(online=True)  # told once: the link is not to break at each check
    in_its_place.rmdir()
    store.update(online=True)
    assert KitStore(tmp_path, "lab", "kit").record.online
    in_its_place.unlink()
    store.update(online=True)
    assert not in_its_place.exists(), "what the disk has is written no more"


def test_the_history_of_positions_is_bounded(tmp_path: Path):
    store = KitStore(tmp_path, "lab", "kit")
    for number in range(3000):
        store.append_position({"number": number, "filling": "x" * 1000})
    (history,) = (tmp_path / "kits" / "lab").glob("*.jsonl")
    lines = history.read_text().splitlines()
    assert history.stat().st_size <= 1024 * 1024
    assert [json.loads(line)["number"] for line in lines][-1] == 2999


def test_a_command_finds_what_a_kit_s_own_events_have_named(tmp_path: Path) -> None:
    names = PartialIdentity(hardware_version="nrf9151dk", software_type="main")
    KitStore(tmp_path, "lab", "desk").update(known_id="kit-1", names=names)
    KitStore(tmp_path, "lab", "other").update(known_id="kit-2")
    (tmp_path / "kits" / "lab" / "damaged.json").write_text("{")
    assert names_of(tmp_path, "lab", "kit-1") == names
    assert (
        names_of(tmp_path, "lab", "kit-2")
        == names_of(tmp_path, "lab", "kit-3")
        == PartialIdentity()
    )
