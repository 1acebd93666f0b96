"""The status of concerns, what it logs, and who gets the events that concerns publish."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from agent.daemon.snapshot import FotaStatus, LinkStatus, OutboxStatus, Phase
from agent.daemon.status import AgentEvent, AgentEventKind, StatusRegistry
from agent.errors import AgentError


async def test_who_watches_is_woken_by_a_change():
    registry = StatusRegistry()
    concern = registry.add_concern(LinkStatus, "left")
    waiting = asyncio.ensure_future(registry.changed())
    await asyncio.sleep(0)
    assert not waiting.done()
    concern.record_failure(AgentError("away"))
    await waiting
    assert concern.status.trouble == "away"


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


def test_a_state_has_the_time_of_its_change_and_its_end_is_logged_with_how_long_it_took(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO)
    now = [1000.0]
    concern = StatusRegistry(clock=lambda: now[0]).add_concern(OutboxStatus)
    concern.record_failure(AgentError("no answer"))
    now[0] += 7200
    concern.record_failure(AgentError("no answer"))
    assert concern.status.since == 1000.0
    concern.set_well()
    assert (concern.status.since, concern.status.failures) == (8200.0, 0)
    assert caplog.messages == ["no answer", "works again after 2.0 h, after 2 tries"]
