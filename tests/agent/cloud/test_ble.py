from __future__ import annotations

from typing import Any

import pytest

from agent.cloud import Device, DeviceCloud
from agent.errors import BadAnswer, NotFound, UsageError
from agent.standin.device_cloud import seed


@pytest.mark.contract("D3.1", "D3.4", "D3.5")
async def test_a_ble_devices_state_is_typed(cloud: DeviceCloud) -> None:
    ble = await cloud.device(seed.BLE)
    led = ble.characteristic(seed.LED_CHARACTERISTIC)
    assert led.value == b"\x01\x00"
    assert led is not None
    assert led.path == f"{seed.LED_SERVICE}/{seed.LED_CHARACTERISTIC}"
    assert ble.characteristic(led.path.lower()).uuid == seed.LED_CHARACTERISTIC
    assert led.properties == {"read", "write"}
    assert not led.can("notify")
    assert led.descriptors == {}
    button = ble.characteristic(seed.BUTTON_CHARACTERISTIC)
    assert button.value == b""
    assert button.can("notify")
    assert not button.can("write")
    assert button.descriptors["2902"].value == b"\x00\x00"
    assert button.descriptors["2902"].path == f"{button.path}/2902"
    with pytest.raises(NotFound, match="no characteristic 'FFFF'"):
        ble.characteristic("FFFF")


@pytest.mark.contract("D3.1", "D3.3", "D3.5")
def test_what_an_answer_tells_of_itself_precedes_the_keys_that_it_stands_under() -> None:
    told = {"uuid": "D-UUID", "path": "its/own/path", "value": [1]}
    characteristic = {"uuid": "C-UUID", "path": "c/path", "value": [2], "descriptors": {"d": told}}
    for raw, (uuid, path, d_uuid, d_path) in (
        (characteristic, ("C-UUID", "c/path", "D-UUID", "its/own/path")),
        ({"descriptors": {"d": {}}}, ("c", "s/c", "d", "s/c/d")),
    ):
        state: dict[str, Any] = {"s": {"characteristics": {"c": raw}}}
        ble = Device.of({"id": "a", "type": "BLE", "state": state})
        found = ble.characteristic(path)
        assert (found.uuid, found.path) == (uuid, path)
        assert (found.descriptors["d"].uuid, found.descriptors["d"].path) == (d_uuid, d_path)


@pytest.mark.contract("D3.3", "D6")
@pytest.mark.parametrize(
    ("leds", "value"),
    [
        ({1}, b"\x01\x00"),
        ({2}, b"\x02\x00"),
        ({3}, b"\x04\x00"),
        ({4}, b"\x08\x00"),
        ({3, 4}, bytes([12, 0])),
        ({2, 4}, bytes([10, 0])),
    ],
)
async def test_the_leds_of_the_demo_application_are_a_bit_mask(
    cloud: DeviceCloud, leds: set[int], value: bytes
) -> None:
    mask = sum(1 << (led - 1) for led in leds)
    before = await cloud.device(seed.BLE)
    await cloud.write(seed.BLE, seed.LED_CHARACTERISTIC, bytes([mask, 0]), version=before.version)
    assert await cloud.characteristic_value(seed.BLE, seed.LED_CHARACTERISTIC) == value
    after = await cloud.device(seed.BLE)
    assert after.characteristic(seed.LED_CHARACTERISTIC).value == value
    assert after.version != before.version


@pytest.mark.contract("D6")
async def test_a_value_of_every_byte_is_written_whole(cloud: DeviceCloud) -> None:
    await cloud.write(seed.BLE, seed.LED_CHARACTERISTIC, bytes(range(256)))
    written = await cloud.characteristic_value(seed.BLE, seed.LED_CHARACTERISTIC)
    assert written == bytes(range(256))


@pytest.mark.contract("D3.1")
@pytest.mark.parametrize("value", [[256], [-1], ["a"], "AAA=", [1.5], [True], None, {}])
def test_a_value_that_is_no_list_of_bytes_is_named(value: Any) -> None:
    state = {"other": {}, "180F": {"characteristics": {"2A19": {"value": value}}}}
    device = Device.of({"id": "a", "state": state})
    with pytest.raises(BadAnswer, match="180F/2A19 is no list of bytes"):
        device.characteristic("2A19")


def test_a_characteristic_that_two_services_have_is_named_by_its_path() -> None:
    both = {"characteristics": {"c": {"properties": {"notify": True, "write": 1}}}}
    device = Device.of({"id": "a", "state": {"s": both, "t": both}})
    found = device.characteristic("T/C")
    assert (device.wire_id(found), found.properties) == ("t/c", frozenset({"notify"}))
    with pytest.raises(UsageError, match="ambiguous: s/c, t/c"):
        device.characteristic("c")
    with pytest.raises(NotFound, match="there are: s/c, t/c"):
        device.characteristic("d")
    alone = Device.of({"id": "a", "state": {"s": both}})
    assert alone.wire_id(alone.characteristic("c")) == "c"
