"""Notices: their parsers, and the queues that are subscribed to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol import notices
from at.protocol.errors import ParseError
from at.protocol.notices import BoundedQueue, Dispatcher, Malformed, Notice


class Counted(Notice, frozen=True):
    """A notice of this test, with the context that it was parsed with."""

    context: str | None


def parse_counted(line: str, context: str | None) -> Counted:
    if "x" in line:
        raise ParseError("no number")
    return Counted("%COUNTED", line, context)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_parsers", {**notices._parsers})
    notices.register("%COUNTED", parse_counted)


def test_a_notice_is_typed_plain_or_malformed() -> None:
    assert notices.is_known("%COUNTED")
    assert notices.parse("%COUNTED", "%COUNTED: 1", "AT%C=1") == Counted(
        "%COUNTED", "%COUNTED: 1", "AT%C=1"
    )
    assert notices.parse("%COUNTED", "%COUNTED: x") == Malformed(
        "%COUNTED", "%COUNTED: x", "no number"
    )
    assert notices.parse("%OTHER", "%OTHER: 1") == Notice("%OTHER", "%OTHER: 1")
    assert not notices.is_known("%OTHER")


def test_a_notice_reaches_each_subscriber_of_its_name_or_type_once() -> None:
    dispatcher = Dispatcher()
    queues = {
        keys: BoundedQueue[Notice](9)
        for keys in [(), ("%COUNTED",), (Counted,), ("%COUNTED", Counted, Notice), ("%OTHER",)]
    }
    for keys, queue in queues.items():
        dispatcher.add(queue, *keys)  # type: ignore[arg-type]
    dispatcher.dispatch("%COUNTED", "%COUNTED: 1", None)
    assert [len(queue) for queue in queues.values()] == [1, 1, 1, 1, 0]
    for queue in queues.values():
        dispatcher.remove(queue)
    dispatcher.dispatch("%COUNTED", "%COUNTED: 2", None)
    assert [len(queue) for queue in queues.values()] == [1, 1, 1, 1, 0]


def test_a_notice_that_nobody_may_want_is_not_parsed() -> None:
    parsed = []

    def parse(line: str, _context: str | None) -> Notice:
        parsed.append(line)
        return Notice("%UNWANTED", line)

    notices.register("%UNWANTED", parse)
    dispatcher = Dispatcher()
    by_type: BoundedQueue[Notice] = BoundedQueue(1)
    dispatcher.add(BoundedQueue(1), "%OTHER")
    dispatcher.dispatch("%UNWANTED", "%UNWANTED: 1", None)
    dispatcher.add(by_type, Malformed)
    dispatcher.dispatch("%UNWANTED", "%UNWANTED: 2", None)
    dispatcher.remove(by_type)
    dispatcher.dispatch("%UNWANTED", "%UNWANTED: 3", None)
    assert parsed == ["%UNWANTED: 2"]
    assert len(by_type) == 0


@given(st.lists(st.integers(), max_size=30), st.integers(1, 8))
def test_a_full_queue_keeps_the_newest_and_counts_the_rest(items: list[int], limit: int) -> None:
    woken = []
    queue = BoundedQueue[int](limit, lambda: woken.append(True))
    for item in items:
        queue.put(item)
    kept = items[-limit:]
    assert queue.dropped == len(items) - len(kept)
    assert [queue.get() for _ in range(len(queue))] == kept
    assert len(woken) == (1 if items and limit > 1 else len(items))
    with pytest.raises(IndexError):
        queue.get()
