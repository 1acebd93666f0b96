"""The status of concerns, what it logs, and who gets the events that concerns publish."""

from __future__ import annotations

import asyncio
import errno
import logging
from datetime import UTC, datetime

import msgspec
import pytest

from agent.daemon.snapshot import (
    ConsoleStatus,
    Crash,
    FotaStatus,
    LinkStatus,
    LocationStatus,
    OutboxStatus,
    Phase,
    State,
)
from agent.daemon.status import AgentEvent, AgentEventKind, Concern, StatusRegistry
from agent.errors import AgentError, BadAnswer, RateLimited, ServerTrouble, Unreachable, Untrusted
from at.protocol.errors import LinkLost, PortNotFound


async def test_who_watches_is_woken_by_a_change():
    registry = StatusRegistry()
    concern = registry.add_concern(LinkStatus, "left")
    waiting = asyncio.ensure_future(registry.changed())
    await asyncio.sleep(0)
    assert not waiting.done()
    concern.record_failure(AgentError("away"))
    await waiting
    assert concern.status.trouble == "away"


def test_what_was_recorded_before_the_clock_was_set_keeps_its_age():
    now = 500.0  # a host without a clock of its own begins in 1970
    registry = StatusRegistry(clock=lambda: now)
    console = registry.add_concern(ConsoleStatus, "left")
    with console.changing() as status:
        status.crash = Crash(registry.now(), "bus fault")
    now += 1.8e9 + 60.0
    late = registry.add_concern(LinkStatus, "left")
    now += 5.0
    registry.clock_was_set(1.8e9)
    assert console.status.crash is not None
    crashed_at = console.status.crash.at
    times = registry.since, console.status.since, crashed_at, late.status.since
    assert [now - at.timestamp() for at in times] == [65.0, 65.0, 65.0, 5.0]
    assert console.status.state is State.ATTENTION, "it crashed in the last hour"


async def test_what_happens_to_the_agent_happens_to_each_kit_and_no_others_business_to_one():
    registry = StatusRegistry()
    link, outbox = registry.add_concern(LinkStatus, "left"), registry.add_concern(OutboxStatus)
    received: list[AgentEvent] = []
    registry.subscribe("right", received.append)
    link.publish(AgentEventKind.LINK_LOST, "away")
    outbox.publish(AgentEventKind.WATCHDOG, "a defect")
    assert [each.kind for each in received] == [AgentEventKind.WATCHDOG]
    registry.remove_kit("right")
    outbox.publish(AgentEventKind.WATCHDOG, "a defect")
    assert len(received) == 1


def test_a_removed_kit_has_no_concern_any_more_and_the_others_keep_theirs():
    registry = StatusRegistry()
    for kind, kit in ((OutboxStatus, ""), (LinkStatus, "left"), (LinkStatus, "right")):
        registry.add_concern(kind, kit)
    registry.remove_kit("left")
    assert [(each.name, each.kit) for each in registry.concerns] == [
        ("outbox", ""),
        ("link", "right"),
    ]


def test_a_fact_is_shown_until_it_is_none():
    concern = StatusRegistry().add_concern(LinkStatus, "left")
    with concern.changing() as status:
        status.firmware, status.baud = "mfw_nrf91x1_2.0.4", 115200
    assert msgspec.to_builtins(status)["firmware"] == "mfw_nrf91x1_2.0.4"
    status.firmware = None
    assert "firmware" not in msgspec.to_builtins(status)
    assert msgspec.to_builtins(status)["baud"] == 115200


def test_waiting_for_the_link_hides_no_trouble_of_ones_own():
    concern = StatusRegistry().add_concern(FotaStatus, "left")
    concern.set_waiting("the link to the kit")
    assert (concern.phase, concern.status.trouble) == (Phase.WAITING, "the link to the kit")
    concern.record_failure(AgentError("no key"))
    concern.set_waiting("the link to the kit")
    assert (concern.phase, concern.status.trouble) == (Phase.TROUBLE, "no key")


def test_a_trouble_with_a_service_that_answers_again_does_not_outlast_a_wait_for_the_kit(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO)
    now = [0.0]
    registry = StatusRegistry(clock=lambda: now[0])
    concern = registry.add_concern(LocationStatus, "left")
    concern.record_failure(Unreachable("nothing listens there"))
    concern.set_waiting("the link to the kit")
    assert concern.status.trouble == "nothing listens there", "it is not known to have ended"
    now[0] += 120
    registry.service_is_back()
    assert concern.wake.is_set()
    concern.set_waiting("the link to the kit")
    assert (concern.phase, concern.status.trouble) == (Phase.WAITING, "the link to the kit")
    assert (concern.status.failures, concern.awaits_service) == (0, False)
    assert caplog.messages[1:] == ["the service answers again after 2 min"]
    registry.service_is_back()  # of which it knows
    concern.record_failure(AgentError("no key"))
    concern.set_waiting("the link to the kit")
    assert concern.status.trouble == "no key"
    concern.record_failure(Unreachable("nothing listens there"))
    registry.service_is_back()
    concern.record_failure(Unreachable("nothing listens there"))
    concern.set_waiting("the link to the kit")
    assert concern.phase is Phase.TROUBLE, "another one of its services answers"


def test_what_a_disk_did_not_take_is_told_with_what_it_lacks():
    concern = StatusRegistry().add_concern(LocationStatus, "kit")
    error = AgentError("kit.json: No space left on device")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    concern.record_failure(error)
    assert "`df -i`" in (concern.status.hint or "")


def test_a_state_has_the_time_of_its_change_and_its_end_is_logged_with_how_long_it_took(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO)
    now = [1000.0]
    concern = StatusRegistry(clock=lambda: now[0]).add_concern(OutboxStatus)
    concern.record_failure(AgentError("no answer"))
    now[0] += 7200
    concern.record_failure(AgentError("no answer"))
    assert concern.status.since == datetime.fromtimestamp(1000, UTC)
    concern.set_well()
    assert (concern.status.since.timestamp(), concern.status.failures) == (8200.0, 0)
    assert caplog.messages == ["no answer", "works again after 2 h, after 2 tries"]


def trouble_and_end(concern: Concern[OutboxStatus]) -> None:
    concern.record_failure(AgentError("no answer", hint="look"))
    concern.set_well()


def test_a_trouble_that_comes_and_goes_all_day_is_told_a_few_times_an_hour(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO)
    now = [0.0]
    concern = StatusRegistry(clock=lambda: now[0]).add_concern(OutboxStatus)
    for _ in range(24 * 60):
        trouble_and_end(concern)
        now[0] += 60
    assert len(caplog.messages) <= 24 * 2 * 6
    assert sum("try: look" in line for line in caplog.messages) <= 24
    begun = sum(line.startswith("no answer") for line in caplog.messages)
    assert begun * 2 == len(caplog.messages), "each that is told has its end"


def test_what_one_outage_asks_for_is_told_once_an_hour_however_many_kits_suffer(
    caplog: pytest.LogCaptureFixture,
):
    now = [0.0]
    registry = StatusRegistry(clock=lambda: now[0])
    for number in range(3):
        registry.add_concern(FotaStatus, f"kit{number}")
    for now[0] in (0.0, 1.0, 3600.0):
        for concern in registry.concerns:
            concern.record_failure(AgentError("nothing listens", hint="serve it"))
            concern.set_well()
    told = f"{datetime.fromtimestamp(0, UTC).astimezone():%H:%M:%S}"
    lines = [line for line in caplog.messages if "nothing listens" in line]
    assert lines[:3] == [
        "nothing listens; try: serve it",
        *(f"nothing listens (what to try: see {told})" for _ in range(2)),
    ]
    assert [line for line in lines if "; try:" in line] == [lines[0], lines[6]]


def test_a_trouble_that_stays_is_told_though_it_came_too_often_before(
    caplog: pytest.LogCaptureFixture,
):
    now = [0.0]
    concern = StatusRegistry(clock=lambda: now[0]).add_concern(OutboxStatus)
    for _ in range(10):
        trouble_and_end(concern)
    caplog.clear()
    concern.record_failure(AgentError("no answer", hint="look"))
    assert not caplog.messages
    now[0] += 3600
    concern.record_failure(AgentError("no answer", hint="look"))
    concern.record_failure(AgentError("no answer", hint="look"))
    assert [line.partition(" (and")[0] for line in caplog.messages] == ["no answer"]


def test_when_a_service_is_back_whatever_waits_for_it_is_woken_and_nothing_else():
    registry = StatusRegistry()
    outbox, fota, location = (
        registry.add_concern(kind) for kind in (OutboxStatus, FotaStatus, LocationStatus)
    )
    told: list[str] = []
    registry.on_service_back = lambda: told.append("back")
    outbox.record_failure(Unreachable("no route"))
    fota.record_failure(ServerTrouble("500", status=500))
    location.record_failure(AgentError("no cell"))
    fota.set_well()
    assert (outbox.wake.is_set(), location.wake.is_set(), told) == (True, False, ["back"])
    location.set_well()
    assert told == ["back"]
    outbox.record_failure(Untrusted("its certificate has expired"))
    assert outbox.awaits_service, "it is renewed one day, and the wait is up to an hour"
    location.record_failure(BadAnswer("a log-in page"))
    location.set_well()
    assert told == ["back", "back"]


def test_an_answer_that_is_none_of_the_services_has_a_way_out():
    registry = StatusRegistry()
    registry.profile = "lab"
    concern = registry.add_concern(LocationStatus)
    concern.record_failure(BadAnswer("locate: expected JSON, got 8 bytes of text/plain"))
    assert (concern.status.hint or "").startswith("`cellagent doctor --profile lab`")
    concern.record_failure(BadAnswer("locate: a redirect", hint="log in first"))
    assert concern.status.hint == "log in first"


def test_what_needs_a_reload_is_not_said_to_go_on_by_itself():
    registry = StatusRegistry()
    registry.profile = "lab"
    concern = registry.add_concern(OutboxStatus)
    concern.record_failure(Unreachable("gone", hint="look at the cable"))
    assert concern.status.hint == "look at the cable; all goes on by itself"
    concern.record_failure(Unreachable("no route"))
    assert (concern.status.hint or "").startswith("is this host online? ")
    concern.record_failure(ServerTrouble("the service answered 500", status=500))
    told = "wait: the fault is the service's own; all goes on by itself"
    assert concern.status.hint == told, "a host that got an answer is online"
    concern.record_failure(Unreachable("away", hint="then `cellagent reload`"))
    assert concern.status.hint == "then `cellagent reload --profile lab`"


@pytest.mark.parametrize(
    "error",
    [
        RateLimited("429", status=429, retry_after_s=300.0),
        RateLimited("429, and a date in the past", status=429, retry_after_s=0.0),
        ServerTrouble("503", status=503, retry_after_s=300.0),
    ],
)
def test_a_service_that_asks_for_a_wait_is_not_asked_before_and_the_status_says_so(error):
    concern = StatusRegistry().add_concern(OutboxStatus)
    concern.record_failure(error)
    assert not concern.awaits_service
    assert concern.status.hint == "wait: the service asks for it; all goes on by itself"


@pytest.mark.parametrize(
    ("hint", "pasted"),
    [
        ("`cellagent modem on` helps", "`cellagent modem on --profile lab --port tcp://h:1` helps"),
        ("`cellagent modem import a.log`", "`cellagent modem import a.log --profile lab`"),
        ("`cellagent config show`", "`cellagent config show --profile lab`"),
        (
            "`cellagent provision run -- x`",
            "`cellagent provision run --profile lab --port tcp://h:1 -- x`",
        ),
        ("`cellagent cloud serve --write-profile lab`",) * 2,
        ("plug it in", "plug it in"),
    ],
)
def test_a_command_to_try_has_the_profile_and_the_port(hint: str, pasted: str):
    registry = StatusRegistry()
    registry.profile, registry.ports["left"] = "lab", "tcp://h:1"
    assert registry.add_concern(LinkStatus, "left").pasteable(hint) == pasted


@pytest.mark.parametrize(
    ("has_table", "key"), [(True, "'kits.the left.device_id'"), (False, "kit.device_id")]
)
def test_a_key_to_set_is_that_of_the_kit_that_lacks_it(has_table: bool, key: str):
    registry = StatusRegistry()
    registry.has_table = has_table
    concern = registry.add_concern(LinkStatus, "the left")
    hint = "`cellagent config set kit.device_id ID`; the kit.log"
    assert concern.pasteable(hint) == f"`cellagent config set {key} ID`; the kit.log"
    assert registry.add_concern(OutboxStatus).pasteable(hint) == hint


def test_an_unplugged_kit_is_shown_with_what_helps_by_now(caplog: pytest.LogCaptureFixture):
    concern = StatusRegistry().add_concern(LinkStatus, "left")
    concern.record_failure(LinkLost("/dev/ttyACM0 was lost", hint="plug the kit in again"))
    no_port = "there is no port /dev/ttyACM0"
    for hint in ("is it plugged in?", "did you mean '/dev/ttyACM1'?"):
        assert not concern.record_failure(PortNotFound(no_port, hint=hint))
        assert (concern.status.trouble, concern.status.hint) == (no_port, hint)
    assert len(caplog.records) == 1, "it is one trouble"


def test_it_says_when_it_tries_again_until_it_tries():
    concern = StatusRegistry(clock=lambda: 1000.0).add_concern(LinkStatus, "left")
    concern.record_failure(AgentError("away"))
    concern.set_next_try(60.0)
    assert concern.status.next_try == datetime.fromtimestamp(1060, UTC)
    concern.begin_try()
    assert concern.status.next_try is None
