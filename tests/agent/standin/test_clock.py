"""The clock of the stand-in: moved, stopped, and let run on."""

from __future__ import annotations

import pytest

from agent.standin.clock import Clock


@pytest.mark.contract("O2.3")
def test_a_clock_that_was_stopped_runs_on_from_the_time_that_it_was_moved_to() -> None:
    clock = Clock()
    clock.freeze()
    clock.advance(7200)
    moved = clock.time()
    assert clock.time() == moved
    clock.freeze(still=False)
    assert 0 <= clock.time() - moved < 3600
