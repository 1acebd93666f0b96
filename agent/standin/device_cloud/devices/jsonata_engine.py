"""JSONata in a worker process: started with the first transform, killed at the deadline."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import sys
from pathlib import Path

import msgspec

DEADLINE_S = 4.0
"""Seconds for one request to a started worker. On POSIX the worker's own alarm comes first."""
START_S = 20.0
TURN_S = 20.0
"""Seconds that a request waits for earlier ones."""
_LENGTH = struct.Struct(">I")
_LONGEST_ANSWER = 32 * 1024 * 1024


class ExpressionFailed(Exception):
    """The expression is wrong, too slow, or too large; the text says which."""


class EngineBusy(Exception):
    """Earlier expressions took too long: this one was not evaluated."""


class _Answer(msgspec.Struct):
    results: list[msgspec.Raw] = []
    error: str | None = None


class Engine:
    """One worker process, used by one request at a time."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def evaluate(self, expression: str, devices: bytes) -> list[bytes]:
        """Return a JSON value for each device of the JSON array `devices`.

        Raises ExpressionFailed, EngineBusy.
        """
        request = b'{"expression":' + msgspec.json.encode(expression)
        request += b',"devices":' + devices + b"}"
        try:
            async with asyncio.timeout(TURN_S):
                await self._turn.acquire()
        except TimeoutError as error:
            raise EngineBusy("other transforms take all the time there is") from error
        try:
            return await self._evaluate(request)
        finally:
            self._turn.release()

    async def _evaluate(self, request: bytes) -> list[bytes]:
        process = await self._running_process()
        try:
            async with asyncio.timeout(DEADLINE_S):
                answer = await _exchange(process, request)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
            await self._kill(dying=not isinstance(error, TimeoutError))
            raise ExpressionFailed("it takes too long, or too much memory") from error
        except asyncio.CancelledError:
            await self._kill()
            raise
        if answer.error is not None:
            raise ExpressionFailed(answer.error)
        return [bytes(result) for result in answer.results]

    async def close(self) -> None:
        """Stop the worker."""
        async with self._turn:
            await self._kill()

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
            try:
                async with asyncio.timeout(START_S):
                    # Loads the engine: the deadline of the first transform does not include that.
                    await _exchange(self._process, b'{"expression":"id","devices":[{"id":1}]}')
            except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
                await self._kill()
                raise ExpressionFailed("the transform engine did not start") from error
        return self._process

    async def _kill(self, *, dying: bool = False) -> None:
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
