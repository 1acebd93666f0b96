"""The thread in which kits and cloud of tests run, and its end."""

import asyncio
import contextlib
import threading
from pathlib import Path

import pytest

from agent.errors import AgentError
from agent.testing import loop_thread
from agent.testing.bench import TestBench
from agent.testing.choice import kit_choice, kit_wish
from agent.testing.loop_thread import LoopThread
from agent.testing.modem import SyncModem


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


def test_a_call_waits_for_what_it_runs_and_for_no_loop_that_is_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_thread, "_BEGIN_S", 0.05)
    goes_on = threading.Event()
    with contextlib.closing(LoopThread()) as thread:
        assert thread.call(asyncio.sleep(0.2, "what took longer")) == "what took longer"
        thread.loop.call_soon_threadsafe(goes_on.wait)
        stuck = r"nothing ran there for 0\.05 s; it is in\n(.*\n)*.*self\._cond"
        with pytest.raises(AgentError, match=stuck):
            thread.run(lambda: None)
        goes_on.set()
        assert thread.run(lambda: "goes on") == "goes on"


def test_what_still_runs_there_is_ended_with_the_loop() -> None:
    """As the server of a cloud whose fixture was broken off while it was set up."""
    begun, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            ended.set()

    thread = LoopThread()
    serving = asyncio.run_coroutine_threadsafe(serve(), thread.loop)
    begun.wait()
    thread.close()
    assert ended.is_set()
    assert serving.cancelled()


@pytest.mark.parametrize("kit", ["virtual", "record"])
def test_a_recording_does_not_end_amid_what_arrives(tmp_path: Path, kit: str) -> None:
    """Else it is written to when its file is closed, and the number of that is another's."""
    arriving, goes_on = threading.Event(), threading.Event()

    def arrive() -> None:
        arriving.set()
        goes_on.wait()

    with contextlib.closing(LoopThread()) as thread:
        choice, wish = kit_choice([kit]), kit_wish([], [])
        bench = TestBench(
            tmp_path / "it.transcript", choice, wish, thread, tmp_path / "files", print
        )
        modem = SyncModem(bench.transport("modem_sync"), thread)
        thread.loop.call_soon_threadsafe(arrive)
        arriving.wait()
        ends = bench.end if bench.records else lambda: bench.attach_session(failed=True)
        ending = threading.Thread(target=ends)
        ending.start()
        ending.join(0.1)
        assert ending.is_alive()
        goes_on.set()
        ending.join()
        modem.close()
        bench.close(passed=True)
