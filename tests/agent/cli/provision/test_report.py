"""`cellagent provision report`: the figures for who answers for the line."""

from __future__ import annotations

import json

import pytest

from agent.config.write import write_profile
from tests.support.commands.command_line import completed


@pytest.mark.usefixtures("two_boards")
def test_a_report_tells_yield_times_and_failures_to_people_and_programs() -> None:
    shown = completed("provision", "report", "--by", "station")
    words = [line.split() for line in shown.stdout.splitlines()]
    assert ["all", "2", "1", "50.0", "%"] in [line[:5] for line in words]
    assert ["one", "2", "1", "50.0", "%"] in [line[:5] for line in words]
    assert ["old-firmware", "1", "1", "0"] in [line[:4] for line in words]
    assert ["key", "6.5", "s", "6.5", "s"] in [line[:5] for line in words]
    assert "1 attempt ended before the board told" in shown.stdout
    assert "not in the yield: `cellagent provision status --runs`" in shown.stdout
    made = json.loads(completed("provision", "report", "--json").stdout)
    assert made["total"] == {
        "boards": 2, "passed": 1, "first_pass": 1, "failed": 1, "unfinished": 0, "attempts": 2,
        "unidentified": 1, "yield": 0.5, "first_pass_yield": 0.5,
        "cycle": {"count": 1, "median_s": 7.0, "p95_s": 7.0},
    }  # fmt: skip
    assert [one["reason"] for one in made["failures"]] == ["no-answer", "old-firmware"]


@pytest.mark.usefixtures("two_boards")
def test_a_slot_without_a_name_is_the_place_or_the_port() -> None:
    made = json.loads(completed("provision", "report", "--by", "slot", "--json").stdout)
    assert [one["group"] for one in made["groups"]] == ["one /dev/ttyACM7", "one A1", "one A3"]


@pytest.mark.usefixtures("two_boards")
def test_failures_alone_and_a_period_without_a_run() -> None:
    alone = completed("provision", "report", "--by", "reason").stdout.splitlines()
    assert [line.split()[0] for line in alone if line] == ["failed", "no-answer", "old-firmware"]
    made = json.loads(completed("provision", "report", "--by", "reason", "--json").stdout)
    assert (made["by"], made["groups"]) == ("reason", [])
    assert "no run is recorded since" in completed("provision", "report", "--since", "1h").stderr


def test_what_comes_next_comes_next_in_the_profile_that_was_named() -> None:
    write_profile("lab", {}, {})
    named = ("--profile", "lab")
    for words in (("report",), ("status",), ("status", "--runs"), ("status", "--lot", "1")):
        done = completed("provision", *words, *named)
        assert "--profile lab`" in done.stderr, done.stderr


def test_an_empty_ledger_says_what_comes_next() -> None:
    done = completed("provision", "report")
    assert (done.returncode, done.stdout) == (0, "")
    assert "next: `cellagent provision run" in done.stderr
    empty = json.loads(completed("provision", "report", "--json").stdout)
    assert empty["total"]["yield"] is None
