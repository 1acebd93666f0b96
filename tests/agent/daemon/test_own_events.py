"""What the agent reports of itself, and how a kit's faults are numbered."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

import agent
from agent.daemon.kit.events import event_item, heartbeat_item
from agent.daemon.kit.updates import JOB_END_KINDS
from agent.daemon.status import AgentEvent, AgentEventKind
from agent.fota.jobs import JobStatus
from agent.observability.ingest.device_identity import DeviceIdentity
from agent.redact import hide
from agent.wiring.forwarding import trace_reason

KIT = DeviceIdentity("kit-1", "nrf9161dk", "main", "1.0.0")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.contract("O3.4")
@pytest.mark.parametrize("happening", list(AgentEventKind))
def test_what_happened_is_a_trace_with_the_time_it_happened(happening):
    item = event_item(AgentEvent(happening, NOW, "x" * 2000), KIT, "left")
    event = json.loads(item.body)
    assert event["type"] == "trace"
    assert event["captured_date"] == "2026-01-02T03:04:05Z"
    assert event["event_info"]["reason"] == happening.value[1]
    assert event["user_info"] == {
        "agent_event": happening.value[0],
        "detail": "x" * 500,
        "software_type": "main",
        "software_version": "1.0.0",
    }
    assert item.captured_s == NOW.timestamp()


def test_the_agent_is_a_component_of_its_own_on_the_kits_device():
    for item in (event_item(AgentEvent(AgentEventKind.LINK_LOST, NOW), KIT, "left"), beat()):
        event = json.loads(item.body)
        assert (event["device_serial"], event["hardware_version"]) == ("kit-1", "nrf9161dk")
        assert (event["software_type"], event["software_version"]) == (
            "cellagent",
            agent.__version__,
        )


def beat():
    return heartbeat_item({"link_up_s": 3600.0}, KIT, "left", NOW)


def test_what_is_not_known_of_the_kits_software_is_not_named():
    unknown = DeviceIdentity("kit-1", "unknown", "unknown", "unknown")
    event = json.loads(event_item(AgentEvent(AgentEventKind.LINK_LOST, NOW), unknown, "left").body)
    assert event["user_info"] == {"agent_event": "link lost"}


def test_the_same_happening_has_the_same_key_and_no_other_has():
    def key(what: AgentEventKind, seconds: float, kit: str = "left", key: str = "") -> str | None:
        at = NOW + timedelta(seconds=seconds)
        return event_item(AgentEvent(what, at, "a", key), KIT, kit).key

    assert key(AgentEventKind.FOTA_FAILED, 0, key="job") == key(
        AgentEventKind.FOTA_FAILED, 9, key="job"
    )
    keys = [
        key(AgentEventKind.LINK_LOST, 0),
        key(AgentEventKind.LINK_LOST, 0.5),
        key(AgentEventKind.MODEM_RESET, 0),
        key(AgentEventKind.LINK_LOST, 0, "right"),
        key(AgentEventKind.FOTA_FAILED, 0, key="job"),
        key(AgentEventKind.FOTA_FAILED, 0, key="other"),
        beat().key,
    ]
    assert len(set(keys)) == len(keys)


def test_a_secret_in_what_went_wrong_is_hidden():
    hide("a-key-that-nobody-may-see")
    item = event_item(
        AgentEvent(AgentEventKind.WATCHDOG, NOW, "a-key-that-nobody-may-see"), KIT, "left"
    )
    assert b"nobody-may-see" not in item.body


def test_a_port_may_have_any_name():
    item = event_item(
        AgentEvent(AgentEventKind.LINK_LOST, NOW, "/dev/tty\udcff was lost"), KIT, "left"
    )
    assert json.loads(item.body)["user_info"]["detail"] == "/dev/tty\\udcff was lost"


def test_every_end_of_a_job_is_an_event_but_one_that_the_cloud_took_back():
    ends = {status: JOB_END_KINDS.get(status) for status in JobStatus if status.final}
    assert ends == {
        JobStatus.SUCCEEDED: AgentEventKind.FOTA_SUCCEEDED,
        JobStatus.FAILED: AgentEventKind.FOTA_FAILED,
        JobStatus.TIMED_OUT: AgentEventKind.FOTA_FAILED,
        JobStatus.REJECTED: AgentEventKind.FOTA_REJECTED,
        JobStatus.CANCELLED: None,
    }


@pytest.mark.parametrize(
    ("reasons", "number"),
    [
        ([2, 17, 32], 0x800B),
        ([16, 18, 19, 20, 21], 0x9200),
        (range(22, 29), 0x9100),
        ([29, 30, 31, 33, 34, 35, 36], 0x9300),
        ([3, 4], 0x8008),
        ([37, 40, 99], 0x9402),
        ([0, 1, 5, 15], 0x9400),
    ],
)
def test_each_reason_of_the_kernel_has_the_services_number(reasons, number):
    assert {trace_reason(reason) for reason in reasons} == {number}
