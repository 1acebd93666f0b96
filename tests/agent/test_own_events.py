"""What the agent reports of itself, and how a kit's faults are numbered."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from agent.forwarding import trace_reason
from agent.observability.device_identity import DeviceIdentity
from agent.own_events import Happening, own_event

KIT = DeviceIdentity("kit-1", "nrf9161dk", "main", "1.0.0")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.contract("O3.4")
@pytest.mark.parametrize("happening", list(Happening))
def test_what_happened_is_a_trace_with_the_time_it_happened(happening):
    item = own_event(happening, KIT, NOW, "x" * 2000)
    event = json.loads(item.body)
    assert event["type"] == "trace"
    assert event["captured_date"] == "2026-01-02T03:04:05Z"
    assert event["event_info"]["reason"] == happening.value[1]
    assert event["user_info"] == {"agent_event": happening.value[0], "detail": "x" * 500}
    assert item.captured_s == NOW.timestamp()


@pytest.mark.parametrize(
    ("reasons", "number"),
    [
        ([2, 17, 32], 0x800B),
        ([16, 18, 19, 20, 21], 0x9200),
        (range(22, 29), 0x9100),
        ([29, 30, 31, 33, 34, 35, 36], 0x9300),
        ([3, 4], 0x8008),
        ([37, 40, 99], 0x9402),
        ([0, 1, 5, 15], 0x9400),
    ],
)
def test_each_reason_of_the_kernel_has_the_services_number(reasons, number):
    assert {trace_reason(reason) for reason in reasons} == {number}
