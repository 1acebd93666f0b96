"""What the agent keeps of a kit lately: bounded, each lane by itself, without secrets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.console.line_classifier import OverlongLine
from agent.console.log_line import LogLine
from agent.daemon.recent import AT, CONSOLE, LIMITS, MOMENT_BYTES, RecentMoments
from at.transcripts.recorder import Recorder
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.steps import Direction


def kept() -> RecentMoments:
    return RecentMoments(lambda: 1.0)


@given(st.lists(st.integers(0, 60_000), max_size=60))
def test_the_newest_are_kept_within_the_limit_of_their_lane(sizes: list[int]) -> None:
    recent = kept()
    recent.add(AT, "> AT")
    for size in sizes:
        recent.add(CONSOLE, "z" * size)
    lane = recent.of(CONSOLE)
    assert sum(len(each.text) + MOMENT_BYTES for each in lane) <= LIMITS[CONSOLE]
    assert [each.number for each in lane] == list(range(len(sizes) - len(lane) + 2, len(sizes) + 2))
    assert [each.text for each in recent.of(AT)] == ["> AT"], "one lane takes no other's room"
    assert sum(LIMITS.values()) <= 256 * 1024


def test_a_week_of_lines_does_not_grow() -> None:
    recent = kept()
    for number in range(200_000):
        recent.add(CONSOLE, f"line {number}")
    assert len(recent.of(CONSOLE)) <= LIMITS[CONSOLE] / MOMENT_BYTES
    assert recent.count == 200_000


def test_a_line_of_ten_megabytes_is_cut_and_told() -> None:
    recent = kept()
    recent.add_console([LogLine("x", line="x" * 10_000_000), OverlongLine(b"y" * 256, 10_000_000)])
    first, second = recent.of(CONSOLE)
    assert len(first.text) <= 4096
    assert "a line of 10000000 characters" in first.text
    assert "a line of 10000000 bytes" in second.text


def test_what_came_after_a_moment_is_given_in_order_whatever_its_lane() -> None:
    recent = kept()
    for number in range(6):
        recent.add((CONSOLE, AT)[number % 2], str(number))
    assert [each.text for each in recent.after(3)] == ["3", "4", "5"]
    assert recent.after(6) == []


def test_at_lines_are_kept_without_their_secrets() -> None:
    recent, recorder = kept(), Recorder(Redactor())
    recent.add_steps(recorder.add(Direction.SENT, b'AT+CPIN="1234"\r', 0.0))
    recent.add_steps(recorder.add(Direction.RECEIVED, b"\r\nOK\r\n", 0.0))
    texts = [each.text for each in recent.of(AT)]
    assert texts[0].startswith("> AT+CPIN=")
    assert texts[-1] == "< OK"
    assert "1234" not in "".join(texts)
