"""Rate limits count the requests of each device in a window of time."""

from __future__ import annotations

from agent.standin.faults import set_faults
from tests.support.cloud.observability import (
    OCTETS,
    an_event,
    error_of,
    push,
    with_project_key,
    with_token,
)
from tests.support.cloud.standin import StandIn
from tests.support.dumps.sdk_bytes import coredump


async def test_a_rate_limit_is_a_setting_and_says_when_to_come_again(standin: StandIn) -> None:
    standin.clock.freeze()
    set_faults(standin.cloud, ["rate-limit=2"])
    for _ in range(2):
        assert (await push(standin, [an_event()])).status_code == 202
    standin.clock.advance(600)
    answer = await push(standin, [an_event()])
    assert error_of(answer)["http_code"] == 429
    assert answer.headers["Retry-After"] == "3000"
    assert (await push(standin, [an_event("other-device")])).status_code == 202
    standin.clock.advance(3000)
    assert (await push(standin, [an_event()])).status_code == 202


async def test_a_push_that_the_limit_of_one_device_refuses_counts_for_none(
    standin: StandIn,
) -> None:
    set_faults(standin.cloud, ["rate-limit=1"])
    assert (await push(standin, [an_event("kit-2")])).status_code == 202
    refused = await push(standin, [an_event("kit-1"), an_event("kit-2")])
    assert error_of(refused)["http_code"] == 429
    assert (await push(standin, [an_event("kit-1")])).status_code == 202


async def test_a_core_dump_beyond_the_limit_is_not_stored(standin: StandIn) -> None:
    set_faults(standin.cloud, ["rate-limit=1"])
    caller, path = with_project_key(standin), "/api/v0/upload/coredump"
    for status in (202, 429):
        dump = coredump("kit-1")
        answer = await caller("POST", path, "ingress", content=dump, headers=OCTETS)
        assert answer.status_code == status
    for kind in ("coredumps", "traces"):
        assert len(await with_token(standin).data(f"~/{kind}")) == 1, kind
