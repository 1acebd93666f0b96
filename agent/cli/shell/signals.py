"""What commands that serve share: one line once ready, a command run beside it, a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from agent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator


async def until_told_to_end(work: Coroutine[None, None, int | None]) -> int | None:
    """Do the work; SIGTERM and a terminal that closes cancel it: then 128 and the signal's number.

    A second one ends the process at once. Who was started to outlive its terminal (nohup) does.
    """
    loop = asyncio.get_running_loop()
    doing = asyncio.ensure_future(work)
    told: list[int] = []

    def tell(number: int) -> None:
        told.append(number)
        loop.remove_signal_handler(number)
        doing.cancel()

    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
        if signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(NotImplementedError):  # Windows has neither
                loop.add_signal_handler(number, tell, number)
    try:
        return await doing
    except asyncio.CancelledError:
        if not told:
            raise
        return 128 + told[0]


@contextmanager
def signals_wake_the_loop() -> Iterator[None]:
    """Have every signal wake the running loop, while the block runs."""
    if sys.platform == "win32":  # its loop looks after Ctrl-C itself
        yield
        return
    reads, writes = os.pipe()
    for end in (reads, writes):
        os.set_blocking(end, False)
    loop = asyncio.get_running_loop()

    def drain() -> None:
        with suppress(BlockingIOError):
            os.read(reads, 4096)

    loop.add_reader(reads, drain)
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        loop.remove_reader(reads)
        os.close(reads)
        os.close(writes)


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
        return 128 + number if number == signal.SIGINT else 0
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
