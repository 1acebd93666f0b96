from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from agent.config.value_types import KeepOnline
from agent.daemon.kit.keep_online import (
    LOOP_BOOTS,
    LOOP_S,
    STEADY_S,
    TRANSITIONS,
    TURNS,
    KeepEvent,
    KeepState,
    OnlineKeeper,
)
from at.virtual.server.runner import ModemRunner
from tests.support.commands.running_agent import (
    agent_on,
    concern_of,
    kit_keys,
    kit_to_crash,
    write_profile,
)

S, E = KeepState, KeepEvent
SETTLE_S = 30.0
SIGHTS = (E.SEEN_ON, E.SEEN_OFF, E.MISSED, E.RESTARTED, E.TURNED_OFF)


@pytest.mark.parametrize(
    ("before", "event", "after"),
    [
        *((state, E.SEEN_ON, S.ON) for state in S if state is not S.TURNED),
        (S.TURNED, E.SEEN_ON, S.TURNED),
        *((state, E.SEEN_OFF, S.OFF) for state in (S.UNSEEN, S.ON, S.OFF)),
        *((state, E.SEEN_OFF, S.SETTLING) for state in (S.SETTLING, S.TURNED)),
        *((state, E.MISSED, S.SETTLING) for state in S if state not in {S.GIVEN_UP, S.OFF_BY_HAND}),
        *((state, E.RESTARTED, S.SETTLING) for state in (S.ON, S.SETTLING, S.TURNED)),
        *((state, E.RESTARTED, state) for state in (S.UNSEEN, S.OFF)),
        *(
            (state, event, state)
            for state in (S.GIVEN_UP, S.OFF_BY_HAND)
            for event in (E.SEEN_OFF, E.MISSED, E.RESTARTED)
        ),
        *((state, E.TURNED_OFF, S.OFF_BY_HAND) for state in S),
        (S.SETTLING, E.TURN, S.TURNED),
        (S.SETTLING, E.GIVE_UP, S.GIVEN_UP),
        (S.TURNED, E.STEADY, S.ON),
    ],
)
def test_what_follows(before: KeepState, event: KeepEvent, after: KeepState) -> None:
    assert TRANSITIONS[before, event] is after


def test_there_is_no_other_row() -> None:
    acts = {(S.SETTLING, E.TURN), (S.SETTLING, E.GIVE_UP), (S.TURNED, E.STEADY)}
    seen = {(s, e) for s in S for e in SIGHTS}
    assert set(TRANSITIONS) == acts | seen


def keeper_of_a_kit_that_is_on() -> OnlineKeeper:
    keeper = OnlineKeeper(was_on=False)
    keeper.seen(0.0, is_on=True, policy="as-found")
    return keeper


def test_a_kit_that_a_restart_left_off_is_turned_on_once_its_firmware_had_its_time() -> None:
    keeper = keeper_of_a_kit_that_is_on()
    keeper.restarted(10.0)
    keeper.seen(11.0, is_on=False, policy="as-found")
    assert not keeper.is_turn_due(39.0, SETTLE_S)
    assert keeper.is_turn_due(40.0, SETTLE_S)
    assert not keeper.is_turn_due(41.0, SETTLE_S)


def test_a_kit_that_was_on_when_the_agent_was_killed_is_turned_on() -> None:
    keeper = OnlineKeeper(was_on=True)
    keeper.seen(5.0, is_on=False, policy="as-found")
    assert not keeper.is_turn_due(34.0, SETTLE_S)
    assert keeper.is_turn_due(35.0, SETTLE_S)


def test_a_kit_that_was_turned_off_or_found_off_stays_off() -> None:
    for keeper in (keeper_of_a_kit_that_is_on(), OnlineKeeper(was_on=False)):
        keeper.seen(1.0, is_on=False, policy="as-found")
        keeper.restarted(2.0)
        keeper.seen(3.0, is_on=False, policy="as-found")
        assert not keeper.is_turn_due(1000.0, SETTLE_S)
        assert not keeper.is_to_be_on


@pytest.mark.parametrize("policy", ["as-found", "always"])
def test_whoever_turns_it_off_through_the_agent_is_not_fought(policy: KeepOnline) -> None:
    keeper = keeper_of_a_kit_that_is_on()
    keeper.restarted(10.0)  # the agent means to turn it on
    keeper.seen(11.0, is_on=False, policy=policy, asked_off=True)
    keeper.restarted(20.0)
    keeper.seen(21.0, is_on=False, policy=policy)
    assert not keeper.is_turn_due(1000.0, SETTLE_S)
    assert not keeper.is_to_be_on
    keeper.seen(1001.0, is_on=True, policy=policy)
    keeper.restarted(1002.0)
    keeper.seen(1003.0, is_on=False, policy=policy)
    assert keeper.is_turn_due(1040.0, SETTLE_S)


def test_a_modem_that_was_just_turned_on_is_not_told_as_one_that_a_person_has_to() -> None:
    keeper = keeper_of_a_kit_that_is_on()
    keeper.restarted(1.0)
    keeper.seen(2.0, is_on=False, policy="as-found")
    assert keeper.is_to_be_turned_on
    assert keeper.is_turn_due(40.0, SETTLE_S)
    assert keeper.is_to_be_turned_on, "what was read before it was turned on is told after it"
    keeper.seen(41.0, is_on=False, policy="as-found")
    assert keeper.is_turn_due(80.0, SETTLE_S)
    keeper.seen(81.0, is_on=False, policy="as-found")
    assert not keeper.is_to_be_turned_on


def test_a_modem_that_was_asked_off_and_is_on_again_counts_as_on() -> None:
    keeper = keeper_of_a_kit_that_is_on()
    keeper.seen(11.0, is_on=True, policy="as-found", asked_off=True)
    assert keeper.is_to_be_on


def test_who_turns_it_off_and_on_again_has_it_kept_online_from_then_on() -> None:
    keeper, now = keeper_of_a_kit_that_is_on(), 0.0
    for turn in range(2 * TURNS):
        keeper.restarted(now := now + 1.0)
        keeper.seen(now, is_on=False, policy="as-found")
        now += SETTLE_S
        assert keeper.is_turn_due(now, SETTLE_S)
        keeper.seen(now, is_on=True, policy="as-found")
        if turn == TURNS - 1:
            keeper.seen(now, is_on=False, policy="as-found", asked_off=True)
            keeper.seen(now, is_on=True, policy="as-found")


@pytest.mark.parametrize("policy", ["as-found", "always"])
def test_an_application_that_turns_it_off_is_not_fought(policy: KeepOnline) -> None:
    keeper = keeper_of_a_kit_that_is_on()
    keeper.restarted(1.0)
    turns, now = 0, 1.0
    for _ in range(20):
        now += SETTLE_S
        keeper.seen(now, is_on=False, policy=policy)
        if keeper.is_turn_due(now, SETTLE_S):
            turns += 1
            keeper.seen(now + 1, is_on=True, policy=policy)
    assert turns == TURNS
    assert keeper.state is S.GIVEN_UP
    assert any("turned on 2 times" in one.what for one in keeper.findings(now))
    keeper.seen(now, is_on=True, policy=policy)
    assert not list(keeper.findings(now))


def test_a_kit_that_was_steady_is_turned_on_again_at_each_restart() -> None:
    keeper, now = keeper_of_a_kit_that_is_on(), 0.0
    for _ in range(10):
        now += STEADY_S
        keeper.restarted(now)
        now += SETTLE_S
        keeper.seen(now, is_on=False, policy="as-found")
        assert keeper.is_turn_due(now, SETTLE_S)
        now += STEADY_S
        keeper.seen(now, is_on=True, policy="as-found")
        assert keeper.state is S.ON


def test_restarts_over_and_over_and_the_modems_own_protection_are_named() -> None:
    keeper = keeper_of_a_kit_that_is_on()
    for at in range(LOOP_BOOTS - 1):
        keeper.restarted(float(at))
    keeper.restarted(9.0, is_boot=False)
    assert not list(keeper.findings(9.0))
    keeper.restarted(10.0)
    assert "5 times in 10 s" in next(keeper.findings(10.0)).what
    assert list(keeper.findings(LOOP_S))
    assert not list(keeper.findings(LOOP_S + 1.0))
    keeper.protects_itself = True
    assert "RESET LOOP" in next(keeper.findings(1000.0)).what


STEPS = st.lists(
    st.tuples(st.sampled_from(["on", "off", "boot", "away", "due"]), st.floats(0.0, 700.0)),
    max_size=60,
)


@given(steps=STEPS, policy=st.sampled_from(["as-found", "always"]), was_on=st.booleans())
def test_no_order_of_events_turns_it_on_before_its_time_or_a_third_time(
    steps: list[tuple[str, float]], policy: KeepOnline, was_on: bool
) -> None:
    keeper, now, last_restart, turns = OnlineKeeper(was_on=was_on), 0.0, -1000.0, 0
    for what, passed in steps:
        now += passed
        if what in {"on", "off"}:
            turns = 0 if what == "on" and keeper.state is not S.TURNED else turns
            keeper.seen(now, is_on=what == "on", policy=policy)
            turns = 0 if what == "on" and keeper.state is S.ON else turns
        elif what == "due":
            if keeper.is_turn_due(now, SETTLE_S):
                turns += 1
                assert now - last_restart >= SETTLE_S
        else:
            last_restart = now
            keeper.restarted(now, is_boot=what == "boot")
        assert turns <= TURNS


NO_CLOUD: dict[str, Any] = {
    "urls": {},
    "organization": "o",
    "project": "p",
    "credentials": dict.fromkeys(("api_key", "organization_auth_token", "project_key"), ""),
}
POLICIES = [
    # policy, whether it is on when it is found, and whether it is on again after a restart
    ("as-found", True, True),
    ("as-found", False, False),
    ("never", True, False),
    ("always", False, True),
]


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize(("policy", "is_on", "comes_back"), POLICIES)
async def test_a_running_agent_turns_a_kit_on_after_a_restart_as_the_profile_says(
    tmp_path: Path, policy: str, is_on: bool, comes_back: bool
):
    keys = {**kit_keys(tmp_path), "companion_port": "", "keep_online": policy, "settle_s": 1}
    where = write_profile(tmp_path, NO_CLOUD, {"kit": keys})
    async with kit_to_crash(tmp_path) as kit, agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        if is_on:
            assert (await agent.run("modem", "at", "AT+CFUN=1")).code == 0
        if is_on or policy == "always":
            await agent.until_status(
                lambda now: concern_of(now, "kit", "link")["registration"] == 1
            )
        kit.crash()
        await agent.until_status(
            lambda now: (
                concern_of(now, "kit", "link").get("restarts") == 1
                and (concern_of(now, "kit", "link")["registration"] == 1) is comes_back
                and comes_back is not any("off" in line for line in findings(now))
            )
        )


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
async def test_a_running_agent_gives_up_on_a_kit_that_is_off_again_after_two_turns(tmp_path: Path):
    turns = 0

    def off_again(kit: ModemRunner) -> Callable[[bytes], None]:
        def receive(data: bytes) -> None:
            nonlocal turns
            kit.receive(data)
            if b"AT+CFUN=1" in data:
                turns += 1
                kit.crash()

        return receive

    keys = {**kit_keys(tmp_path), "companion_port": "", "keep_online": "always", "settle_s": 1}
    where = write_profile(tmp_path, NO_CLOUD, {"kit": keys})
    async with kit_to_crash(tmp_path, receives=off_again), agent_on(where) as agent:
        await agent.until_status(
            lambda now: any("was turned on 2 times" in line for line in findings(now))
        )
    assert turns == 2


def findings(status: dict[str, Any]) -> list[str]:
    return [each["what"] for each in concern_of(status, "kit", "link").get("findings") or []]
