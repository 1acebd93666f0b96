"""The calls of the device cloud against the stand-in, over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from standin import StandIn

from agent.auth.bearer import ApiKey
from agent.auth.credential import Keyring
from agent.call import Host
from agent.cloud import Device, DeviceCloud, Filter
from agent.cloud.changes import UpdateDeviceName
from agent.cloud.device import moment, segment
from agent.config.secrets import Secret
from agent.errors import (
    BadAnswer,
    DeadlineExceeded,
    Forbidden,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    Unauthorized,
    UsageError,
)
from agent.http import HttpClient, HttpTransport
from agent.standin.device_cloud import seed


def client_of(standin: StandIn, key: str = "") -> HttpClient:
    credential = ApiKey(Secret(key or standin.credentials["api_key"]))
    hosts = {Host.DEVICE_CLOUD: standin.urls["device_cloud"]}
    return HttpClient(HttpTransport(), hosts, Keyring([credential]))


@pytest.fixture
async def cloud(standin: StandIn) -> AsyncIterator[DeviceCloud]:
    async with client_of(standin) as client:
        yield DeviceCloud(client)


async def listed(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


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


@pytest.mark.contract("D2.4", "D3.2")
async def test_gateway_and_ble_device_are_walked_both_ways(cloud: DeviceCloud) -> None:
    gateway = await cloud.device(seed.GATEWAY)
    assert gateway.reported["name"] == "Bench gateway"
    assert gateway.connected_ids == (seed.BLE,)
    ble = await cloud.device(gateway.connected_ids[0])
    assert ble.gateway_id == gateway.id
    assert ble.connected_ids == ()


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


@pytest.mark.contract("D4.2", "D4.3", "D4.4", "D4.6", "D5.1")
async def test_a_transform_is_sent_as_it_is_and_its_nulls_are_kept(cloud: DeviceCloud) -> None:
    everything = await listed(cloud.devices())
    ids = await listed(cloud.transformed_devices("id"))
    assert ids == [device.id for device in everything]
    only_ble = await listed(cloud.transformed_devices("type = 'BLE' ? id"))
    assert only_ble.count(None) == len(everything) - 1
    assert seed.BLE in only_ble
    named = await listed(cloud.transformed_devices("""{'the id': id, "v & w": $meta.version}"""))
    assert [list(each) for each in named] == [["the id", "v & w"]] * len(everything)
    one = await cloud.transformed(seed.BLE, "state.*.characteristics.*.uuid")
    assert set(one.value) == {seed.LED_CHARACTERISTIC, seed.BUTTON_CHARACTERISTIC}
    assert one.version == (await cloud.device(seed.BLE)).version
    assert (await cloud.transformed(seed.GENERIC, "type = 'BLE' ? id")).value is None
    filtered = await listed(cloud.devices(Filter(device_types=("BLE",))))
    assert [device.id for device in filtered] == [seed.BLE]
    for bad in ("{{", "$nosuch("):
        with pytest.raises(InvalidRequest):
            await cloud.transformed(seed.BLE, bad)


@pytest.mark.contract("D5.2", "D9.1")
async def test_a_change_may_depend_on_the_version(cloud: DeviceCloud) -> None:
    device = await cloud.device(seed.GENERIC)
    await cloud.rename(seed.GENERIC, "first", version=device.version)
    with pytest.raises(PreconditionFailed) as caught:
        await cloud.rename(seed.GENERIC, "second", version=device.version)
    assert caught.value.status == 412
    renamed = await cloud.device(seed.GENERIC)
    assert renamed.name == "first"
    assert renamed.version != device.version
    await cloud.rename(seed.GENERIC, "third")
    for change in (
        cloud.set_tags(seed.GENERIC, ["a"], version=device.version),
        cloud.update_state(seed.GENERIC, desired={"x": 1}, version=device.version),
        cloud.delete(seed.GENERIC, version=device.version),
        cloud.write(seed.BLE, seed.LED_CHARACTERISTIC, b"\0\0", version="stale"),
    ):
        with pytest.raises(PreconditionFailed):
            await change


@pytest.mark.contract("D5.2")
async def test_read_change_write_reads_again_where_somebody_was_faster(cloud: DeviceCloud) -> None:
    seen: list[str | None] = []
    rivals = iter(["rival 1", "rival 2"])

    async def rival() -> None:
        for name in rivals:
            await cloud.rename(seed.GENERIC, name)
            return

    original = cloud.device

    async def device_then_rival(device_id: str) -> Device:
        device = await original(device_id)
        await rival()
        return device

    cloud.device = device_then_rival  # type: ignore[method-assign]

    def decide(device: Device) -> UpdateDeviceName:
        seen.append(device.name)
        return UpdateDeviceName(device.id, "mine", device.version)

    await cloud.change(seed.GENERIC, decide)
    assert seen == [seed.GENERIC, "rival 1", "rival 2"]
    assert (await original(seed.GENERIC)).name == "mine"
    assert await cloud.change(seed.GENERIC, lambda device: None)


@pytest.mark.contract("D5.2")
async def test_read_change_write_gives_up_after_its_tries(cloud: DeviceCloud) -> None:
    asked = 0

    def decide(device: Device) -> UpdateDeviceName:
        nonlocal asked
        asked += 1
        return UpdateDeviceName(device.id, "mine", "never this")

    with pytest.raises(PreconditionFailed):
        await cloud.change(seed.GENERIC, decide, tries=3)
    assert asked == 3


async def test_tags_and_state_are_changed_and_null_deletes(cloud: DeviceCloud) -> None:
    await cloud.set_tags(seed.GENERIC, ["bench", "left"])
    await cloud.update_state(seed.GENERIC, desired={"a": {"b": 1, "c": 2}})
    await cloud.update_state(seed.GENERIC, desired={"a": {"b": None}})
    device = await cloud.device(seed.GENERIC)
    assert device.tags == ("bench", "left")
    assert device.state["desired"]["a"] == {"c": 2}
    await cloud.delete(seed.FREE_FORM)
    with pytest.raises(NotFound):
        await cloud.device(seed.FREE_FORM)


@pytest.mark.contract("D7")
async def test_discover_then_wait_until_the_state_is_new(
    cloud: DeviceCloud, standin: StandIn
) -> None:
    standin.cloud.settings.discover_s = 3
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        standin.clock.advance(seconds)

    patient = DeviceCloud(cloud.client, sleep=sleep, monotonic=lambda: sum(slept))
    before = await cloud.device(seed.BLE)
    after = await patient.discover_and_wait(seed.GATEWAY, seed.BLE)
    assert 3 <= sum(slept) < 10
    assert after.version != before.version
    assert after.services.keys() > before.services.keys()
    standin.cloud.settings.discover_s = 10_000
    with pytest.raises(DeadlineExceeded, match="did not change within 20 s"):
        await patient.discover_and_wait(seed.GATEWAY, seed.BLE, deadline_s=20)


@pytest.mark.contract("D4.1")
async def test_a_fleet_is_walked_page_by_page(standin: StandIn) -> None:
    standin.cloud.settings.devices = 1100
    async with client_of(standin) as client:
        count = 0
        async for _ in DeviceCloud(client).devices():
            count += 1
    assert count == 1104


@pytest.mark.contract("D10.1", "D10.10")
async def test_a_refused_key_and_a_refused_role_are_told_apart(standin: StandIn) -> None:
    async with client_of(standin, "no-such-key") as client:
        with pytest.raises(Unauthorized) as unknown:
            await DeviceCloud(client).device(seed.GENERIC)
    assert "account page" in unknown.value.hint
    viewer = next(
        record["key"]
        for record in standin.cloud.table("api_keys").values()
        if record["role"] == "viewer"
    )
    async with client_of(standin, viewer) as client:
        assert (await DeviceCloud(client).device(seed.GENERIC)).id == seed.GENERIC
        with pytest.raises(Forbidden) as role:
            await DeviceCloud(client).rename(seed.GENERIC, "x")
    assert "role" in role.value.hint


@pytest.mark.contract("D2.2")
@pytest.mark.parametrize("device_id", ["a b", "ü/x", "50%", "a?b#c", "nrf-1", "DE:AD", "+", "a;b"])
async def test_any_id_is_quoted_into_one_segment(cloud: DeviceCloud, device_id: str) -> None:
    with pytest.raises(NotFound) as caught:
        await cloud.device(device_id)
    assert caught.value.code in {40410, 40420}
    assert "/" not in segment(device_id, "id")


@pytest.mark.parametrize("device_id", ["", ".", "..", "a\r\nX: 1", "\x00"])
async def test_what_cannot_be_a_segment_is_refused_before_it_is_sent(
    cloud: DeviceCloud, device_id: str
) -> None:
    with pytest.raises(UsageError, match="cannot be a device id"):
        await cloud.device(device_id)


@pytest.mark.parametrize("version", ["a\r\nb", "", "é", "\x00"])
async def test_a_version_that_would_break_the_header_is_refused(
    cloud: DeviceCloud, version: str
) -> None:
    with pytest.raises(UsageError, match="cannot be a version"):
        await cloud.rename(seed.GENERIC, "x", version=version)


@pytest.mark.contract("D9.4", "D10.9")
async def test_the_deprecated_account_paths_warn_with_their_date(
    cloud: DeviceCloud, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    issued = await cloud.service_token()
    assert "July 1, 2026" in caplog.text
    assert "CELLAGENT_ORG_TOKEN" in caplog.text
    assert issued.token.reveal() not in repr(issued)
    made = await cloud.make_service_key_and_token()
    assert made.token.reveal() != issued.token.reveal()
    assert "PRIVATE" not in repr(made)
    team = standin.cloud.table("teams").get(standin.team_id)
    standin.cloud.table("teams").put(standin.team_id, {**team, "plan": "DEVELOPER"})
    with pytest.raises(Forbidden) as refused:
        await cloud.make_service_key_and_token()
    assert "Pro or Enterprise plan and the team owner role" in refused.value.hint
    standin.cloud.settings.account_paths = False
    standin.clock.set(datetime(2026, 8, 1, tzinfo=UTC).timestamp())
    with pytest.raises(NotFound) as gone:
        await cloud.service_token()
    assert "July 1, 2026" in gone.value.hint


async def test_the_account_names_team_and_role(cloud: DeviceCloud, standin: StandIn) -> None:
    account = await cloud.account()
    assert account.team_id == standin.team_id
    assert account.role
    assert account.plan


async def test_messages_are_sent_and_listed(cloud: DeviceCloud) -> None:
    sent = {"appId": "TEMP", "messageType": "DATA", "data": "21.5"}
    await cloud.send_message(seed.GENERIC, sent, topic=f"d/{seed.GENERIC}/d2c")
    (message,) = await listed(cloud.messages(seed.GENERIC))
    assert message.message == sent
    assert message.device_id == seed.GENERIC
    assert message.received_at is not None
    with pytest.raises(UsageError, match="no time zone"):
        await listed(cloud.messages(start=datetime(2026, 1, 1)))  # noqa: DTZ001 - the point


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ([], "no device"),
        ({}, "`id`"),
        ({"id": 5}, "`$.id`"),
        ({"id": "a", "tags": "b"}, "`$.tags`"),
        ({"id": "a", "$meta": {"updatedAt": "soon"}}, "is no time"),
    ],
)
def test_what_is_no_device_is_named(raw: Any, named: str) -> None:
    with pytest.raises(BadAnswer, match=named.replace("$", r"\$")):
        Device.of(raw)


@pytest.mark.contract("D2.1", "D5.3")
def test_a_device_may_lack_nearly_everything_and_have_more() -> None:
    device = Device.of(
        {"id": "a", "type": "Toaster", "$meta": {"createdAt": "2025-01-02T03:04:05.678Z"}, "new": 1}
    )
    assert (device.name, device.type, device.tags, device.version) == ("a", "Toaster", (), None)
    assert device.raw["new"] == 1
    assert device.created_at == moment("2025-01-02T03:04:05.678+00:00")
    assert (device.state, device.reported, device.connected_ids, device.services) == (
        {},
        {},
        (),
        {},
    )


@pytest.mark.contract("D3.1")
@pytest.mark.parametrize("value", [[256], [-1], ["a"], "AAA=", [1.5], [True], None, {}])
def test_a_value_that_is_no_list_of_bytes_is_named(value: Any) -> None:
    state = {"180F": {"characteristics": {"2A19": {"value": value}}}}
    device = Device.of({"id": "a", "state": state})
    with pytest.raises(BadAnswer, match="180F/2A19 is no list of bytes"):
        device.characteristic("2A19")
