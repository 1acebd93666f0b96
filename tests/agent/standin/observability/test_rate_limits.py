"""Rate limits count the requests of each device in a window of time."""

from __future__ import annotations

from observability import an_event, error_of, push
from standin import StandIn

from agent.standin.faults import set_faults


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
