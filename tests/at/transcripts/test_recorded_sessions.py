"""The recorded sessions that come with the project are read and played to their ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from at.transcripts.step_matching import Playback
from at.transcripts.steps import Direction
from at.transcripts.transcript import format_transcript, load_transcript, parse_transcript

FILES = sorted(
    (Path(__file__).resolve().parents[3] / "fixtures" / "transcripts").glob("*.transcript")
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_says_what_it_is_and_reads_back(path: Path) -> None:
    transcript = load_transcript(path)
    assert {"device", "origin"} <= set(transcript.header)
    assert parse_transcript(format_transcript(transcript)).steps == transcript.steps


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.contract("C9")
def test_each_plays_to_its_end(path: Path) -> None:
    transcript = load_transcript(path)
    playback = Playback(transcript)
    got = b"".join(step.data for step in playback.first_steps())
    for step in transcript.steps:
        if step.direction is Direction.SENT:
            got += b"".join(answer.data for answer in playback.sent(step.data))
    assert playback.remaining == []
    received = [step.data for step in transcript.steps if step.direction is Direction.RECEIVED]
    assert got == b"".join(received)
