"""The report counts as docs/reference/ledger.md defines: against a control that counts naively."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.provisioning.ledger import RunRecord
from agent.provisioning.report import Counts, Grouping, report

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def attempt(
    board: str, outcome: str, minutes: int = 0, reason: str = "", took_s: int = 60, **more: str
) -> RunRecord:
    """Return the run of an attempt; one that is unfinished has no end."""
    started = NOON + timedelta(minutes=minutes)
    ended = started + timedelta(seconds=took_s) if outcome != "unfinished" else None
    return RunRecord(
        id="", uuid=board, began_at=started, ended_at=ended, outcome=outcome,
        reason_code=reason or outcome, timings='{"key": 3.0}', change=minutes, **more,
    )  # fmt: skip


def test_a_board_passes_once_and_what_is_checked_later_changes_nothing() -> None:
    made = report([
        attempt("a", "done"), attempt("a", "unchanged", 5), attempt("a", "refused", 6),
        attempt("b", "failed"), attempt("b", "busy", 1), attempt("b", "done", 2),
        attempt("c", "refused"),
        attempt("d", "unfinished"),
        attempt("e", "unchanged"), attempt("f", "busy"),
    ]).total  # fmt: skip
    assert (made.boards, made.passed, made.first_pass, made.failed, made.unfinished) == (
        4, 2, 1, 1, 1,
    )  # fmt: skip
    assert made.attempts == 5
    assert made.yield_ == 2 / 3
    assert made.first_pass_yield == 1 / 3


def test_a_board_that_was_cut_off_and_then_found_right_has_passed_but_not_at_the_first_try() -> (
    None
):
    made = report([attempt("a", "interrupted"), attempt("a", "unchanged", 5)])
    assert (made.total.passed, made.total.first_pass) == (1, 0)
    assert made.failures["interrupted"].passed_later == 1
    assert made.total.cycle.median is None  # a check of a minute is no cycle


def test_a_first_attempt_before_the_period_makes_a_later_one_a_retry() -> None:
    runs = [attempt("a", "failed"), attempt("a", "done", 10)]
    made = report(runs, since=NOON + timedelta(minutes=5))
    assert (made.total.passed, made.total.first_pass, made.total.attempts) == (1, 0, 1)
    assert not made.failures


def test_a_failure_names_how_many_boards_had_it_and_how_many_have_passed_since() -> None:
    made = report([
        attempt("", "refused", 1, "old-firmware"), attempt("", "failed", 2, "silent"),
        attempt("a", "failed", 1, "silent"), attempt("a", "failed", 2, "silent"),
        attempt("a", "done", 3),
        attempt("b", "failed", 1, "silent"),
    ])  # fmt: skip
    assert made.failures["silent"].to_json() == {
        "attempts": 4, "boards": 2, "passed_later": 1, "unidentified": 1,
    }  # fmt: skip
    assert made.total.unidentified == 2
    assert made.failures["old-firmware"].boards == 0


def test_a_board_that_told_its_imei_alone_counts_and_is_the_one_that_has_it_later() -> None:
    made = report([
        attempt("", "refused", 1, "firmware", imei="1"), attempt("", "refused", 2, "firmware"),
        attempt("", "refused", 3, "firmware", imei="2"),
        attempt("a", "done", 5, imei="1"), attempt("b", "done", 5, imei="3"),
    ])  # fmt: skip
    assert (made.total.boards, made.total.passed, made.total.first_pass) == (3, 2, 1)
    assert (made.total.failed, made.total.unidentified) == (1, 1)
    assert made.failures["firmware"].to_json() == {
        "attempts": 3, "boards": 2, "passed_later": 1, "unidentified": 1,
    }  # fmt: skip


def test_each_group_counts_its_own_attempts_and_a_slot_is_told_with_its_station() -> None:
    runs = [
        attempt("a", "failed", station="one", slot="A1"),
        attempt("a", "done", 1, station="two", slot="A1"),
    ]
    made = report(runs, by="slot")
    assert list(made.groups) == ["one A1", "two A1"]
    assert (made.groups["one A1"].failed, made.groups["two A1"].passed) == (1, 1)
    assert made.groups["two A1"].first_pass == 0
    assert (made.total.boards, made.total.failed) == (1, 0)


def test_an_hour_is_that_of_this_host_and_named_with_its_zone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "XYZ-5:30")
        time.tzset()
        made = report([attempt("a", "done", 29)], by="hour")
    time.tzset()
    assert list(made.groups) == ["2026-03-02T17:00+05:30"]


def test_the_95th_percentile_is_one_of_the_times() -> None:
    runs = [attempt(f"{n:03}", "done", took_s=n) for n in range(1, 101)]
    cycle = report(runs).total.cycle
    assert (cycle.median, cycle.p95) == (50.5, 95.0)


OUTCOMES = (
    *("done", "unchanged", "refused", "failed"),
    *("busy", "swapped", "unfinished", "interrupted"),
)
ATTEMPTS = st.lists(
    st.builds(
        attempt,
        st.sampled_from(["", "a", "b", "c"]),
        st.sampled_from(OUTCOMES),
        st.integers(0, 240),
        st.sampled_from(["x", "y"]),
        station=st.sampled_from(["one", "two"]),
        lot=st.sampled_from(["", "L1"]),
        slot=st.sampled_from(["", "A1", "A2"]),
        imei=st.sampled_from(["", "1", "2"]),
    ).filter(lambda one: one.uuid or one.outcome not in {"done", "unchanged"}),
    max_size=25,
).map(lambda some: sorted(some, key=lambda one: (one.uuid, one.began_at)))


def naive(
    attempts: list[RunRecord], since: datetime, by: Grouping | None, name: str
) -> dict[str, object]:
    """Count one group (`name` "all" for every attempt) by its definitions, one after the other."""

    def inside(one: RunRecord) -> bool:
        where = {
            "station": one.station, "lot": one.lot,
            "slot": f"{one.station} {one.slot}" if one.slot else "",
            "hour": one.began_at.astimezone().replace(minute=0).isoformat("T", "minutes"),
        }  # fmt: skip
        return one.began_at >= since and (by is None or name == "all" or where[by] == name)

    boards: dict[str, list[RunRecord]] = {}
    for one in attempts:
        if one.outcome != "busy":
            of_imei = [two.uuid for two in attempts if two.uuid and two.imei == one.imei]
            key = one.uuid or (one.imei and (min(of_imei, default=f"imei {one.imei}")))
            boards.setdefault(key, []).append(one)
    boards = {key: sorted(tried, key=lambda one: one.began_at) for key, tried in boards.items()}
    lost = [one for one in boards.pop("", []) if one.ended_at and inside(one)]
    passed, first, failed, unfinished, tries, times = set(), set(), set(), set(), 0, []
    for board, tried in boards.items():
        outcomes = [one.outcome for one in tried]
        right = [n for n, outcome in enumerate(outcomes) if outcome in ("done", "unchanged")]
        if outcomes[0] == "unchanged":
            continue
        end = right[0] if right else None
        making = [n for n in range(len(tried)) if end is None or n <= end]
        mine = [n for n in making if inside(tried[n])]
        tries += len(mine)
        if end in mine:
            passed.add(board)
            if outcomes[end] == "done":
                times.append(60.0)
            if end == 0:
                first.add(board)
        elif mine and outcomes[mine[-1]] in ("unfinished", "interrupted"):
            unfinished.add(board)
        elif mine:
            failed.add(board)
    decided = len(passed) + len(failed)
    return {
        "boards": decided + len(unfinished), "passed": len(passed), "first_pass": len(first),
        "failed": len(failed), "unfinished": len(unfinished), "attempts": tries,
        "unidentified": len(lost),
        "yield": round(len(passed) / decided, 4) if decided else None,
        "first_pass_yield": round(len(first) / decided, 4) if decided else None,
        "cycle": {"count": len(times), "median_s": 60.0 if times else None,
                  "p95_s": 60.0 if times else None},
    }  # fmt: skip


@given(ATTEMPTS, st.integers(-1, 240), st.sampled_from([None, "station", "lot", "slot", "hour"]))
def test_every_count_is_that_of_the_control(
    attempts: list[RunRecord], minutes: int, by: Grouping | None
) -> None:
    since = NOON + timedelta(minutes=minutes)
    made = report(iter(attempts), since=since, by=by)
    assert made.total.to_json() == naive(attempts, since, by, "all")
    for name, counts in made.groups.items():
        assert counts.to_json() == naive(attempts, since, by, name)
    sums = [sum(getattr(one, key) for one in made.groups.values()) for key in _SUMMED]
    if by is not None:
        assert sums == [getattr(made.total, key) for key in _SUMMED]


_SUMMED = ("passed", "first_pass", "attempts", "unidentified")


@given(ATTEMPTS)
def test_failures_are_all_attempts_but_those_that_passed_or_are_at_work(
    attempts: list[RunRecord],
) -> None:
    made = report(attempts)
    bad = [
        one for one in attempts if one.outcome in {"refused", "failed", "swapped", "interrupted"}
    ]
    assert sum(one.attempts for one in made.failures.values()) == len(bad)
    assert all(one.passed_later <= one.boards <= one.attempts for one in made.failures.values())


def test_nothing_at_all_has_no_yield() -> None:
    assert report([]).total.to_json() == Counts().to_json()
    assert Counts().yield_ is None


@pytest.mark.parametrize(
    ("passed", "failed", "low", "high"),
    # Of Wilson's formula by hand, as in Newcombe's table of 1998 for 81 of 263 and 0 of 20.
    [(81, 182, 0.2553, 0.3662), (20, 0, 0.8389, 1.0), (0, 20, 0.0, 0.1611), (1, 1, 0.0945, 0.9055)],
)
def test_the_yield_is_told_with_the_range_that_so_few_boards_leave_open(
    passed: int, failed: int, low: float, high: float
) -> None:
    assert Counts(passed=passed, failed=failed).yield_range == pytest.approx((low, high), abs=1e-4)


def test_no_board_leaves_no_range() -> None:
    assert Counts(unfinished=3).yield_range is None
