from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agent.call import Response
from agent.cloud import DeviceCloud
from agent.cloud.messages import ListMessages, SendMessage
from agent.errors import NotFound, UsageError
from agent.standin.device_cloud import seed
from tests.support.cloud.standin_clients import listed


async def test_messages_are_sent_and_listed(cloud: DeviceCloud) -> None:
    sent = {"appId": "TEMP", "messageType": "DATA", "data": "21.5"}
    await cloud.send_message(seed.GENERIC, sent, topic=f"d/{seed.GENERIC}/d2c")
    (message,) = await listed(cloud.messages(seed.GENERIC))
    assert message.message == sent
    assert message.device_id == seed.GENERIC
    assert message.received_at is not None
    with pytest.raises(UsageError, match="no time zone"):
        await listed(cloud.messages(start=datetime(2026, 1, 1)))  # noqa: DTZ001 - the point


async def test_an_unknown_device_sends_nothing_and_those_that_are_there_are_named(
    cloud: DeviceCloud,
) -> None:
    with pytest.raises(NotFound) as unknown:
        await cloud.send_message("nrf-1", {"appId": "TEMP"})
    assert "`cellagent provision run --registration onboard`" in unknown.value.hint
    assert "`cellagent device list`" in unknown.value.hint


@pytest.mark.parametrize("absent", [b"{}", b'{"deviceId":null,"topic":null,"receivedAt":null}'])
def test_what_a_message_lacks_is_empty(absent: bytes) -> None:
    (message,) = ListMessages().parse(Response(200, {}, b'{"items":[%b]}' % absent)).items
    assert (message.device_id, message.topic, message.received_at) == ("", "", None)


def test_a_time_is_asked_for_in_utc_to_the_millisecond() -> None:
    when = datetime(2026, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC)
    elsewhere = when.astimezone(timezone(timedelta(hours=2)))
    for start in (when, elsewhere):
        query = ListMessages(start=start).request().query
        assert ("inclusiveStart", "2026-01-01T00:00:00.123Z") in query
    assert not SendMessage("kit", {}).repeatable, "the same message would be there twice"
