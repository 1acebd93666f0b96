"""What becomes of an item, through the operations of an outbox that is opened again after each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from outboxes import bodies, chunk, chunks, event, outbox, spoil

from agent.config.profile import OutboxSettings
from agent.outbox import ItemKind
from agent.outbox.item_state import TRANSITIONS, ItemEvent, ItemState
from agent.outbox.items import Selection
from agent.outbox.store import Store
from at.protocol.state_machine import IllegalTransition

LIMITS = OutboxSettings(min_free_bytes=0, park_after=2, max_age_s=1.0)
NOW = 1_700_000_000.0


def take(store: Store) -> None:
    assert [item.id for item in store.take("kit", ItemKind.EVENT, Selection(1, 1 << 20))] == [1]


def age(store: Store) -> None:
    store.add([event(2)], NOW + 120.0)


def refuse(store: Store) -> None:
    store.count_refusal([1], "no", at_fault=True)


def damage(store: Store) -> None:
    spoil(store, 1)
    assert store.take("kit", ItemKind.EVENT, Selection(1, 1 << 20)) == []


DO: dict[str, tuple[Callable[[Store], object], ItemState]] = {
    "take": (take, ItemState.IN_FLIGHT),
    "deliver": (lambda store: store.remove_delivered([1]), ItemState.DELIVERED),
    "release": (lambda store: store.release_all(), ItemState.WAITING),
    "refuse": (refuse, ItemState.WAITING),
    "give up": (refuse, ItemState.PARKED),
    "damage": (damage, ItemState.PARKED),
    "retry": (lambda store: store.retry_parked(), ItemState.WAITING),
    "age": (age, ItemState.EXPIRED),
    "drop": (lambda store: store.drop([1]), ItemState.DROPPED),
}
PARKED = ("take", "refuse", "take", "give up")


@pytest.mark.parametrize(
    "lived",
    [
        ("take", "deliver"),
        ("take", "release", "take", "deliver"),
        (*PARKED, "retry", *PARKED, "drop"),
        (*PARKED, "age"),
        ("damage", "drop"),
        ("drop",),
        ("age",),
    ],
    ids=", ".join,
)
def test_an_item_is_in_the_state_that_what_happened_leads_to(
    tmp_path: Path, lived: tuple[str, ...]
) -> None:
    with outbox(tmp_path, LIMITS) as box:
        assert box.transact(lambda store: store.add([event(1)], NOW)).ids == (1,)
        for name in lived:
            do, state = DO[name]
            box.transact(do)
            found = box.transact(lambda store: store.index.state_of(1))
            ended = box.transact(lambda store: store.totals()).counts.get(state.value, 0)
            assert (found, ended) == ((state, 0) if state in _KEPT else (None, 1))
    with outbox(tmp_path, LIMITS) as box:  # what was in flight waits again
        kept = found and (ItemState.WAITING if found is ItemState.IN_FLIGHT else found)
        assert box.transact(lambda store: store.index.state_of(1)) is kept


_KEPT = {ItemState.WAITING, ItemState.IN_FLIGHT, ItemState.PARKED}


def test_the_chunks_of_a_repeated_message_end_as_duplicates(tmp_path: Path) -> None:
    sent = chunks(bytes(range(60)))
    with outbox(tmp_path, LIMITS) as box:
        for each in [*sent, *sent]:
            box.put([each])
        found = box.transact(lambda store: [store.index.state_of(at + 1) for at in range(8)])
        assert found == [ItemState.WAITING] * len(sent) + [None] * (8 - len(sent))
        assert box.transact(lambda store: store.totals()).counts["duplicates"] == len(sent)


def test_a_message_is_given_up_as_a_whole_with_the_chunks_that_were_not_sent(
    tmp_path: Path,
) -> None:
    sent = chunks(bytes(range(60)))
    with outbox(tmp_path, LIMITS) as box:
        box.put([*sent, chunk(1)])
        for _ in range(2):
            box.transact(lambda store: store.take("kit", ItemKind.CHUNK, Selection(1, 1 << 20)))
            box.transact(refuse)
        found = box.transact(lambda store: [store.index.state_of(at + 1) for at in range(5)])
        parked = [ItemState.PARKED] * len(sent)
        assert len(sent) > 1
        assert found[: len(sent) + 1] == [*parked, ItemState.WAITING]
        box.transact(lambda store: store.retry_parked())
        assert bodies(box) == [each.body for each in [*sent, chunk(1)]]


@pytest.mark.parametrize(
    "do", [DO["take"][0], DO["drop"][0], DO["age"][0]], ids=["taken", "dropped", "expired"]
)
def test_what_is_in_flight_is_neither_taken_nor_removed(
    tmp_path: Path, do: Callable[[Store], object]
) -> None:
    with outbox(tmp_path, LIMITS) as box:
        box.transact(lambda store: store.add([event(1)], NOW))
        box.transact(take)
        if do is take:
            assert (
                box.transact(lambda store: store.take("kit", ItemKind.EVENT, Selection(1, 99)))
                == []
            )
        else:
            box.transact(do)
        assert box.transact(lambda store: store.index.state_of(1)) is ItemState.IN_FLIGHT


@pytest.mark.parametrize("act", ["deliver", "refuse"])
def test_what_was_not_sent_is_neither_delivered_nor_refused(tmp_path: Path, act: str) -> None:
    with outbox(tmp_path, LIMITS) as box:
        box.transact(lambda store: store.add([event(1)], NOW))
        with pytest.raises(IllegalTransition, match="ItemState WAITING does not allow"):
            box.transact(DO[act][0])
        assert box.transact(lambda store: store.index.state_of(1)) is ItemState.WAITING


def test_a_transaction_that_is_rolled_back_leaves_the_item_in_its_state(tmp_path: Path) -> None:
    def fail(store: Store) -> None:
        DO["deliver"][0](store)
        raise ZeroDivisionError

    with outbox(tmp_path, LIMITS) as box:
        box.transact(lambda store: store.add([event(1)], NOW))
        box.transact(take)
        with pytest.raises(ZeroDivisionError):
            box.transact(fail)
        assert box.transact(lambda store: store.index.state_of(1)) is ItemState.IN_FLIGHT
        box.transact(DO["deliver"][0])
        assert box.transact(lambda store: store.totals()).counts["delivered"] == 1


def test_no_event_leads_out_of_a_state_that_is_counted() -> None:
    assert {state for state, _ in TRANSITIONS} == _KEPT
    assert set(TRANSITIONS.values()) == set(ItemState)
    assert {event for _, event in TRANSITIONS} == set(ItemEvent)
