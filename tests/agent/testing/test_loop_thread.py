"""The thread in which kits and cloud of tests run, and its end."""

import threading

import pytest

from agent.testing import loop_thread
from agent.testing.loop_thread import LoopThread


def test_a_loop_that_is_stuck_keeps_no_run_of_tests_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_thread, "_END_S", 0.1)
    thread, goes_on = LoopThread(), threading.Event()
    thread.loop.call_soon_threadsafe(goes_on.wait)
    with pytest.warns(
        RuntimeWarning, match=r"did not end in 0\.1 s; it is in\n(.*\n)*.*self\._cond"
    ):
        thread.close()
    goes_on.set()
    thread.close()
