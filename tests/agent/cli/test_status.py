"""A status for a person: what is well in one line, what is in trouble with the way out."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from agent.cli.status import lines_of
from agent.daemon.snapshot import AgentStatus, Headline, LinkStatus, State

NOW = datetime(2026, 11, 22, 6, 10, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def local(at: datetime) -> datetime:
    return at.astimezone()


def concern(name: str, state: str = "well", **facts: Any) -> dict[str, Any]:
    entry = {"concern": name, "state": state, "phase": state, "trouble": None, "try": None}
    entry["failures"] = 0
    return {**entry, "since": NOW, **facts}


def status(*concerns: dict[str, Any], **outbox: Any) -> AgentStatus:
    """Return a status as the agent sends it, of a kit that has at least a link and a console."""
    given = {each["concern"] for each in concerns}
    others = [concern(name) for name in ("link", "console") if name not in given]
    kit = {
        "name": "left",
        "port": "/dev/ttyACM0",
        "state": "well",
        "concerns": [*others, *concerns],
    }
    message = {
        "agent": {"version": "1.0", "profile": "lab", "pid": 7, "since": NOW - 7300 * SECOND},
        "headline": {"state": "well", "says": "1 kit, all is well"},
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
                concern("console", chunks=3, dumps=0, unstored=4, lost=2, damaged=1),
                concern("events", modem_reset_count=2, lost=1),
                waiting=4,
                parked=1,
                counts={"delivered": 9},
            ),
            NOW,
        )
    )
    assert lines == [
        "1 kit, all is well",
        "cellagent 1.0, profile lab, PID 7, up 2 h",
        "ok  outbox       4 waiting, 1 parked, 9 delivered",
        "",
        "left  /dev/ttyACM0  nrf-1",
        "  ok  link         2.0.4, at-host",
        "  ok  console      3 chunks, 4 in memory alone, 2 LOST for want of room, 1 chunk",
        "                   LOST to damage on the line",
        "  ok  events       2 x modem reset, 1 LOST for want of room",
    ]


def test_trouble_has_its_age_its_reason_and_what_to_try_within_eighty_columns() -> None:
    reason = "the modem does not answer, " * 5 + "at all"
    link = concern("link", "trouble", trouble=reason, since=NOW - 45 * SECOND)
    again = NOW + 9 * SECOND
    link |= {"failures": 12, "next_try": again}
    lines = list(lines_of(status({**link, "try": "plug it in again"}), NOW))
    since = f"trouble since {local(NOW - 45 * SECOND):%H:%M} (45 s)"
    assert f"  NO  link         {since}, 12 tries, next try at {local(again):%H:%M:%S}" in lines
    assert lines[-1] == "      try: plug it in again"
    assert max(map(len, lines)) <= 80
    assert reason in " ".join(line.strip() for line in lines)


def test_who_holds_a_kit_is_said_once() -> None:
    who = "west (PID 5)"
    held = {"held_by": who, "busy_with": f"held by {who}", "firmware": "2.0.4"}
    for trouble, line in (
        (f"its port, let go for {who}", f"waiting for its port, let go for {who}, 2.0.4"),
        (None, f"2.0.4, held by {who}"),
    ):
        phase = "waiting" if trouble else "well"
        link = concern("link", "unknown", **held, phase=phase, trouble=trouble)
        assert f"  ??  link         {line}" in list(lines_of(status(link), NOW))


def test_a_command_stands_on_a_line_of_its_own_behind_a_colon_or_a_question() -> None:
    command = f"cellagent config show --profile {'x' * 40}"
    for words, line in (
        (f"is this host online? `{command}` names them", "      try: is this host online?"),
        (f"this shows it: `{command}`", "      try: this shows it:"),
    ):
        trouble = concern("location", "trouble", trouble="no answer", **{"try": words})
        lines = list(lines_of(status(trouble), NOW))
        at = lines.index(f"        {command}")
        assert lines[at - 1] == line


def test_the_same_thing_to_try_stands_once() -> None:
    troubles = [
        concern(name, "trouble", trouble="nothing listens", **{"try": "`cellagent cloud serve`"})
        for name in ("location", "fota")
    ]
    lines = list(lines_of(status(*troubles), NOW))
    assert [line for line in lines if "try:" in line] == [
        "      try: `cellagent cloud serve`",
        "      try: as above",
    ]


def test_why_a_kit_is_not_on_the_network_is_said_once() -> None:
    says = "The modem sees no SIM."
    cause = {"cause": "sim-missing", "certainty": "certain", "says": says}
    cause |= {"evidence": "+CME ERROR: 10", "next": "put it in"}
    found = [{"what": f"the SIM cannot be used: {says}", "try": "put it in"}]
    found.append({"what": "it does not know the time", "try": "set it"})
    link = concern("link", "attention", phase="well", cause=cause, findings=found)
    text = "\n".join(lines_of(status(link), NOW))
    assert text.count(says) == 1
    assert "+CME ERROR: 10" in text
    assert "it does not know the time" in text


def test_a_lane_that_fails_says_since_when_how_often_and_when_it_is_tried_next() -> None:
    lane = {"device": "nrf-1", "kind": "chunk", "what": "the service answered 404 Not Found"}
    began, again = NOW - 300 * SECOND, NOW + 40 * SECOND
    times = {"since": began, "failures": 7, "next_try": again, "held": 2}
    trouble = {"state": "trouble", "phase": "trouble", "trouble": lane["what"], "since": began}
    other = {**lane, **times, "kind": "event", "what": "reset", "held": 0, "next_try": NOW}
    lines = list(lines_of(status(waiting=9, failing=[{**lane, **times}, other], **trouble), NOW))
    assert lines[2:6] == [
        f"NO  outbox       trouble since {local(began):%H:%M} (5 min), 9 waiting, 0 delivered",
        "    the service answered 404 Not Found",
        f"!   chunk of nrf-1: 7 tries in 5 min, 2 held apart, next try at {local(again):%H:%M:%S}",
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
    at = "2026-11-22T06:09:30+00:00"  # thirty seconds before
    lines = list(lines_of(status(concern("location", position={**position, "at": at})), NOW))
    assert lines[-1] == "  ok  location     63.42000, 10.39000 \u00b1 12 m by wifi, 30 s ago"


def test_every_concern_counts_also_those_of_no_kit() -> None:
    names = [each.name for each in status(concern("location"), concern("fota")).concerns()]
    assert names == ["outbox", "housekeeping", "link", "console", "location", "fota"]


def test_before_a_command_to_paste_stands_one_colon() -> None:
    command = "cellagent modem on --profile standin --port serial:1050934568"
    finding = {"what": "it hears no cell", "try": f"check the antenna; `{command}` waits"}
    lines = list(lines_of(status(concern("link", "well", findings=[finding])), NOW))
    assert "try: check the antenna:" in [line.strip() for line in lines]


def test_the_headline_comes_first_and_a_command_to_paste_is_a_line_of_its_own() -> None:
    command = "cellagent modem at AT+CFUN=1 --profile lab --port serial:1050934568"
    finding = {"what": "the modem is off", "try": f"`{command}` turns it on"}
    given = status(concern("link", "well", findings=[finding]))
    given.headline = Headline(
        State.ATTENTION, "1 of 1 kit to look at; left: link: the modem is off"
    )
    given.kits[0].concern(LinkStatus).state = State.ATTENTION
    lines = list(lines_of(given, NOW))
    assert lines[0] == "attention: 1 of 1 kit to look at; left: link: the modem is off"
    assert "  !!  link" in lines
    assert command in [line.strip() for line in lines]


def test_each_command_of_a_hint_with_two_stays_whole() -> None:
    off, on = (
        f"cellagent modem {verb} --profile lab --port serial:1050934568" for verb in ("off", "on")
    )
    finding = {"what": "no SIM", "try": f"`{off}`, then put the SIM in as drawn, then `{on}`"}
    lines = list(lines_of(status(concern("link", "well", findings=[finding])), NOW))
    assert any(off in line for line in lines)
    assert any(on in line for line in lines)


@pytest.mark.parametrize("zone", ["Etc/GMT+12", "Etc/GMT-14", "UTC"])
@pytest.mark.parametrize("year", [1, 1969, 9999])
def test_times_at_the_ends_of_the_calendar_are_shown(
    monkeypatch: pytest.MonkeyPatch, zone: str, year: int
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    month, day, hour = (1, 1, 0) if year < 9999 else (12, 31, 23)
    far = datetime(year, month, day, hour, tzinfo=UTC)
    position = {"at": far.replace(tzinfo=None).isoformat(), "with": "wifi", "lat": 1.0, "lon": 1.0}
    position |= dict.fromkeys(("uncertainty", "fulfilled_with"))
    position |= {"cells": 0, "access_points": 0, "sources": [], "notes": []}
    crash = {"at": far, "what": "fault", "frame": None}
    given = status(
        concern("link", "trouble", since=far, next_try=far),
        concern("console", crash=crash),
        concern("location", position=position),
    )
    agent = msgspec.structs.replace(given.agent, since=far)
    given = msgspec.structs.replace(given, agent=agent)
    try:
        assert any("trouble since " in line for line in lines_of(given, NOW))
    finally:
        monkeypatch.undo()
        time.tzset()


def test_all_times_are_iso_8601_in_utc() -> None:
    message = msgspec.to_builtins(status(concern("location", next_try=NOW)))
    times = [message["agent"]["since"], message["kits"][0]["concerns"][-1]["next_try"]]
    assert [datetime.fromisoformat(each).utcoffset() for each in times] == [timedelta(0)] * 2
