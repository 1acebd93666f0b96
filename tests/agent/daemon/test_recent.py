"""What the agent keeps of a kit lately: bounded, each lane by itself, without secrets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.console.line_classifier import Overlong
from agent.console.log_line import LogLine
from agent.daemon.recent import AT, CONSOLE, LIMITS, MOMENT_BYTES, RecentMoments
from at.transcripts.recorder import Recorder
from at.transcripts.redaction.redactor import Redactor
from at.transcripts.steps import Direction, TranscriptStep


def kept() -> RecentMoments:
    return RecentMoments(lambda: 1.0)


@given(
    st.lists(st.integers(0, 60_000), max_size=60),
    # As they are held: what no text may hold stands there as one byte.
    st.sampled_from(["z", "ü", "€", "\udcff"]),
)
def test_the_newest_are_kept_within_the_limit_of_their_lane(
    sizes: list[int], character: str
) -> None:
    recent = kept()
    recent.add(AT, "> AT")
    for size in sizes:
        recent.add(CONSOLE, character * size)
    lane = recent.of(CONSOLE)
    bytes_of = [len(each.text.encode(errors="replace")) + MOMENT_BYTES for each in lane]
    assert sum(bytes_of) <= LIMITS[CONSOLE]
    assert [each.number for each in lane] == list(range(len(sizes) - len(lane) + 2, len(sizes) + 2))
    assert [each.text for each in recent.of(AT)] == ["> AT"], "one lane takes no other's room"
    assert sum(LIMITS.values()) <= 256 * 1024


def test_lines_that_fill_their_lane_are_all_kept_and_one_more_takes_the_place_of_one() -> None:
    recent, text = kept(), "z" * (512 - MOMENT_BYTES)
    for number in range(LIMITS[CONSOLE] // 512 + 1):
        assert len(recent.of(CONSOLE)) == number
        recent.add(CONSOLE, text)
    assert recent.of(CONSOLE)[0].number == 2


def test_who_waits_for_a_moment_is_told_of_it_once() -> None:
    recent = RecentMoments(lambda: 1.00049)
    waited_for = recent.next_change
    recent.add(CONSOLE, "z" * 4096)
    assert (waited_for.is_set(), recent.next_change.is_set()) == (True, False)
    (told,) = recent.of(CONSOLE)
    assert told.at.microsecond == 0, "to the millisecond"
    assert told.text == "z" * 4096, "not cut"


def test_a_week_of_lines_does_not_grow() -> None:
    recent = kept()
    for number in range(200_000):
        recent.add(CONSOLE, f"line {number}")
    assert len(recent.of(CONSOLE)) <= LIMITS[CONSOLE] / MOMENT_BYTES
    assert recent.count == 200_000


def test_a_line_of_ten_megabytes_is_cut_and_told() -> None:
    recent = kept()
    recent.add_console([LogLine("x", line="x" * 10_000_000), Overlong(b"\xff" * 9, 10_000_000)])
    first, second = recent.of(CONSOLE)
    assert len(first.text) <= 4096
    assert "a line of 10000000 characters" in first.text
    assert second.text == r"\xff" * 9 + " … a line of 10000000 bytes"
    assert second.level == "note"


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
    recent.add_steps([TranscriptStep(Direction.RECEIVED, b"\xff\r\n", 0.0)])
    texts = [each.text for each in recent.of(AT)]
    assert texts[0].startswith("> AT+CPIN=")
    assert texts[-2:] == ["< OK", r"< \xff"]
    assert "1234" not in "".join(texts)
