"""Who a kit is, as far as is known."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from pathlib import Path

import cbor2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.config.profile import KitSettings
from agent.daemon.kit.first_contact import Contact
from agent.daemon.kit.identity import DOUBT_S, KitIdentity
from agent.daemon.kit.store import IdOrigin, KitStore, record_at
from agent.errors import AgentError
from agent.observability.ingest.chunk_codec import encode
from agent.observability.ingest.device_identity import DeviceIdentity
from at.checkup import Check
from at.firmware_gate import firmware_verdict
from at.ports.usb import SEGGER, UsbPort

IMEI, OTHER = "352656100441776", "352656100441784"


def contact(imei: str, *, device_id: str = "", application: str = "") -> Contact:
    checks = (Check("imei", imei or None, imei), Check("model", "nRF9161-LACA", "nRF9161-LACA"))
    return Contact(
        firmware_verdict("mfw_nrf91x1_2.0.4"), checks, device_id, application=application
    )


def send_event(names: KitIdentity, version: str) -> None:
    event = {2: 1, 3: 1, 7: "own-name", 10: "main", 9: version, 6: "board-1", 4: {}}
    for chunk in encode(b"\x02" + cbor2.dumps(event), 80):
        names.device.observe(chunk)


def at_usb(serial: str) -> UsbPort:
    return UsbPort("/dev/ttyACM0", SEGGER, 0x1055, serial)


AT_PORT = KitSettings(port="/dev/ttyS0")


def names_in(folder: Path, settings: KitSettings = AT_PORT, name: str = "kit") -> KitIdentity:
    """Return the names as the agent has them at its start."""
    return KitIdentity(name, settings, KitStore(folder, "lab", name))


def test_each_thing_that_is_found_out_makes_the_names_more_exact(tmp_path: Path):
    names = names_in(tmp_path, name="left kit")
    assert names.device.identity() == DeviceIdentity(*["unknown"] * 4)
    names.update(contact(IMEI))
    assert names.device.identity() == DeviceIdentity(IMEI, "nrf9161", "unknown", "unknown")
    names.set_usb(at_usb("001050912345"), 0.0)
    names.update(contact(IMEI, application="v1.0.0 (dirty)"))
    assert names.device.identity() == DeviceIdentity(IMEI, "nrf9161dk", "app", "v1.0.0--dirty-")
    send_event(names, "1.0.0+abc")
    assert names.device.identity() == DeviceIdentity(IMEI, "board-1", "main", "1.0.0+abc")


def test_what_was_found_out_survives_a_restart_of_the_agent(tmp_path: Path):
    names = names_in(tmp_path)
    names.update(contact(IMEI))
    send_event(names, "1.0.0")
    assert names_in(tmp_path).device.identity() == DeviceIdentity(IMEI, "board-1", "main", "1.0.0")


def test_after_an_update_or_a_hold_no_version_is_named_that_may_not_run_any_more(tmp_path: Path):
    names = names_in(tmp_path)
    names.update(contact(IMEI, application="v1"))
    send_event(names, "1.0.0")
    names.forget_software()
    assert names.device.identity() == DeviceIdentity(IMEI, "board-1", "main", "unknown")
    names.update(contact(IMEI, application="v2"))
    assert names.device.identity().software_version == "v2"
    send_event(names, "2.0.0+abc")
    assert names.device.identity().software_version == "2.0.0+abc"


def test_another_kit_at_the_same_port_inherits_nothing(tmp_path: Path):
    store = KitStore(tmp_path, "lab", "kit")
    names = KitIdentity("kit", KitSettings(), store)
    names.update(contact(IMEI, device_id="first"))
    send_event(names, "1.0.0")
    place: dict[str, object] = {"lat": 63.4, "lon": 10.4, "uncertainty": 10.0}
    store.update(position=place, reported=place, credentials={16842753: (0,)})
    names.update(contact(OTHER))
    assert names.device.identity() == DeviceIdentity(OTHER, "nrf9161", "unknown", "unknown")
    record = store.record
    assert (record.device_id, record.position, record.reported) == ("", None, None)
    assert not record.credentials


def test_a_kit_that_comes_while_the_disk_is_full_is_told_from_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    names = names_in(tmp_path)
    told: list[str] = []
    names.on_other = lambda: told.append(names.device_id)
    names.update(contact(IMEI))
    monkeypatch.setattr("agent.daemon.kit.store.write_private", full)
    with pytest.raises(AgentError, match="no room"):
        names.update(contact(OTHER))
    assert told == [OTHER]
    names.update(contact(OTHER))
    assert told == [OTHER], "it is the same kit"


ANSWERS = [("", ""), (IMEI, ""), ("", "uuid-1"), (IMEI, "uuid-1")]


@given(answers=st.lists(st.sampled_from(ANSWERS)), own=st.integers(0, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_kit_keeps_its_id_whatever_its_modem_tells_when(
    tmp_path: Path, answers: list[tuple[str, str]], own: int
):
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    first = next((uuid or imei for imei, uuid in answers if imei or uuid), "")
    known = ""
    for turn, (imei, uuid) in enumerate(answers):
        names = names_in(folder)  # after a restart
        if turn == own:
            send_event(names, "1.0.0")
        names.update(contact(imei, device_id=uuid))
        known = known or uuid or imei
        assert names.device.sender == (known or "kit:kit")
        assert names.device.identity().device_serial == (known or "unknown")
    assert known == first


def test_the_id_in_the_profile_goes_before_all_and_is_not_kept_without_it(tmp_path: Path):
    names = names_in(tmp_path, KitSettings(port="/dev/ttyS0", device_id="mine"))
    names.update(contact(IMEI, device_id="mine"))
    assert (names.device_id, names.origin) == ("mine", IdOrigin.PROFILE)
    names = names_in(tmp_path)
    assert (names.device_id, names.origin) == ("", None)
    names.update(contact(IMEI, device_id="uuid-1"))
    assert (names.device_id, names.origin) == ("uuid-1", IdOrigin.UUID)


@pytest.mark.parametrize(
    ("stored", "device_id", "origin"),
    [
        ({"device_id": "uuid-1", "imei": IMEI}, "uuid-1", IdOrigin.UUID),
        ({"imei": IMEI}, IMEI, IdOrigin.IMEI),
        (
            {"device_id": "uuid-1", "imei": IMEI, "names": {"device_serial": "own"}},
            "own",
            IdOrigin.OWN_EVENTS,
        ),
        ({}, "uuid-1", IdOrigin.UUID),
        ({"online": True}, "uuid-1", IdOrigin.UUID),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_kit_keeps_the_id_that_the_state_of_an_earlier_version_knows(
    tmp_path: Path, stored: dict[str, object], device_id: str, origin: IdOrigin
):
    folder = tmp_path / "kits"
    folder.mkdir(mode=0o700)
    (folder / "kit.json").write_text(json.dumps(stored))
    for _ in range(2):
        names = names_in(tmp_path)
        names.update(contact(IMEI, device_id="uuid-1"))
        assert (names.device_id, names.origin) == (device_id, origin)


def test_a_kit_that_usb_tells_to_be_another_has_no_id_until_its_modem_answers(tmp_path: Path):
    told: list[tuple[str, str]] = []
    store = KitStore(tmp_path, "lab", "kit")
    names = KitIdentity("kit", KitSettings(), store, lambda *name: told.append(name))
    names.set_usb(at_usb("001050912345"), 0.0)
    names.update(contact(IMEI, device_id="uuid-1"))
    names.set_usb(at_usb("001050967890"), 0.0)
    assert (names.device_id, names.device.sender) == ("", "kit:kit")
    names.update(contact(OTHER, device_id="uuid-2"))
    assert [device for _, device in told] == ["", "", "uuid-1", "", "uuid-2"]


def test_a_kit_that_nothing_tells_from_another_has_no_id_until_its_modem_answers(tmp_path: Path):
    told: list[str] = []
    names = KitIdentity(
        "kit", AT_PORT, KitStore(tmp_path, "lab", "kit"), lambda _, d: told.append(d)
    )
    names.update(contact(IMEI, device_id="uuid-1"))
    for port_opened in (lambda: names.doubt(10.0), lambda: names.set_usb(None, 11.0)):
        assert names.device.sender == "uuid-1"
        told.clear()
        port_opened()
        assert (names.device_id, names.device.sender, told) == ("", "kit:kit", [""])
        names.update(contact(IMEI, device_id="uuid-1"))
        assert told == ["", "uuid-1"]


def test_a_kit_whose_modem_stays_silent_is_the_one_of_before_in_the_end(tmp_path: Path):
    names = names_in(tmp_path)
    names.update(contact(IMEI, device_id="uuid-1"))
    names.doubt(10.0)
    names.doubt(200.0)  # its port is opened again and again
    assert not names.end_old_doubt(9.0 + DOUBT_S)
    assert names.device_id == ""
    assert names.end_old_doubt(10.0 + DOUBT_S)
    names.doubt(20.0 + DOUBT_S)
    assert not names.end_old_doubt(30.0 + 2 * DOUBT_S)
    assert names.device_id == "uuid-1"
    names.update(contact(IMEI, device_id="uuid-1"))
    names.doubt(40.0 + 2 * DOUBT_S)
    assert names.device_id == "", "it had answered again, and may have been changed since"


def test_the_id_in_the_profile_is_never_in_doubt(tmp_path: Path):
    names = names_in(tmp_path, KitSettings(port="/dev/ttyS0", device_id="mine"))
    names.update(contact(IMEI, device_id="mine"))
    names.doubt(10.0)
    assert (names.device_id, names.device.sender) == ("mine", "mine")


def test_a_console_finds_the_id_of_its_kit_by_usb_or_by_its_port(tmp_path: Path):
    left, right = KitSettings(port="/dev/ttyACM0"), KitSettings(port="/dev/ttyS1")
    names = names_in(tmp_path, left, "left")
    names.set_usb(at_usb("001050912345"), 0.0)
    names.update(contact(IMEI, device_id="uuid-1"))
    names_in(tmp_path, right, "right").update(contact(OTHER, device_id="uuid-2"))

    def known_id_at(port: str, serial: str = "") -> str | None:
        record = record_at(tmp_path / "kits", port, at_usb(serial) if serial else None)
        return record and record.known_id

    assert known_id_at("/dev/ttyACM7", "001050912345") == "uuid-1"
    assert known_id_at("/dev/ttyS1") == "uuid-2"
    assert known_id_at("/dev/ttyACM0", "001050967890") is None, "another kit"
    assert known_id_at("/dev/ttyS9") is None
    names_in(tmp_path, right, "a-name-since").update(contact(IMEI, device_id="uuid-3"))
    before = tmp_path / "kits" / "lab" / "right.json"
    os.utime(before, (0, 0))
    assert known_id_at("/dev/ttyS1") == "uuid-3", "the kit of before has another name, or is gone"
    (before.parent / "gone.json").symlink_to("nowhere")
    assert known_id_at("/dev/ttyACM7", "001050912345") == "uuid-1", "one that cannot be read"
