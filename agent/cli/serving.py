"""What commands that serve share: one line once ready, a command run beside it, a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from agent.cli.frame import EXIT_INTERRUPTED
from agent.errors import UsageError

_GRACE_S = 5.0


async def until_told_to_stop(
    command: Sequence[str],
    environment: Mapping[str, str],
    failure: asyncio.Future[Any] | None = None,
) -> int:
    """Run `command` to its end, or wait for a signal if there is none; return the exit code.

    SIGTERM ends in 0, Ctrl-C in 130. A command is given the signal and has five seconds to end.
    `failure` ends it likewise; what it means is the caller's.
    """
    loop = asyncio.get_running_loop()
    told: asyncio.Future[signal.Signals] = loop.create_future()

    def tell(number: signal.Signals) -> None:
        if not told.done():
            told.set_result(number)

    if failure is not None:
        failure.add_done_callback(lambda _: tell(signal.SIGTERM))
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        # Windows has no handlers on the loop: there Ctrl-C arrives as KeyboardInterrupt.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, tell, number)
    try:
        if command:
            return await _beside(command, environment, told)
        number = await told
        return EXIT_INTERRUPTED if number == signal.SIGINT else 0
    finally:
        for number in numbers:
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)


async def _beside(
    command: Sequence[str], environment: Mapping[str, str], told: asyncio.Future[signal.Signals]
) -> int:
    try:
        child = await asyncio.create_subprocess_exec(*command, env={**os.environ, **environment})
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}") from error
    ended = asyncio.ensure_future(child.wait())
    either: set[asyncio.Future[object]] = {ended, told}  # type: ignore[arg-type]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(told.result())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(ended), _GRACE_S)
        if not ended.done():
            child.kill()
    code = await ended
    return code if code >= 0 else 128 - code
