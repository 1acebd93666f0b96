"""Which lane sends next and what, and how long it waits after a failure."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import (
    AgentError,
    BadAnswer,
    InvalidRequest,
    PayloadTooLarge,
    RateLimited,
    ServerTrouble,
)
from agent.observability.ingest.chunks import MAX_CHUNKS, MAX_CHUNKS_BYTES
from agent.outbox import ItemKind
from agent.outbox.delivery_requests import FailureKind
from agent.outbox.schedule import TRANSITIONS, TRIES, LaneEvent, LaneState, Schedule

LANE = ("kit", ItemKind.EVENT)
REFUSAL = InvalidRequest("400", status=400)
FAULT = ServerTrouble("500", status=500)


class Lane:
    """One lane whose requests a test answers: `messages` wait in it, each an item."""

    def __init__(self, messages: int = 100, lane: tuple[str, ItemKind] = LANE) -> None:
        self.schedule = Schedule()
        self.lane = lane
        self.waits = list(range(1, messages + 1))
        self.now = 0.0

    @property
    def fresh(self) -> bool:
        return bool(set(self.waits) - self.schedule.held().get(self.lane, frozenset()))

    @property
    def state(self) -> LaneState:
        return self.schedule._record(self.lane).state

    def request(self) -> list[int]:
        """Return what is sent next, once the lane may send."""
        due = self.schedule.next_time({self.lane: self.fresh})
        assert due is not None
        self.now = max(self.now, due)
        assert self.schedule.ready({self.lane: self.fresh}, self.now) == [self.lane]
        chosen = self.schedule.select(self.lane, fresh=self.fresh, now=self.now)
        batch: list[int] = []
        for number in (each for each in self.waits if each not in chosen.apart):
            if batch and (
                len(batch) >= min(chosen.messages, chosen.items) or number in chosen.alone
            ):
                break
            batch.append(number)
            if number in chosen.alone:
                break
        if not batch:
            self.schedule.gone(self.lane, chosen)
            return self.request()
        return batch

    def fail(self, kind: FailureKind, error: AgentError, times: int = 1) -> list[int]:
        for _ in range(times):
            batch = self.request()
            self.schedule.failed(self.lane, kind, error, messages=batch, now=self.now, jitter=0.0)
        return batch

    def take(self) -> list[int]:
        batch = self.request()
        self.schedule.delivered(self.lane, batch)
        self.waits = [number for number in self.waits if number not in batch]
        return batch


def test_a_device_sends_one_request_at_a_time_the_crash_first():
    schedule = Schedule()
    lanes = dict.fromkeys([*(("kit", kind) for kind in ItemKind), ("other", ItemKind.CHUNK)], True)
    first = schedule.ready(lanes, now=0.0)
    assert set(first) == {("kit", ItemKind.COREDUMP), ("other", ItemKind.CHUNK)}
    for lane in first:
        schedule.started(lane)
    assert schedule.ready(lanes, now=0.0) == []
    assert schedule.next_time(lanes) is None
    schedule.ended(("kit", ItemKind.COREDUMP))
    left = {("kit", ItemKind.CHUNK): True, ("kit", ItemKind.EVENT): True}
    assert schedule.ready(left, now=0.0) == [("kit", ItemKind.EVENT)]


def test_a_request_grows_again_up_to_the_bounds_of_its_call():
    lane = Lane(lane=("kit", ItemKind.CHUNK))
    chosen = lane.schedule.select(lane.lane, fresh=True, now=0.0)
    assert (chosen.items, chosen.bytes) == (MAX_CHUNKS, MAX_CHUNKS_BYTES)
    error = PayloadTooLarge("", status=413)
    for size in (100, 50, 25, 12):
        assert len(lane.fail(FailureKind.SMALLER, error)) == size
    assert [len(lane.take()) for _ in range(4)] == [6, 12, 24, 48]
    assert lane.now == 0.0


@given(st.integers(0, 60), st.floats(0.0, 1.0))
def test_the_wait_after_a_failure_doubles_up_to_an_hour(failures, jitter):
    schedule = Schedule()
    for _ in range(failures + 1):
        schedule.failed(LANE, FailureKind.LATER, FAULT, messages=[1], now=5.0, jitter=jitter)
    wait = min(10.0 * 2.0**failures, 3600.0)
    assert schedule.next_time({LANE: True}) == pytest.approx(5.0 + wait * (1 + jitter / 4))


def test_a_fault_is_tried_three_times_then_divided_until_one_message_is_alone():
    lane = Lane()
    sizes, times = [], []
    for _ in range(11):
        sizes.append(len(lane.fail(FailureKind.FAULT, FAULT)))
        times.append(lane.now)
    assert sizes == [100, 100, 100, 50, 25, 12, 6, 3, 1, 1, 1]
    assert times == [0, 10, 30, 40, 50, 60, 70, 80, 90, 90, 130]
    assert lane.state is LaneState.PROBING


@pytest.mark.parametrize(("kind", "tries"), TRIES.items())
def test_one_message_at_fault_is_found_among_a_hundred_wherever_it_is(kind, tries):
    for bad in range(1, 101):
        lane = Lane()
        requests = 0
        while not lane.schedule.held():
            requests += 1
            if bad in lane.request():
                lane.fail(kind, FAULT)
            else:
                lane.take()
        assert lane.schedule.held() == {LANE: {bad}}
        assert requests <= 2 * tries + 8
        probe = next((number for number in lane.waits if number != bad), bad)
        assert lane.take() == [probe]


def test_a_message_that_fails_alone_lets_the_next_one_pass_and_waits_longer_each_time():
    lane = Lane(2)
    assert lane.fail(FailureKind.REFUSED, REFUSAL) == [1, 2]
    assert lane.fail(FailureKind.REFUSED, REFUSAL) == [1]
    assert (lane.state, lane.now) == (LaneState.PROBING, 0.0)
    assert not lane.schedule.at_fault(LANE, 1)
    assert lane.take() == [2]
    assert lane.state is LaneState.FLOWING
    assert lane.schedule.at_fault(LANE, 1)
    times = []
    for _ in range(14):
        assert lane.fail(FailureKind.REFUSED, REFUSAL) == [1]
        times.append(lane.now)
        assert lane.state is LaneState.FLOWING
    assert [after - at for at, after in pairwise(times)] == [
        min(2.0**n, 3600.0) for n in range(1, 14)
    ]
    lane.waits += [3]
    assert lane.take() == [3]  # it waits for nobody
    lane.schedule.forget(LANE, 1)
    assert lane.schedule.trouble() == {}


def test_a_service_that_is_wrong_is_asked_twice_a_wait_the_oldest_message_first():
    lane = Lane(100)
    sizes = [len(lane.fail(FailureKind.REFUSED, REFUSAL)) for _ in range(7)]
    assert sizes == [100, 50, 25, 12, 6, 3, 1]
    rounds = [(lane.fail(FailureKind.REFUSED, REFUSAL)[0], lane.state, lane.now)]
    rounds += [
        (lane.fail(FailureKind.REFUSED, REFUSAL)[0], lane.state, lane.now) for _ in range(30)
    ]
    down, probing = LaneState.DOWN, LaneState.PROBING
    assert rounds[:5] == [
        (2, down, 0), (1, probing, 1), (3, down, 1), (1, probing, 3), (4, down, 3),
    ]  # fmt: skip
    assert rounds[-1][2] - rounds[-3][2] == 3600.0
    assert not any(lane.schedule.at_fault(LANE, number) for number in range(101))
    came = []
    while lane.waits:
        came += lane.take()
    assert came == list(range(1, 101))


def test_two_messages_at_fault_keep_the_next_one_waiting_no_longer_than_a_command_does():
    lane = Lane(3)
    refused = [lane.fail(FailureKind.REFUSED, REFUSAL) for _ in range(4)]
    assert refused == [[1, 2, 3], [1], [2], [1]]
    assert lane.take() == [3]
    assert lane.now < 5.0
    assert [lane.schedule.at_fault(LANE, number) for number in (1, 2)] == [True, True]


def test_what_is_new_is_tried_at_once_behind_the_one_message_that_failed():
    lane = Lane(1)
    for _ in range(9):
        lane.fail(FailureKind.REFUSED, REFUSAL)
        assert lane.state is LaneState.PROBING
    now = lane.now
    lane.waits += [2]
    assert lane.take() == [2]
    assert lane.now == now


@given(st.integers(1, 30), st.sampled_from(list(TRIES)))
def test_a_service_that_fails_on_all_that_waits_is_asked_seldom_however_few_those_are(count, kind):
    lane = Lane(count)
    requests = 0
    while lane.now < 86400.0:
        lane.fail(kind, FAULT)
        requests += 1
    assert requests < 100
    if lane.state is LaneState.PROBING and lane.fresh:
        lane.fail(kind, FAULT)  # it is right again in a wait, not between two requests of a round
    came = []
    while lane.waits:
        came += lane.take()
    assert came == list(range(1, count + 1))


def test_a_lane_that_was_down_goes_on_if_its_suspect_was_dropped():
    lane = Lane(3)
    lane.fail(FailureKind.REFUSED, REFUSAL, times=3)
    assert lane.state is LaneState.DOWN
    lane.waits = [2, 3]
    assert lane.fail(FailureKind.REFUSED, REFUSAL) == [3]
    assert lane.state is LaneState.PROBING
    assert lane.take() in ([2], [3])
    assert lane.state is LaneState.FLOWING


def test_a_selection_of_what_is_gone_leaves_nothing_held():
    lane = Lane(1)
    lane.fail(FailureKind.REFUSED, REFUSAL)
    lane.waits = []
    lane.now = 60.0
    chosen = lane.schedule.select(LANE, fresh=False, now=lane.now)
    lane.schedule.gone(LANE, chosen)
    assert lane.schedule.held() == {}


def test_the_trouble_of_a_lane_says_since_when_how_often_and_when_it_is_tried_again():
    lane = Lane(1)
    lane.fail(FailureKind.FAULT, FAULT, times=2)
    found = lane.schedule.trouble()[LANE]
    assert (found.error, found.since, found.tries, found.next_try) == (FAULT, 0.0, 2, 30.0)
    lane.fail(FailureKind.FAULT, FAULT, times=3)
    found = lane.schedule.trouble()[LANE]
    assert (found.since, found.tries, found.held) == (30.0, 3, 0)
    assert found.next_try == lane.now + 40.0
    lane.waits += [2]
    lane.take()
    # The others pass; this one still fails.
    assert lane.schedule.trouble()[LANE] == replace(found, held=1)
    lane.schedule.try_now()
    assert lane.schedule.next_time({LANE: False}) == 0.0
    lane.take()
    assert lane.schedule.trouble() == {}


def test_a_wait_that_the_service_asks_for_is_the_trouble_of_a_lane_that_looks_for_a_fault():
    lane = Lane(2)
    lane.fail(FailureKind.REFUSED, REFUSAL, times=2)
    asked = RateLimited("429", status=429, retry_after_s=600.0)
    lane.fail(FailureKind.LATER, asked)
    found = lane.schedule.trouble()[LANE]
    assert (found.error, found.next_try) == (asked, lane.now + 600.0)


def test_a_wait_that_the_service_asks_for_is_kept_whatever_comes_of_it():
    for kind in (FailureKind.FAULT, FailureKind.AWAY, FailureKind.LATER):
        lane = Lane(2)
        asked = RateLimited("429", status=429, retry_after_s=120.0)
        times = []
        for _ in range(6):
            lane.fail(kind, asked)
            times.append(lane.now)
        assert all(after - at >= 120.0 for at, after in pairwise(times))


def failing(schedule: Schedule, device: str, error: AgentError, *, times: int = 5) -> None:
    for _ in range(times):
        schedule.failed(
            (device, ItemKind.EVENT), FailureKind.LATER, error, messages=[1], now=0.0, jitter=0.0
        )


def test_what_the_service_takes_of_one_device_ends_the_waits_of_the_others():
    schedule, portal = Schedule(), BadAnswer("a page", status=200)
    for device in ("a", "b"):
        failing(schedule, device, portal)
    failing(schedule, "c", RateLimited("later", status=429, retry_after_s=3000.0))
    failing(schedule, "d", RateLimited("too much, of all devices together", status=429))
    lanes = {(device, ItemKind.EVENT): True for device in "abcd"}
    assert schedule.ready(lanes, 100.0) == []
    schedule.delivered(("a", ItemKind.EVENT), [1])
    assert [device for device, _ in schedule.ready(lanes, 100.0)] == ["a", "b"]
    failing(schedule, "b", portal)
    schedule.delivered(("a", ItemKind.EVENT), [2])
    assert [device for device, _ in schedule.ready(lanes, 100.0)] == ["a"], "that is no news"


def test_a_service_that_is_back_is_left_alone_where_it_asked_for_that():
    schedule = Schedule()
    failing(schedule, "a", RateLimited("later", status=429, retry_after_s=3000.0))
    failing(schedule, "b", BadAnswer("a page", status=200))
    lanes = {(device, ItemKind.EVENT): True for device in "ab"}
    schedule.service_is_back()
    assert [device for device, _ in schedule.ready(lanes, 100.0)] == ["b"]
    assert len(schedule.ready(lanes, 3000.0)) == 2


def test_the_one_message_of_a_lane_is_tried_again_when_the_service_is_back():
    lane = Lane(messages=1)
    lane.fail(FailureKind.FAULT, FAULT, times=5)
    assert not lane.fresh
    lane.schedule.service_is_back()
    assert lane.schedule.ready({LANE: False}, lane.now) == [LANE]


def test_every_state_and_event_is_in_the_table():
    assert {state for state, _ in TRANSITIONS} == set(LaneState)
    assert {event for _, event in TRANSITIONS} == set(LaneEvent)
