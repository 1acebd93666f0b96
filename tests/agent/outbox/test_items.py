"""What may be an item at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from outboxes import LIMITS, bodies, event, outbox

from agent.errors import UsageError
from agent.json_value import JSONValue
from agent.outbox import ItemKind, NewItem
from agent.outbox.handoff import FOLDER, collect, hand_off


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
