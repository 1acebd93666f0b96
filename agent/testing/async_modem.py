"""A modem for tests that are coroutines, whatever plugin runs them: opened and closed by theirs."""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

from agent.errors import UsageError
from agent.testing.bench import TestBench
from agent.testing.virtual_clock import virtual_clock
from at.driver.modem import Modem


class AsyncModem:
    """`modem`, which is open while the first coroutine runs that was made to `open` it.

    No fixture has to be a coroutine for it: that takes a third of what an empty test takes.
    """

    def __init__(self, bench: TestBench) -> None:
        self._bench = bench
        self._takes_no_time: Callable[[], bool] = lambda: False
        self._is_open = False
        self.modem = Modem(bench.transport("modem", self._is_free))

    def _is_free(self) -> bool:
        return self._takes_no_time()

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        if self._is_open:
            yield
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError as error:  # anyio runs a test on trio, too, unless it is told not to
            mark = '@pytest.mark.parametrize("anyio_backend", ["asyncio"])'
            raise UsageError(
                "the fixture modem needs asyncio, and another event loop runs this",
                hint=f"write `{mark}` above the test",
            ) from error
        with contextlib.ExitStack() as stack:
            if self._bench.has_virtual_time:
                self._takes_no_time = stack.enter_context(virtual_clock(loop))
            await self.modem.open()
            self._is_open = True
            try:
                yield
            finally:
                try:
                    self._bench.end()  # what closing sends is no part of the session
                finally:
                    await self.modem.close()

    def around_test(self, test: Callable[..., Any]) -> Callable[..., Any]:
        """Return a test that opens the modem and closes it. Raises UsageError for a plain one."""
        if not inspect.iscoroutinefunction(test):
            raise UsageError(
                "the fixture modem is for coroutines, and the test is a plain function",
                hint="take modem_sync, or write `async def`",
            )

        @functools.wraps(test)
        async def opening(*arguments: Any, **named: Any) -> None:
            async with self._opened():
                await test(*arguments, **named)

        return opening

    def around_fixture(self, fixture: Callable[..., Any]) -> Callable[..., Any]:
        """Return a fixture, a coroutine or an asynchronous generator, that does so too."""

        @functools.wraps(fixture)
        async def opening(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
            async with self._opened():
                if inspect.isasyncgenfunction(fixture):
                    async with contextlib.asynccontextmanager(fixture)(*arguments, **named) as made:
                        yield made
                else:
                    yield await fixture(*arguments, **named)

        return opening
