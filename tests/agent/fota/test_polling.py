from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import BadAnswer, Unavailable, Untrusted
from agent.fota.jobs import JobStatus
from agent.fota.journal import JobResult, JobsHeld
from agent.fota.polling import parse_quiet_hours, poll_jobs, seconds_to_next_poll
from at.protocol.errors import LinkLost, ModemReset, ParseError
from tests.support.harness.manual_clock import ManualClock

NIGHT = parse_quiet_hours("22:00-06:00")
DAY = datetime(2026, 1, 1, 12, 0)  # noqa: DTZ001 - local time, as the profile means it


def at(clock: str) -> datetime:
    hour, minute = map(int, clock.split(":"))
    return DAY.replace(hour=hour, minute=minute)


@pytest.mark.parametrize(
    ("now", "seconds"),
    [("21:59", 0), ("22:00", 8 * 3600), ("23:30", 6.5 * 3600), ("05:59", 60), ("06:00", 0)],
)
def test_quiet_hours_run_over_midnight(now: str, seconds: float) -> None:
    assert NIGHT is not None
    assert NIGHT.seconds_left(at(now)) == seconds


@pytest.mark.parametrize("text", ["6:00-16:00", "06:00-16:00"])
def test_quiet_hours_are_read_as_the_profile_takes_them(text: str) -> None:
    quiet = parse_quiet_hours(text)
    assert quiet is not None
    assert quiet.seconds_left(at("06:00")) == 10 * 3600
    assert quiet.seconds_left(at("16:00")) == 0
    assert parse_quiet_hours("") is None


@given(st.integers(0, 86399), st.floats(0, 1), st.floats(0, 7200))
def test_no_look_falls_into_quiet_hours_nor_before_what_was_asked(
    second: int, jitter: float, asked: float
) -> None:
    assert NIGHT is not None
    now = DAY.replace(hour=0) + timedelta(seconds=second)
    wait = seconds_to_next_poll(now, interval_s=900, quiet=NIGHT, jitter=jitter, asked_s=asked)
    assert wait >= max(900, asked)
    assert NIGHT.seconds_left(now + timedelta(seconds=wait + 0.001)) == 0


def test_a_fleet_that_waited_for_the_end_of_the_quiet_hours_does_not_come_all_at_once() -> None:
    waits = [
        seconds_to_next_poll(at("21:59"), interval_s=900, quiet=NIGHT, jitter=jitter)
        for jitter in (0.0, 0.5, 1.0)
    ]
    assert waits == [8 * 3600 + 60 + spread for spread in (0, 45, 90)]


class Ended(Exception):
    pass


async def test_the_loop_goes_on_after_trouble_and_looks_at_once_after_a_job() -> None:
    done = JobResult(job_id="j", status=JobStatus.SUCCEEDED, detail="runs", at="2026")
    answers: list[JobResult | Exception | None] = [
        None,
        done,
        Unavailable("later", retry_after_s=5000),
        LinkLost("unplugged"),
        Untrusted("a portal's certificate"),
        BadAnswer("a portal's page"),
        JobsHeld("another process has the jobs"),
        ModemReset("the modem restarted"),
        ParseError("the application printed into the answer"),
        None,
    ]
    heard: list[object] = []

    async def pull() -> JobResult | None:
        await asyncio.sleep(0)
        if not answers:
            raise Ended
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    class Told:
        def result(self, result: JobResult | None) -> None:
            heard.append(result)

        def failed(self, error: Exception) -> None:
            heard.append(str(error))

    clock = ManualClock()
    with pytest.raises(Ended):
        await poll_jobs(pull, Told(), interval_s=900, quiet=None, clock=clock, jitter=lambda: 0.0)
    portal = ["a portal's certificate", "a portal's page"]
    of_kit = [
        "another process has the jobs",
        "the modem restarted",
        "the application printed into the answer",
    ]
    assert heard == [None, done, "later", "unplugged", *portal, *of_kit, None]
    assert clock.waits == [900, 1, 5000, 900, 60, 60, 60, 60, 60, 900]
