from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.daemon.clock_steps import SMALLEST_STEP_S, ClockStepDetector


@given(st.floats(SMALLEST_STEP_S + 1, 1e9), st.booleans(), st.floats(0, 1e6))
def test_a_step_either_way_is_told_once(size: float, back: bool, later: float) -> None:
    step = -size if back else size
    clocks = ClockStepDetector(1e9, 50.0)
    told = clocks.step(1e9 + later + step, 50.0 + later)
    assert told == pytest.approx(step, abs=1e-3)
    assert clocks.step(1e9 + later + step + 20, 50.0 + later + 20) == 0.0


@given(st.lists(st.floats(0, 100), max_size=50))
def test_time_that_passes_is_no_step(waits: list[float]) -> None:
    wall, monotonic = 1e9, 50.0
    clocks = ClockStepDetector(wall, monotonic)
    for wait in waits:
        wall, monotonic = wall + wait, monotonic + wait
        assert clocks.step(wall, monotonic) == 0.0
