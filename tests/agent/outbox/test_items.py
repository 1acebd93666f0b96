"""What may be an item at all, and what can happen to one."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.config.profile import OutboxSettings
from agent.errors import UsageError
from agent.json_value import JSONValue
from agent.outbox import ItemKind, NewItem
from agent.outbox.handoff import FOLDER, collect, hand_off
from agent.outbox.items import (
    TRANSITIONS,
    ItemEvent,
    ItemState,
    OutboxFull,
    Selection,
    outbox_error,
)
from agent.outbox.store import Store
from at.protocol.state_machine import IllegalTransition
from tests.support.outbox.outboxes import LIMITS, bodies, chunk, chunks, event, outbox, spoil


@pytest.mark.parametrize(
    ("number", "says", "helps"),
    [
        (errno.ENOSPC, "the disk is full", "free some space"),
        (errno.EFBIG, "no file may grow so far", "ulimit -f"),
    ],
)
def test_what_the_disk_did_not_take_is_told_with_what_helps(
    number: int, says: str, helps: str, tmp_path: Path
) -> None:
    told = outbox_error(OSError(number, "no"), tmp_path)
    assert isinstance(told, OutboxFull)
    assert str(told) == f"{says}: the outbox took nothing"
    assert helps in told.hint


def nested(levels: int) -> JSONValue:
    """Return a list in a list, and so on."""
    value: JSONValue = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("device", {"device": "kit\udcff"}),
        ("key", {"key": "\ud800"}),
        ("captured_s", {"captured_s": float("inf")}),
        ("captured_s", {"captured_s": float("-inf")}),
        ("captured_s", {"captured_s": float("nan")}),
        ("captured_s", {"captured_s": 1e18}),
        ("captured_s", {"captured_s": "now"}),
        ("meta", {"meta": {"name": "core\udcff"}}),
        ("meta", {"meta": {"\udcff": 1}}),
        ("meta", {"meta": {"value": float("nan")}}),
        ("meta", {"meta": {"value": {1, 2}}}),
        ("meta", {"meta": {"value": nested(100_000)}}),
        ("meta", {"meta": {"value": nested(100)}}),  # a deeper caller could not read it again
        ("meta", {"meta": {"value": {"x": [1 << 64]}}}),
        ("meta", {"meta": {"value": -(1 << 63) - 1}}),
        ("meta", {"meta": {1: 2}}),
        ("meta", {"meta": {"value": {None: 1}}}),
        ("meta", {"meta": "text"}),
    ],
)
def test_an_item_that_cannot_be_kept_is_refused_by_name(what: str, fields: dict[str, object]):
    given = {"kind": ItemKind.CHUNK, "device": "kit", "body": b"x", **fields}
    with pytest.raises(UsageError, match=f"an item's {what} cannot be kept"):
        NewItem(**given)


@settings(max_examples=25)
@example("kit", -0.0, None, {})
@example("kit", None, None, {"huge": 1 << 64})
@example("kit", None, None, {"least": -(1 << 63), "most": (1 << 64) - 1, "long": "x" * 100_000})
@given(
    st.text(st.characters(), max_size=5),
    st.none() | st.floats(),
    st.none() | st.text(st.characters(), max_size=5),
    st.dictionaries(
        st.text(st.characters(), max_size=3),
        st.integers() | st.floats() | st.text(st.characters(), max_size=3) | st.binary(max_size=2),
        max_size=2,
    ),
)
def test_what_is_an_item_can_be_kept_handed_off_and_listed(
    tmp_path_factory: pytest.TempPathFactory, device, captured_s, key, meta
):
    try:
        item = NewItem(ItemKind.COREDUMP, device, b"x", captured_s, key, meta)
    except UsageError:
        return
    with outbox(tmp_path_factory.mktemp("outbox")) as box:
        box.put([item])
        hand_off(box.folder, [item], LIMITS, 1.0)
        collect(box)
        assert len(box.transact(lambda store: store.list_items())) in {1, 2}
        assert bodies(box, ItemKind.COREDUMP, device)[0] == b"x"


def test_a_handed_off_item_that_cannot_be_kept_is_set_aside(tmp_path: Path):
    with outbox(tmp_path) as box:
        hand_off(box.folder, [event(1)], LIMITS, 1.0)
        (path,) = (box.folder / FOLDER).iterdir()
        path.write_text(path.read_text().replace('"captured_s":', '"captured_s":1e300,"x":'))
        assert collect(box) == 0
        assert path.with_suffix(".refused").exists()


BRIEF = OutboxSettings(min_free_bytes=0, park_after=2, max_age_s=1.0)
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
    with outbox(tmp_path, BRIEF) as box:
        assert box.transact(lambda store: store.add([event(1)], NOW)).ids == (1,)
        for name in lived:
            do, state = DO[name]
            box.transact(do)
            found = box.transact(lambda store: store.index.state_of(1))
            ended = box.transact(lambda store: store.totals()).counts.get(state.value, 0)
            assert (found, ended) == ((state, 0) if state in _KEPT else (None, 1))
    with outbox(tmp_path, BRIEF) as box:  # what was in flight waits again
        kept = found and (ItemState.WAITING if found is ItemState.IN_FLIGHT else found)
        assert box.transact(lambda store: store.index.state_of(1)) is kept


_KEPT = {ItemState.WAITING, ItemState.IN_FLIGHT, ItemState.PARKED}


def test_the_chunks_of_a_repeated_message_end_as_duplicates(tmp_path: Path) -> None:
    sent = chunks(bytes(range(60)))
    with outbox(tmp_path, BRIEF) as box:
        for each in [*sent, *sent]:
            box.put([each])
        found = box.transact(lambda store: [store.index.state_of(at + 1) for at in range(8)])
        assert found == [ItemState.WAITING] * len(sent) + [None] * (8 - len(sent))
        assert box.transact(lambda store: store.totals()).counts["duplicates"] == len(sent)


def test_a_message_is_given_up_as_a_whole_with_the_chunks_that_were_not_sent(
    tmp_path: Path,
) -> None:
    sent = chunks(bytes(range(60)))
    with outbox(tmp_path, BRIEF) as box:
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
    with outbox(tmp_path, BRIEF) as box:
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
    with outbox(tmp_path, BRIEF) as box:
        box.transact(lambda store: store.add([event(1)], NOW))
        with pytest.raises(IllegalTransition, match="ItemState WAITING does not allow"):
            box.transact(DO[act][0])
        assert box.transact(lambda store: store.index.state_of(1)) is ItemState.WAITING


def test_a_transaction_that_is_rolled_back_leaves_the_item_in_its_state(tmp_path: Path) -> None:
    def fail(store: Store) -> None:
        DO["deliver"][0](store)
        raise ZeroDivisionError

    with outbox(tmp_path, BRIEF) as box:
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
