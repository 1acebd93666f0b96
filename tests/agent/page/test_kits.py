"""The kits as they are shown: the worst first, with cause and next step, absent facts said."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.daemon.snapshot import (
    ConsoleStatus,
    Crash,
    Finding,
    FotaStatus,
    KitOutbox,
    LikelyCause,
    LinkStatus,
    OutboxStatus,
    Phase,
    Reading,
    State,
)
from agent.page.kits import kits_view
from agent.page.view import Painted
from tests.support.page.statuses import NOW, kit, status

CAUSE = LikelyCause("no-plan", "certain", "no LTE-M in the plan", "+CEREG: 3", "ask for LTE-M")


def shown(*kits: Any, **chosen: str) -> Any:
    return kits_view(status(*kits), NOW, Painted(), **chosen)


def test_the_worst_is_first_and_then_the_longest() -> None:
    view = shown(
        kit("well", since=NOW - timedelta(hours=2)),
        kit("new", state=State.TROUBLE, since=NOW),
        kit("old", state=State.TROUBLE, since=NOW - timedelta(hours=1)),
        kit("odd", state=State.ATTENTION),
    )
    assert view.lists["cards"] == ["kit-old", "kit-new", "kit-odd", "kit-well"]
    assert view.headline == "3 of 4 kits need you"


@pytest.mark.parametrize(
    ("states", "headline"),
    [
        ([State.WELL], "1 kit, all well"),
        ([State.WELL, State.UNKNOWN], "1 of 2 kits not heard"),
        ([State.WELL, State.WORKING], "2 kits, none needs you"),
        ([State.TROUBLE], "1 of 1 kit needs you"),
        ([], "No kit yet"),
    ],
)
def test_the_headline_is_a_sentence_with_numbers(states: list[State], headline: str) -> None:
    assert shown(*(kit(f"k{n}", state=s) for n, s in enumerate(states))).headline == headline


def test_a_cause_has_its_certainty_its_evidence_and_one_step() -> None:
    card = shown(kit("a", state=State.ATTENTION, cause=CAUSE)).parts["kit-a"]
    for words in ("no LTE-M in the plan", "certain", "+CEREG: 3", "ask for LTE-M"):
        assert words in card


def test_a_link_in_trouble_says_so_whatever_was_found_before() -> None:
    card = shown(kit("a", state=State.TROUBLE, cause=CAUSE)).parts["kit-a"]
    assert card.index("its port went away") < card.index(CAUSE.says)


def test_a_kit_is_in_its_state_since_the_first_concern_that_makes_it_so() -> None:
    both = kit("both", state=State.TROUBLE, since=NOW)
    console = both.concern(ConsoleStatus)
    console.state, console.since = State.TROUBLE, NOW - timedelta(hours=1)
    one = kit("one", state=State.TROUBLE, since=NOW - timedelta(minutes=30))
    assert shown(one, both).lists["cards"] == ["kit-both", "kit-one"]


def test_what_waits_for_the_link_is_not_told_beside_what_is_wrong_with_it() -> None:
    waits = kit("a", state=State.TROUBLE)
    fota = waits.concern(FotaStatus)
    fota.state, fota.phase, fota.trouble = State.UNKNOWN, Phase.WAITING, "the link to the kit"
    card = shown(waits).parts["kit-a"]
    assert "its port went away" in card
    assert "fota: " not in card


def test_a_kit_that_is_not_heard_says_so() -> None:
    card = shown(kit("a", state=State.UNKNOWN)).parts["kit-a"]
    assert "link: " in card


def test_a_finding_that_repeats_the_cause_is_not_shown_again() -> None:
    findings = [Finding(f"denied: {CAUSE.says}", None), Finding("no time", "`cellagent x`")]
    card = shown(kit("a", state=State.ATTENTION, cause=CAUSE, findings=findings)).parts["kit-a"]
    assert card.count(CAUSE.says) == 1
    assert "no time" in card
    assert re.search(r"<code[^>]*>cellagent x</code>", card), "a command is there to be copied"


def test_a_kit_that_is_well_says_little_and_what_is_not_known_is_said() -> None:
    card = shown(kit("a")).parts["kit-a"]
    assert "why" not in card
    assert card.count("not heard") >= 3
    assert "none offered" in card


def test_an_update_has_its_share_and_its_three_words() -> None:
    working = kit("a", state=State.WORKING)
    fota = working.concern(FotaStatus)
    fota.stage, fota.done, fota.total, fota.proof = "download", 412_000, 676_000, "intact: hash"
    card = shown(working).parts["kit-a"]
    assert "60 %, 412 of 676 kB" in card
    assert "size-checked yes · intact yes · verified no" in card
    assert "intact: hash" in card


def test_the_newest_values_and_a_crash_are_shown_with_their_units() -> None:
    reading = Reading(NOW, rsrp_dbm=-97, snr_db=6, supply_mv=3710, temperature_c=-4)
    one = kit("a", reading=reading, history=[reading])
    one.concerns[1].crash = Crash(NOW, "hard fault", "0x0002f41e")  # type: ignore[union-attr]
    card = shown(one).parts["kit-a"]
    for words in ("−97", "acceptable", "3.71 V · −4 °C", "hard fault at 0x0002f41e"):
        assert words in card


def test_a_state_is_chosen_and_one_without_kits_says_so() -> None:
    kits = kit("a", state=State.TROUBLE), kit("b")
    assert shown(*kits, state="well").lists["cards"] == ["kit-b"]
    empty = shown(*kits, state="working")
    assert "Of 2 kits none is in the state working" in empty.parts["nothing"]
    assert "config set kit.port" in shown().parts["nothing"]


def test_many_kits_are_rows_and_a_few_are_cards_unless_chosen() -> None:
    many = [kit(f"k{n}") for n in range(13)]
    assert "rows" in shown(*many).lists
    assert "cards" in shown(*many, density="cards").lists
    assert "rows" in shown(kit("a"), density="rows").lists


@pytest.mark.parametrize("density", ["rows", "cards"])
def test_a_registration_that_was_not_read_is_not_shown_as_none(density: str) -> None:
    part = shown(kit("a"), density=density).parts["kit-a"]
    assert "not heard" in part
    assert "not registered" not in part


def test_a_name_of_any_letters_is_an_address_and_an_id() -> None:
    view = shown(kit("a/b <c>"))
    assert view.lists["cards"] == ["kit-a%2Fb%20%3Cc%3E"]
    assert 'href="/kits/a%2Fb%20%3Cc%3E"' in view.parts["kit-a%2Fb%20%3Cc%3E"]


def test_what_all_kits_share_is_in_the_heading() -> None:
    found = status(kit("a"))
    found.outbox = OutboxStatus(
        State.TROUBLE,
        Phase.TROUBLE,
        "the service refuses",
        "log in",
        1,
        NOW,
        waiting=14,
        oldest=NOW,
    )
    head = kits_view(found, NOW, Painted()).parts["head"]
    assert "outbox: the service refuses" in head
    assert "14 wait, oldest" in head


def test_what_waits_of_a_kit_is_on_its_card_with_its_oldest_and_its_next_try() -> None:
    one = kit("a")
    assert "<dt>Outbox</dt><dd>empty</dd>" in shown(one).parts["kit-a"]
    one.outbox = KitOutbox(14, NOW - timedelta(minutes=5), NOW + timedelta(minutes=1))
    card = shown(one).parts["kit-a"]
    assert "<b>14 wait</b>, oldest" in card
    assert ", next try <time" in card
    assert "06:11:02" in card


def test_a_card_is_painted_again_only_when_the_kit_or_the_minute_is_another() -> None:
    painted, one = Painted(), kit("a")
    first = kits_view(status(one), NOW, painted).parts["kit-a"]
    same = kits_view(status(kit("a")), NOW + timedelta(seconds=1), painted).parts["kit-a"]
    assert same is first
    later = kits_view(status(one), NOW + timedelta(minutes=1), painted).parts["kit-a"]
    assert later is not first
    moved = kits_view(status(kit("a", registration=5)), NOW, painted).parts["kit-a"]
    assert "roaming" in moved


def test_times_of_another_day_have_their_date() -> None:
    one = kit("a", since=datetime(2026, 11, 20, 5, 31, tzinfo=UTC))
    assert isinstance(one.concern(LinkStatus), LinkStatus)
    assert "20 Nov 05:31" in shown(one).parts["kit-a"]
