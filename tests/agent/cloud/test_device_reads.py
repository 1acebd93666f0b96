"""The calls of the device cloud against the stand-in, over a real socket."""

from __future__ import annotations

import pytest

from agent.cloud import DeviceCloud
from agent.cloud.conventions import path_segment
from agent.cloud.device_reads import Filter
from agent.errors import NotFound, UsageError
from agent.standin.device_cloud import seed
from tests.support.cloud.standin_clients import listed


@pytest.mark.contract("D2.1", "D2.2", "D2.3", "D4.1", "D5.1", "D5.3")
async def test_devices_of_every_type_and_form_of_id_are_read(cloud: DeviceCloud) -> None:
    found = {device.id: device for device in await listed(cloud.devices())}
    assert found.keys() == {seed.GATEWAY, seed.BLE, seed.GENERIC, seed.FREE_FORM}
    assert {device.type for device in found.values()} == {"BLE", "Gateway", "Generic"}
    for device_id, listing in found.items():
        device = await cloud.device(device_id)
        assert device.id == device_id
        assert device.version == listing.version
        assert device.version
        assert device.tenant_id
        assert device.updated_at is not None
        assert device.updated_at.tzinfo is not None
        assert "cloudMqttEnabled" in device.raw or device.type == "BLE"
    ble = found[seed.BLE]
    assert (ble.sub_type, ble.gateway_id, ble.tags, ble.supports) == (
        "unknown",
        seed.GATEWAY,
        (),
        (),
    )
    assert found[seed.GATEWAY].sub_type is None
    assert found[seed.GENERIC].supports == ("APP", "MODEM")


@pytest.mark.contract("D4.1", "D4.2", "D4.3")
@pytest.mark.parametrize(
    ("chosen", "sent"),
    [
        (Filter(), []),
        (
            Filter(device_types=["BLE", "Generic"]),
            [("deviceTypes", "BLE"), ("deviceTypes", "Generic")],
        ),
        (Filter(device_ids=["a", "b"]), [("deviceIds", "a"), ("deviceIds", "b")]),
        (Filter(tags=["left"]), [("tags", "left")]),
        (Filter(sub_types=["unknown"]), [("subTypes", "unknown")]),
        (Filter(firmware_support=["APP"]), [("firmwareSupport", "APP")]),
        (Filter(gateway_id="g"), [("gatewayId", "g")]),
        (Filter(name_like="bench"), [("deviceNameFuzzy", "bench")]),
    ],
)
def test_a_filter_sends_what_was_chosen_and_nothing_else(
    chosen: Filter, sent: list[tuple[str, str]]
) -> None:
    assert chosen.query() == sent


@pytest.mark.contract("D4.1", "D4.6")
async def test_the_state_of_listed_devices_comes_where_it_was_asked_for(cloud: DeviceCloud) -> None:
    without = await listed(cloud.devices())
    assert not any(device.state for device in without)
    with_state = {device.id: device for device in await listed(cloud.devices(include_state=True))}
    assert with_state[seed.GATEWAY].connected_ids == (seed.BLE,)


@pytest.mark.contract("D2.4", "D3.2")
async def test_gateway_and_ble_device_are_walked_both_ways(cloud: DeviceCloud) -> None:
    gateway = await cloud.device(seed.GATEWAY)
    assert gateway.reported["name"] == "Bench gateway"
    assert gateway.connected_ids == (seed.BLE,)
    ble = await cloud.device(gateway.connected_ids[0])
    assert ble.gateway_id == gateway.id
    assert ble.connected_ids == ()


@pytest.mark.contract("D2.2")
@pytest.mark.parametrize(
    "device_id", ["a b", "ü/x", "50%", "a?b#c", "nrf-1", "DE:AD", "+", "a;b", "a\u00a0b"]
)
async def test_any_id_is_quoted_into_one_segment(cloud: DeviceCloud, device_id: str) -> None:
    with pytest.raises(NotFound) as caught:
        await cloud.device(device_id)
    assert caught.value.code in {40410, 40420}
    assert "/" not in path_segment(device_id, "id")


@pytest.mark.parametrize("device_id", ["", ".", "..", "a\r\nX: 1", "\x00", "\ud83d"])
async def test_what_cannot_be_a_segment_is_refused_before_it_is_sent(
    cloud: DeviceCloud, device_id: str
) -> None:
    with pytest.raises(UsageError, match="cannot be a device id"):
        await cloud.device(device_id)
