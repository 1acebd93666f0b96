from __future__ import annotations

import httpx
import pytest

from agent.auth.bearer import ApiKey
from agent.cloud import Device, DeviceCloud, Filter
from agent.cloud.client import MAX_EMPTY_PAGES
from agent.cloud.device_changes import UpdateDeviceName
from agent.config.secrets import Secret
from agent.errors import (
    BadAnswer,
    DeadlineExceeded,
    Forbidden,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    Unauthorized,
)
from agent.standin.device_cloud import seed
from agent.standin.state import API_KEYS
from tests.support.cloud.http_calls import client
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import api_key, listed, speaking_for_kit


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


@pytest.mark.parametrize(("number", "empty"), [(40499, True), (40410, False)])
async def test_a_list_that_is_told_to_be_empty_by_a_404_is_empty(number: int, empty: bool) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, json={"code": number, "message": "there are none"})

    cloud = DeviceCloud(client(answer))
    if empty:
        assert await listed(cloud.devices(Filter(tags=("nobody",)))) == []
        assert await listed(cloud.messages("nrf-1")) == []
        return
    with pytest.raises(NotFound, match="there are none"):
        await listed(cloud.devices())


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
    with pytest.raises(DeadlineExceeded, match="did not change within 60 s") as late:
        await patient.discover_and_wait(seed.GATEWAY, seed.BLE, deadline_s=60)
    assert late.value.hint == "`--deadline 180` waits longer"
    assert max(slept) == 5


@pytest.mark.contract("D4.1")
async def test_a_fleet_is_walked_page_by_page(standin: StandIn) -> None:
    standin.cloud.settings.devices = 1100
    async with speaking_for_kit(standin, api_key(standin)) as client:
        count = 0
        async for _ in DeviceCloud(client).devices():
            count += 1
    assert count == 1104


@pytest.mark.contract("D4.1")
@pytest.mark.parametrize(
    ("tokens", "items", "most"),
    [(["a"], 1, 2), (["a", "b"], 1, 3), (["a", "b", "c"], 0, 4), (None, 0, MAX_EMPTY_PAGES)],
    ids=["one page", "two pages", "three empty pages", "empty pages"],
)
async def test_a_list_without_end_is_told_as_one(
    tokens: list[str] | None, items: int, most: int
) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        assert len(asked) <= most
        token = tokens[(len(asked) - 1) % len(tokens)] if tokens else str(len(asked))
        return httpx.Response(200, json={"items": [{"id": "d"}] * items, "pageNextToken": token})

    with pytest.raises(BadAnswer, match="does not end"):
        await listed(DeviceCloud(client(answer)).devices())
    assert len(asked) == most


@pytest.mark.contract("D10.1", "D10.10")
async def test_a_refused_key_and_a_refused_role_are_told_apart(standin: StandIn) -> None:
    async with speaking_for_kit(standin, ApiKey(Secret("no-such-key"))) as client:
        with pytest.raises(Unauthorized) as unknown:
            await DeviceCloud(client).device(seed.GENERIC)
    assert "account page" in unknown.value.hint
    viewer = next(
        record.key for record in standin.cloud.table(API_KEYS).values() if record.role == "viewer"
    )
    async with speaking_for_kit(standin, ApiKey(Secret(viewer))) as client:
        assert (await DeviceCloud(client).device(seed.GENERIC)).id == seed.GENERIC
        with pytest.raises(Forbidden) as role:
            await DeviceCloud(client).rename(seed.GENERIC, "x")
    assert "role" in role.value.hint


@pytest.mark.contract("D4.1")
async def test_empty_pages_between_others_end_no_list() -> None:
    pages = 3 * MAX_EMPTY_PAGES

    def answer(request: httpx.Request) -> httpx.Response:
        number = int(request.url.params.get("pageNextToken", 0))
        items = [{"id": str(number)}] if number % 3 == 0 else []
        token = str(number + 1) if number < pages else None
        return httpx.Response(200, json={"items": items, "pageNextToken": token})

    devices = await listed(DeviceCloud(client(answer)).devices())
    assert [device.id for device in devices] == [str(n) for n in range(0, pages + 1, 3)]


@pytest.mark.contract("D7")
async def test_a_wait_is_no_longer_than_was_asked_and_a_new_state_alone_ends_it() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def answer(request: httpx.Request) -> httpx.Response:
        state = {"s": sum(slept) // 10}
        return httpx.Response(200, json={"id": "d", "state": state})

    cloud = DeviceCloud(client(answer), sleep=sleep, monotonic=lambda: sum(slept))
    assert (await cloud.discover_and_wait("gateway", "d")).state == {"s": 1}
    slept.clear()
    with pytest.raises(DeadlineExceeded):
        await cloud.wait_until("d", lambda _device: False, deadline_s=7.0)
    assert sum(slept) == pytest.approx(7.0)
