"""What is advised at the end of a run."""

from __future__ import annotations

from plugged_boards import place

from agent.cli.provision.run_progress import next_step
from agent.provisioning.running.outcome import Outcome


def ended(outcome: str, hint: str = "") -> Outcome:
    return Outcome(location=place("A1"), outcome=outcome, step="key", exit=4, hint=hint)


def test_a_rerun_is_advised_where_it_helps_and_nowhere_else() -> None:
    refused, failed = ended("refused"), ended("failed")
    assert next_step([refused], cut_off=False) == "what `try` says of each board"
    assert next_step([refused, failed], cut_off=False).startswith("the same command again")
    assert next_step([refused], cut_off=True).startswith("the same command again")
    told = next_step([ended("failed", "`--set-clock` sets it")], cut_off=False)
    assert told.startswith("what `try` says of each board, then the same command again")
