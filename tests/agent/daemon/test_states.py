"""What a concern's phase and facts mean for a person, and the headline of them all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.daemon.snapshot import (
    ConcernStatus,
    ConsoleStatus,
    Crash,
    EventsStatus,
    Finding,
    FotaStatus,
    HousekeepingStatus,
    KitStatus,
    LikelyCause,
    LinkStatus,
    LocationStatus,
    OutboxStatus,
    Phase,
    State,
)
from agent.daemon.states import TABLE, headline, row_of, worst

NOW = datetime(2026, 11, 22, 6, 10, tzinfo=UTC)
OFF = Finding("the modem is off", "`cellagent modem at AT+CFUN=1`")
CAUSE = LikelyCause(
    "not-on-plan", "likely", "the plan has no LTE-M", "+CEREG: 3", "ask the operator"
)


@dataclass
class Case:
    kind: type[ConcernStatus]
    phase: Phase
    state: State
    facts: dict[str, Any]


CASES = [
    Case(LinkStatus, Phase.WELL, State.WELL, {}),
    Case(LinkStatus, Phase.STARTING, State.WORKING, {}),
    Case(LinkStatus, Phase.WELL, State.ATTENTION, {"findings": [OFF]}),
    Case(LinkStatus, Phase.WELL, State.ATTENTION, {"cause": CAUSE}),
    Case(LinkStatus, Phase.TROUBLE, State.TROUBLE, {"findings": [OFF]}),
    Case(LinkStatus, Phase.WAITING, State.UNKNOWN, {"held_by": "west"}),
    Case(LinkStatus, Phase.WELL, State.UNKNOWN, {"busy_with": "lent to cellagent modem term"}),
    Case(LinkStatus, Phase.WELL, State.WORKING, {"busy_with": "a scan of cells"}),
    Case(FotaStatus, Phase.WELL, State.WORKING, {"stage": "download"}),
    Case(FotaStatus, Phase.WAITING, State.UNKNOWN, {"trouble": "the link to the kit"}),
    Case(LocationStatus, Phase.WELL, State.ATTENTION, {"unreported": "404"}),
    Case(LocationStatus, Phase.OFF, State.WELL, {"trouble": "location.interval_s is 0"}),
    Case(EventsStatus, Phase.OFF, State.ATTENTION, {"trouble": "no key", "hint": "set it"}),
    Case(ConsoleStatus, Phase.WELL, State.ATTENTION, {"lost": 2}),
    Case(OutboxStatus, Phase.WELL, State.ATTENTION, {"parked": 1}),
]


def made(kind: type[ConcernStatus], phase: Phase = Phase.WELL, **facts: Any) -> Any:
    status = kind(State.WELL, phase, None, None, 0, NOW)
    for name, value in facts.items():
        setattr(status, name, value)
    status.state = row_of(status, NOW).state
    return status


def kit(name: str, concerns: list[Any]) -> KitStatus:
    all_of_it = [*concerns, made(LinkStatus), made(ConsoleStatus)]
    return KitStatus(name, "port", worst(each.state for each in all_of_it), all_of_it)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.phase} {list(case.facts)}")
def test_each_state_of_affairs_has_its_state(case: Case):
    assert made(case.kind, case.phase, **case.facts).state is case.state


def test_a_crash_asks_for_attention_for_an_hour():
    status = made(ConsoleStatus, crash=Crash(NOW, "bus fault", "0x0001a2b4"))
    states = [row_of(status, NOW + timedelta(minutes=late)).state for late in (0, 59, 60)]
    assert states == [State.ATTENTION, State.ATTENTION, State.WELL]


def test_the_table_is_in_the_order_of_weight_and_ends_with_what_always_holds():
    order = list(State)
    assert all(order.index(a.state) <= order.index(b.state) for a, b in pairwise(TABLE))
    assert TABLE[-1].state is State.WELL


@given(st.lists(st.sampled_from(CASES), max_size=6))
def test_the_headline_is_never_better_than_any_concern(cases: list[Case]):
    kits = [kit("left", [made(each.kind, each.phase, **each.facts) for each in cases])]
    line = headline([made(HousekeepingStatus)], kits, NOW)
    assert line.state is worst(case.state for case in cases)
    assert line.says


def test_the_headline_says_how_many_kits_which_and_the_way_out():
    kits = [kit("left", []), kit("right", [made(LinkStatus, findings=[OFF])])]
    line = headline([], kits, NOW)
    assert line.says == "1 of 2 kits to look at; right: link: the modem is off"
    assert (line.kit, line.concern, line.hint) == ("right", "link", OFF.hint)
    assert headline([], kits[:1], NOW).says == "1 kit, all is well"


def test_of_two_troubles_of_a_kit_that_of_its_link_is_the_headline():
    early = made(LocationStatus, Phase.TROUBLE, trouble="no place", since=NOW - timedelta(hours=1))
    lost = made(LinkStatus, Phase.TROUBLE, trouble="the port is not there")
    line = headline([], [kit("left", [early, lost])], NOW)
    assert line.says == "1 of 1 kit in trouble; left: link: the port is not there"
