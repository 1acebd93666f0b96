"""JSONata in worker processes: the first transform starts one, and a few at most run at a time.

Every expression has a short turn first. One that needs longer goes to the back of another queue,
where it has its whole budget: so expressions that never end keep no quick one waiting.
"""

import asyncio
import contextlib
import os
import struct
import sys
from pathlib import Path

import msgspec

SHORT_S = 0.05
"""Seconds of processor time for one request: its first turn, taken by SHORT_WORKERS."""
SHORT_WORKERS = 2
LONG_S = 2.0
"""Seconds of processor time for one request: its whole budget, given by LONG_WORKERS."""
LONG_WORKERS = 2
_WAY_GIVEN = 5
"""What nice(1) adds: how readily LONG_WORKERS give way to SHORT_WORKERS and to the server."""
_HAS_TIMERS = sys.platform != "win32"
"""Whether a worker bounds its processor time itself. Else the clock does, with room for others."""
_WALL_PER_CPU = 8
_WALL_S = 30.0
"""Seconds on the clock for a worker with timers: one that is stopped, or starved."""
START_S = 20.0
TURN_S = 20.0
"""Seconds that a request waits for earlier ones, in either queue."""
_LENGTH = struct.Struct(">I")
_LONGEST_ANSWER = 32 * 1024 * 1024


class ExpressionFailed(Exception):
    """The expression is wrong, too slow, or too large; the text says which."""


class EngineBusy(Exception):
    """Earlier expressions took too long: this one was not evaluated."""


class _OutOfTime(Exception):
    """The processor time, or the memory, was not enough."""


class _Answer(msgspec.Struct):
    results: list[msgspec.Raw] = []
    error: str | None = None
    late: bool = False


class Engine:
    """The worker processes, and who waits for them."""

    def __init__(self) -> None:
        self._short = _Queue(SHORT_WORKERS, SHORT_S)
        self._long = _Queue(LONG_WORKERS, LONG_S, _WAY_GIVEN)

    async def evaluate(self, expression: str, devices: bytes) -> list[bytes]:
        """Return a JSON value for each device of the JSON array `devices`.

        Raises ExpressionFailed, EngineBusy.
        """
        request = b'"expression":' + msgspec.json.encode(expression) + b',"devices":' + devices
        try:
            try:
                answer = await self._short.evaluate(request)
            except _OutOfTime:
                answer = await self._long.evaluate(request)
        except _OutOfTime as error:
            raise ExpressionFailed("it takes too long, or too much memory") from error
        if answer.error is not None:
            raise ExpressionFailed(answer.error)
        return [bytes(result) for result in answer.results]

    async def close(self) -> None:
        """Stop the workers."""
        await self._short.close()
        await self._long.close()


class _Queue:
    """Requests that wait for a worker, first come, first served."""

    def __init__(self, size: int, cpu_s: float, way_given: int = 0) -> None:
        self._workers = [_Worker(cpu_s, way_given) for _ in range(size)]
        # The last one that was used is next: one caller at a time needs one process.
        self._idle = list(self._workers)
        self._turns = asyncio.Semaphore(size)
        self._is_closed = False

    async def evaluate(self, request: bytes) -> _Answer:
        """Return the answer of a worker. Raises _OutOfTime, EngineBusy, ExpressionFailed."""
        try:
            async with asyncio.timeout(TURN_S):
                await self._turns.acquire()
        except TimeoutError as error:
            raise EngineBusy("other transforms take all the time there is") from error
        worker = self._idle.pop()
        try:
            if self._is_closed:
                raise EngineBusy("the stand-in is about to stop")
            return await worker.evaluate(request)
        finally:
            self._idle.append(worker)
            self._turns.release()

    async def close(self) -> None:
        """Stop the workers; none is started again."""
        self._is_closed = True
        for worker in self._workers:
            await worker.kill()


class _Worker:
    """A process that evaluates one request at a time; ended, and started again, when it is late."""

    def __init__(self, cpu_s: float, way_given: int) -> None:
        self._cpu_s = cpu_s
        self._way_given = way_given
        self._process: asyncio.subprocess.Process | None = None

    async def evaluate(self, request: bytes) -> _Answer:
        """Return the answer. Raises _OutOfTime, ExpressionFailed."""
        process = await self._running_process()
        try:
            async with asyncio.timeout(_WALL_S if _HAS_TIMERS else self._cpu_s * _WALL_PER_CPU):
                answer = await _exchange(process, b'{"cpu_s":%g,%s}' % (self._cpu_s, request))
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
            await self.kill(dying=not isinstance(error, TimeoutError))
            raise _OutOfTime from error
        except asyncio.CancelledError:
            await self.kill()
            raise
        if answer.late:
            raise _OutOfTime
        return answer

    async def _running_process(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            # -P: a module beside the program is never taken for one of the library.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                str(Path(__file__).with_name("jsonata_worker.py")),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            if self._way_given and sys.platform != "win32":
                own = os.getpriority(os.PRIO_PROCESS, 0)
                with contextlib.suppress(OSError):  # it has ended: that shows below
                    os.setpriority(os.PRIO_PROCESS, self._process.pid, own + self._way_given)
            try:
                async with asyncio.timeout(START_S):
                    # Loads the engine: the budget of the first transform does not include that.
                    await _exchange(
                        self._process, b'{"cpu_s":%g,"expression":"id","devices":[{}]}' % START_S
                    )
            except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
                await self.kill()
                raise ExpressionFailed("the transform engine did not start") from error
            except asyncio.CancelledError:
                await self.kill()
                raise
        return self._process

    async def kill(self, *, dying: bool = False) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        # One that died by itself is reaped by the loop: kill() would reap it first.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 0.1 if dying else 0)
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()
        # Close the pipes now: the loop closes their transport only later.
        process._transport.close()  # type: ignore[attr-defined]


async def _exchange(process: asyncio.subprocess.Process, request: bytes) -> _Answer:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(_LENGTH.pack(len(request)) + request)
    await process.stdin.drain()
    (length,) = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
    if length > _LONGEST_ANSWER:
        raise ConnectionError("the answer is too large")
    return msgspec.json.decode(await process.stdout.readexactly(length), type=_Answer)
