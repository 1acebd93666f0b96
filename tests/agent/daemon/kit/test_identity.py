"""Who a kit is, as far as is known, and what outlives the agent."""

from __future__ import annotations

import json
from pathlib import Path

import cbor2

from agent.config.profile import KitSettings
from agent.daemon.kit.first_contact import Contact
from agent.daemon.kit.identity import KitIdentity, KitStore
from agent.observability.ingest.chunk_codec import encode
from agent.observability.ingest.device_identity import DeviceIdentity
from at.checkup import Check
from at.firmware_gate import firmware_verdict
from at.ports.usb import MODELS

IMEI, OTHER = "352656100441776", "352656100441784"


def contact(imei: str, *, device_id: str = "", application: str = "") -> Contact:
    checks = (Check("imei", imei, imei), Check("model", "nRF9161-LACA", "nRF9161-LACA"))
    return Contact(
        firmware_verdict("mfw_nrf91x1_2.0.4"), checks, device_id, application=application
    )


def send_event(names: KitIdentity, version: str) -> None:
    event = {2: 1, 3: 1, 7: IMEI, 10: "main", 9: version, 6: "board-1", 4: {}}
    for chunk in encode(b"\x02" + cbor2.dumps(event), 80):
        names.device.observe(chunk)


def test_each_thing_that_is_found_out_makes_the_names_more_exact(tmp_path: Path):
    names = KitIdentity("left kit", KitSettings, KitStore(tmp_path, "left kit"))
    assert names.device.identity() == DeviceIdentity("left-kit", "unknown", "unknown", "unknown")
    names.update(contact(IMEI))
    assert names.device.identity() == DeviceIdentity(IMEI, "nrf9161", "unknown", "unknown")
    names.set_usb_model(next(model for model in MODELS if model.name == "nRF9161 DK"))
    names.update(contact(IMEI, application="v1.0.0 (dirty)"))
    assert names.device.identity() == DeviceIdentity(IMEI, "nrf9161dk", "app", "v1.0.0--dirty-")
    send_event(names, "1.0.0+abc")
    assert names.device.identity() == DeviceIdentity(IMEI, "board-1", "main", "1.0.0+abc")


def test_what_was_found_out_survives_a_restart_of_the_agent(tmp_path: Path):
    names = KitIdentity("kit", KitSettings, KitStore(tmp_path, "kit"))
    names.update(contact(IMEI))
    send_event(names, "1.0.0")
    again = KitIdentity("kit", KitSettings, KitStore(tmp_path, "kit"))
    assert again.device.identity() == DeviceIdentity(IMEI, "board-1", "main", "1.0.0")


def test_after_an_update_or_a_hold_no_version_is_named_that_may_not_run_any_more(tmp_path: Path):
    names = KitIdentity("kit", KitSettings, KitStore(tmp_path, "kit"))
    names.update(contact(IMEI, application="v1"))
    send_event(names, "1.0.0")
    names.forget_software()
    assert names.device.identity() == DeviceIdentity(IMEI, "board-1", "main", "unknown")
    names.update(contact(IMEI, application="v2"))
    assert names.device.identity().software_version == "v2"
    send_event(names, "2.0.0+abc")
    assert names.device.identity().software_version == "2.0.0+abc"


def test_another_kit_at_the_same_port_inherits_nothing(tmp_path: Path):
    store = KitStore(tmp_path, "kit")
    names = KitIdentity("kit", KitSettings, store)
    names.update(contact(IMEI, device_id="first"))
    send_event(names, "1.0.0")
    names.update(contact(OTHER))
    assert names.device.identity() == DeviceIdentity(OTHER, "nrf9161", "unknown", "unknown")
    assert store.record.device_id == ""


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
