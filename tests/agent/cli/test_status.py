"""A status for a person: what is well in one line, what is in trouble with the way out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.cli.status import lines_of
from agent.daemon.snapshot import AgentStatus

NOW = 1_000_000.0


def concern(name: str, state: str = "well", **facts: Any) -> dict[str, Any]:
    entry = {"concern": name, "state": state, "trouble": None, "try": None, "failures": 0}
    return {**entry, "since": NOW, **facts}


def status(*concerns: dict[str, Any], **outbox: Any) -> AgentStatus:
    """Return a status as the agent sends it, of a kit that has at least a link and a console."""
    given = {each["concern"] for each in concerns}
    others = [concern(name) for name in ("link", "console") if name not in given]
    kit = {"name": "left", "port": "/dev/ttyACM0", "concerns": [*others, *concerns]}
    message = {
        "agent": {"version": "1.0", "profile": "lab", "pid": 7, "since": NOW - 7300},
        "outbox": concern("outbox", **outbox),
        "housekeeping": concern("housekeeping"),
        "kits": [kit],
    }
    return msgspec.convert(message, AgentStatus)


def test_what_is_well_is_one_line_each_with_its_facts() -> None:
    lines = list(
        lines_of(
            status(
                concern("link", device_id="nrf-1", firmware="2.0.4", dialect="at-host"),
                concern("console", chunks=3, dumps=0, lost=2),
                waiting=4,
                parked=1,
                counts={"delivered": 9},
            ),
            NOW,
        )
    )
    assert lines == [
        "cellagent 1.0, profile lab, PID 7, up 2 h",
        "ok  outbox       4 waiting, 1 parked, 9 delivered",
        "",
        "left  /dev/ttyACM0  nrf-1",
        "  ok  link         2.0.4, at-host",
        "  ok  console      3 chunks, 2 LOST for want of room",
    ]


def test_trouble_has_its_age_its_reason_and_what_to_try_within_eighty_columns() -> None:
    reason = "the modem does not answer, " * 5 + "at all"
    link = concern("link", "trouble", trouble=reason, since=NOW - 45)
    lines = list(lines_of(status({**link, "try": "plug it in again"}), NOW))
    assert "  NO  link         trouble since 45 s" in lines
    assert lines[-1] == "      try: plug it in again"
    assert max(map(len, lines)) <= 80
    assert reason in " ".join(line.strip() for line in lines)


def test_a_lane_that_fails_says_since_when_how_often_and_when_it_is_tried_next() -> None:
    lane = {"device": "nrf-1", "kind": "chunk", "what": "the service answered 404 Not Found"}
    times = {"since": NOW - 300, "failures": 7, "next_try": NOW + 40, "held": 2}
    trouble = {"state": "trouble", "trouble": lane["what"], "since": NOW - 300}
    other = {**lane, **times, "kind": "event", "what": "reset", "held": 0, "next_try": NOW}
    lines = list(lines_of(status(waiting=9, failing=[{**lane, **times}, other], **trouble), NOW))
    assert lines[1:5] == [
        "NO  outbox       trouble since 5 min, 9 waiting, 0 delivered",
        "    the service answered 404 Not Found",
        "!   chunk of nrf-1: 7 tries in 5 min, 2 held apart, next try in 40 s",
        "!   event of nrf-1: 7 tries in 5 min, tries now: reset",
    ]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({"total": 200, "done": 50, "stage": "download"}, "download 25 %"),
        ({"total": 0, "stage": "reboot"}, "reboot"),
        (
            {"last": {"job": "j1", "status": "SUCCEEDED", "at": "2026-01-01T00:00:00+00:00"}},
            "last: j1 SUCCEEDED",
        ),
        ({}, ""),
    ],
)
def test_an_update_is_shown_by_its_progress_or_its_last_result(
    facts: dict[str, Any], shown: str
) -> None:
    lines = list(lines_of(status(concern("fota", **facts)), NOW))
    assert lines[-1] == f"  ok  fota         {shown}".rstrip()


def test_a_position_is_shown_with_its_uncertainty_and_age() -> None:
    position = {"lat": 63.42, "lon": 10.39, "uncertainty": 12.4, "with": "wifi"}
    position |= {"fulfilled_with": None, "cells": 0, "access_points": 2, "sources": [], "notes": []}
    at = "1970-01-12T13:46:10+00:00"  # thirty seconds before
    lines = list(lines_of(status(concern("location", position={**position, "at": at})), NOW))
    assert lines[-1] == "  ok  location     63.42000, 10.39000 \u00b1 12 m by wifi, 30 s ago"


def test_every_concern_counts_also_those_of_no_kit() -> None:
    names = [each.name for each in status(concern("location"), concern("fota")).concerns()]
    assert names == ["outbox", "housekeeping", "link", "console", "location", "fota"]
