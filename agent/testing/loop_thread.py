"""An event loop in a thread of its own: kits and cloud go on while a plain test waits."""

import asyncio
import contextlib
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from agent.errors import AgentError
from agent.testing.virtual_clock import virtual_clock

T = TypeVar("T")
_END_S = 5.0
_BEGIN_S = 30.0


class LoopThread:
    """Runs coroutines for code that has no event loop, or is not to wait on its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.calls = 0
        """How many calls wait for what they run there."""
        self._thread = threading.Thread(target=self._run, name="cellagent", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        # What nobody closed, as after a Ctrl-C while a fixture is set up, is closed here.
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` there, and return what it returns or raise what it raises.

        However long it takes; but where the loop is stuck, and does not come to it, raises
        AgentError.
        """
        began = threading.Event()
        future = asyncio.run_coroutine_threadsafe(self._counted(work, began), self.loop)
        try:
            try:
                return future.result(_BEGIN_S)
            except TimeoutError:
                if not (began.is_set() or future.done()):
                    raise AgentError(
                        f"a kit or cloud of a test is stuck: nothing ran there for {_BEGIN_S:g} s;"
                        f" it is in\n{self._place()}"
                    ) from None
            return future.result()
        except BaseException:
            future.cancel()
            # Else the work of a call that never began would be told of as never awaited.
            self.loop.call_soon_threadsafe(lambda: began.is_set() or work.close())
            raise

    def run(self, work: Callable[[], T]) -> T:
        """Run a plain function there, between what the loop does, as `call`."""

        async def done() -> T:
            return work()

        return self.call(done())

    @contextlib.contextmanager
    def virtual_clock(self) -> Iterator[Callable[[], bool]]:
        """Let time jump there while calls wait, and stand still for them otherwise.

        The block gets a function that returns whether a wait would take no time now.
        """
        clock = virtual_clock(self.loop, lambda: self.calls > 0)

        is_free = self.run(clock.__enter__)
        try:
            yield is_free
        finally:
            self.run(lambda: clock.__exit__(None, None, None))

    async def _counted(self, work: Coroutine[Any, Any, T], began: threading.Event) -> T:
        began.set()
        self.calls += 1
        try:
            return await work
        finally:
            self.calls -= 1

    def close(self) -> None:
        """End the loop and its thread; one that is stuck is left behind, and said to be.

        A run of tests would not end for it, and show nothing of what it found.
        """
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_END_S)
        if self._thread.is_alive():
            text = (
                f"a kit or cloud of a test did not end in {_END_S:g} s; it is in\n{self._place()}"
            )
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            return
        self.loop.close()

    def _place(self) -> str:
        """Return where the thread is, as a traceback."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)) if frame is not None else "no thread any more"
