"""What one browser is sent: what it lacks, and no more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent.page.difference import ORDER_S, Seen
from agent.page.markup import Html
from agent.page.view import View


def view(order: str, *, says: dict[str, str] | None = None) -> View:
    parts = {name: Html(f"<p>{name}</p>") for name in order}
    return View("h", parts, {"list": list(order)}, says or {})


def test_the_order_changes_at_most_every_ten_seconds_and_members_at_once() -> None:
    seen = Seen()
    assert seen.difference(view("ab"), 0).lists == {"list": ["a", "b"]}
    assert seen.difference(view("ba"), 1).lists == {}
    assert seen.difference(view("bac"), 2).lists == {"list": ["b", "a", "c"]}
    assert seen.difference(view("cab"), 3).lists == {}
    assert seen.difference(view("cab"), 3 + ORDER_S).lists == {"list": ["c", "a", "b"]}


def test_what_happened_is_said_once_and_what_went_away_is_not() -> None:
    seen = Seen()
    assert seen.difference(view("a", says={"a": "well", "b": "well"}), 0).says == []
    assert seen.difference(view("a", says={"a": "trouble"}), 1).says == ["trouble"]
    assert seen.difference(view("a", says={"a": "trouble"}), 2).says == []


def test_a_week_of_changes_leaves_no_more_than_the_newest() -> None:
    seen, now = Seen(), datetime(2026, 11, 22, tzinfo=UTC)
    for minute in range(7 * 24 * 60):
        at = now + timedelta(minutes=minute)
        seen.difference(View("h", {"a": view("a").parts["a"] + str(at)}, {}), minute * 60.0)
    assert len(seen.__dict__) == 2
    assert set(seen._view.parts) == {"a"}
