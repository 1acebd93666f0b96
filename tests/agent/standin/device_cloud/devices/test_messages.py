"""Messages of devices at the stand-in."""

from __future__ import annotations

import pytest

from tests.support.cloud.device_api import GENERIC, Api, device_path
from tests.support.cloud.standin import StandIn


async def test_messages_are_stored_under_their_topic_and_listed_newest_first(
    standin: StandIn, api: Api
) -> None:
    path = device_path(GENERIC) + "/messages"
    now = int(standin.clock.time() * 1000)
    own = f"d/{GENERIC}/d2c"
    for body in (
        {"message": {"appId": "TEMP", "messageType": "DATA", "data": 21, "ts": now - 60_000}},
        {"topic": own + "/bulk", "message": [{"appId": "RSRP", "data": 1}, {"appId": "TEMP"}]},
        {"topic": f"prod/{standin.team_id}/m/{own}/bin", "message": "AAEC"},
    ):
        assert (await api.call("POST", path, json=body)).status_code == 202
    everything = await api.get("/messages")
    assert everything["total"] == 4
    assert everything["items"][0]["message"] == "AAEC"
    temperatures = await api.get("/messages", appId="TEMP", deviceId=GENERIC, pageSort="asc")
    assert [item["message"].get("data") for item in temperatures["items"]] == [21, None]
    for wrong in (
        {},
        {"message": 5},
        {"topic": "d/other/d2c", "message": {}},
        {"topic": own + "/bulk", "message": {}},
        {"topic": own + "/bin", "message": "%"},
    ):
        assert (await api.call("POST", path, json=wrong)).status_code == 422, wrong
    standin.clock.advance(31 * 86400)
    assert (await api.get("/messages"))["items"] == []


@pytest.mark.parametrize("app", [["TEMP"], {"TEMP": 1}, None, 7])
async def test_a_message_whose_app_is_no_text_is_listed_and_no_name_selects_it(
    api: Api, app: object
) -> None:
    sent = await api.call(
        "POST", device_path(GENERIC) + "/messages", json={"message": {"appId": app}}
    )
    assert sent.status_code == 202
    (kept,) = (await api.get("/messages"))["items"]
    assert kept["message"] == {"appId": app}
    assert (await api.get("/messages", appId="TEMP"))["items"] == []
