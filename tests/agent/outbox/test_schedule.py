"""Which lane sends next, how much at once, and how long it waits after a failure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import PayloadTooLarge, ServerTrouble
from agent.observability.ingest.chunks import MAX_CHUNKS, MAX_CHUNKS_BYTES
from agent.outbox import ItemKind
from agent.outbox.failures import FailureKind
from agent.outbox.schedule import Schedule


def test_a_device_sends_one_request_at_a_time_the_crash_first():
    schedule = Schedule()
    lanes = [("kit", kind) for kind in ItemKind] + [("other", ItemKind.CHUNK)]
    first = schedule.ready(lanes, now=0.0)
    assert set(first) == {("kit", ItemKind.COREDUMP), ("other", ItemKind.CHUNK)}
    for lane in first:
        schedule.started(lane)
    assert schedule.ready(lanes, now=0.0) == []
    assert schedule.next_time(lanes) is None
    schedule.ended(("kit", ItemKind.COREDUMP))
    (again,) = schedule.ready([("kit", ItemKind.CHUNK), ("kit", ItemKind.EVENT)], now=0.0)
    assert again == ("kit", ItemKind.EVENT)


def test_a_request_grows_again_up_to_the_bounds_of_its_call():
    schedule, lane = Schedule(), ("kit", ItemKind.CHUNK)
    assert schedule.limits(lane) == (MAX_CHUNKS, MAX_CHUNKS_BYTES)
    error = PayloadTooLarge("", status=413)
    schedule.failed(lane, FailureKind.SMALLER, error, count=9, now=0.0, jitter=0.0)
    assert schedule.limits(lane) == (4, MAX_CHUNKS_BYTES)
    sizes = []
    for _ in range(6):
        schedule.delivered(lane)
        sizes.append(schedule.limits(lane)[0])
    assert sizes == [8, 16, 32, 64, 100, 100]


@given(st.integers(0, 60), st.floats(0.0, 1.0))
def test_the_wait_after_a_failure_doubles_up_to_an_hour(failures, jitter):
    schedule, lane = Schedule(), ("kit", ItemKind.EVENT)
    for _ in range(failures + 1):
        schedule.failed(
            lane, FailureKind.LATER, ServerTrouble("503"), count=1, now=5.0, jitter=jitter
        )
    wait = min(10.0 * 2.0**failures, 3600.0)
    assert schedule.next_time([lane]) == pytest.approx(5.0 + wait * (1 + jitter / 4))
