from __future__ import annotations

import pytest

from agent.cloud import DeviceCloud
from agent.cloud.device_changes import UpdateDeviceName
from agent.errors import AgentError, NotFound, PreconditionFailed, UsageError
from agent.standin.device_cloud import seed


@pytest.mark.contract("D5.2", "D9.1")
async def test_a_change_may_depend_on_the_version(cloud: DeviceCloud) -> None:
    device = await cloud.device(seed.GENERIC)
    await cloud.rename(seed.GENERIC, "first", version=device.version)
    with pytest.raises(PreconditionFailed) as caught:
        await cloud.rename(seed.GENERIC, "second", version=device.version)
    assert caught.value.status == 412
    assert caught.value.hint == f"`cellagent device show {seed.GENERIC}` shows its version now"
    renamed = await cloud.device(seed.GENERIC)
    assert renamed.name == "first"
    assert renamed.version != device.version
    await cloud.rename(seed.GENERIC, "Third: Left of THE Bench")
    assert (await cloud.device(seed.GENERIC)).name == "Third: Left of THE Bench"
    for change in (
        cloud.set_tags(seed.GENERIC, ["a"], version=device.version),
        cloud.update_state(seed.GENERIC, desired={"x": 1}, version=device.version),
        cloud.delete(seed.GENERIC, version=device.version),
        cloud.write(seed.BLE, seed.LED_CHARACTERISTIC, b"\0\0", version="stale"),
    ):
        with pytest.raises(PreconditionFailed):
            await change


@pytest.mark.contract("D2.3", "D3.2")
async def test_tags_and_state_are_changed_and_null_deletes(cloud: DeviceCloud) -> None:
    await cloud.set_tags(seed.GENERIC, ["bench", "left"])
    await cloud.update_state(seed.GENERIC, desired={"a": {"b": 1, "c": 2}})
    await cloud.update_state(seed.GENERIC, desired={"a": {"b": None}}, reported={"at": "desk"})
    device = await cloud.device(seed.GENERIC)
    assert device.tags == ("bench", "left")
    assert device.state["desired"]["a"] == {"c": 2}
    assert device.reported["at"] == "desk"
    await cloud.delete(seed.FREE_FORM)
    with pytest.raises(NotFound):
        await cloud.device(seed.FREE_FORM)


async def test_what_a_tag_may_hold_is_said_where_one_is_refused(cloud: DeviceCloud) -> None:
    with pytest.raises(AgentError) as refused:
        await cloud.set_tags(seed.GENERIC, ["north door"])
    assert "a tag has letters, digits and `_`" in refused.value.hint
    with pytest.raises(NotFound) as missing:
        await cloud.set_tags("no-such-device", ["north"])
    assert "cellagent device list" in missing.value.hint


@pytest.mark.contract("D5.2")
@pytest.mark.parametrize("version", ["a\r\nb", "", " ", "é", "\x00"])
async def test_a_version_that_would_break_the_header_is_refused(
    cloud: DeviceCloud, version: str
) -> None:
    with pytest.raises(UsageError, match="cannot be a version"):
        await cloud.rename(seed.GENERIC, "x", version=version)


@pytest.mark.contract("D9.1")
def test_a_name_has_1_to_128_characters() -> None:
    # A blank that breaks no line, as text programs write it, and one sign of several characters.
    for name in ("x", "x" * 128, "B\u00fcro\u00a0Nord", "\N{WOMAN}\u200d\N{WRENCH}"):
        assert UpdateDeviceName("kit", name).request().json == name
    for name in ("", "x" * 129, "a\nb", "a\x85b", "a\u2028b", "\x7f", "\ud83d"):
        with pytest.raises(UsageError, match="1 to 128 characters"):
            UpdateDeviceName("kit", name).request()
