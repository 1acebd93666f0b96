"""Signals: what ends a command, and a program that a command runs beside itself."""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from agent.cli import EXIT_INTERRUPTED
from agent.cli.framework.terminal import interrupted_already
from agent.errors import UsageError
from agent.programs import KILL, send_signal

T = TypeVar("T")

HANG_UP: int = getattr(signal, "SIGHUP", signal.SIGTERM)
"""The terminal was closed. Windows has no such signal."""
_GRACE_S = 5.0  # for a program to end after the signal, before it is killed


def handle_signals(numbers: Iterable[int], handler: Callable[[int], None]) -> None:
    """Call `handler` with the number of each signal that comes, while the running loop lives.

    Does nothing on Windows: its loop has no handlers, and Ctrl-C arrives as KeyboardInterrupt.
    """
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):
        for number in numbers:
            loop.add_signal_handler(number, handler, number)


def not_ignored(*numbers: int) -> set[int]:
    """Return the signals that this process was not started to ignore, as nohup ignores SIGHUP."""
    return {number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN}


async def cancel_on_signal(work: Coroutine[None, None, int | None]) -> int | None:
    """Do the work; SIGTERM and a closed terminal cancel it: then 128 and the signal's number.

    So does Ctrl-C: then KeyboardInterrupt. A second one ends the process at once.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def cancel(number: int) -> None:
        received.append(number)
        with suppress(NotImplementedError):
            loop.remove_signal_handler(number)
        task.cancel()

    def interrupt(number: int, _frame: object) -> None:
        signal.signal(number, interrupted_already)
        # Not at once, as the handler of asyncio does: it may come amid whatever runs.
        loop.call_soon_threadsafe(cancel, number)

    handle_signals(not_ignored(signal.SIGTERM, HANG_UP), cancel)
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    try:
        return await task
    except asyncio.CancelledError:
        if not received:
            raise
        if received[0] == signal.SIGINT:
            raise KeyboardInterrupt from None
        return 128 + received[0]
    finally:
        signal.signal(signal.SIGINT, before)


async def reader_left() -> None:
    """Wait until nobody reads standard output any more. Raises BrokenPipeError; never, of no pipe.

    For a command that may write nothing for long: only a write would tell.
    """
    loop, output, left = asyncio.get_running_loop(), sys.stdout.fileno(), asyncio.Event()
    if sys.platform != "win32" and stat.S_ISFIFO(os.fstat(output).st_mode):
        loop.add_reader(output, left.set)
    try:
        await left.wait()
        raise BrokenPipeError
    finally:
        with suppress(NotImplementedError):
            loop.remove_reader(output)


@contextmanager
def signals_wake_the_loop() -> Iterator[None]:
    """Wake the running loop at every signal while the block runs, whichever thread takes it."""
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


@contextmanager
def first_signal(*numbers: int) -> Iterator[asyncio.Future[int]]:
    """Give a future; the first of these signals to come while the block runs is its result."""
    loop = asyncio.get_running_loop()
    received: asyncio.Future[int] = loop.create_future()

    def receive(number: int) -> None:
        if not received.done():
            received.set_result(number)

    handle_signals(numbers, receive)
    try:
        yield received
    finally:
        with suppress(NotImplementedError):
            for number in numbers:
                loop.remove_signal_handler(number)


async def serve_until_stopped(
    program: Sequence[str],
    environment: Mapping[str, str],
    failure: asyncio.Future[T] | None = None,
    *,
    inherits: Sequence[int] = (),
) -> int:
    """Run `program` to its end, or wait for a signal if it is empty; return the exit code.

    SIGTERM ends in 0, Ctrl-C in 130. A program is sent the signal and has five seconds to end.
    A result of `failure` ends it as SIGTERM does; what the result means is for the caller.
    `inherits` as for `run_program`.
    """
    with first_signal(signal.SIGTERM, signal.SIGINT) as received:

        def fail(_failure: asyncio.Future[T]) -> None:
            if not received.done():
                received.set_result(signal.SIGTERM)

        if failure is not None:
            failure.add_done_callback(fail)
        if program:
            return await run_program(program, environment, received, inherits=inherits)
        return EXIT_INTERRUPTED if await received == signal.SIGINT else 0


def _way_to(program: str) -> str:
    """Return what to try where there is no such program, "" where its path says it all."""
    if " " in program:
        return f"write {program} without the quotes around it"
    return "" if os.sep in program else f"is it installed? `command -v {program}` finds it then"


async def run_program(
    program: Sequence[str],
    environment: Mapping[str, str],
    received: asyncio.Future[int],
    *,
    sends: int | None = None,
    inherits: Sequence[int] = (),
) -> int:
    """Run a program with `environment` added to ours; return its exit code, 128 + N for signal N.

    It inherits the file descriptors `inherits` where the platform can do that: Windows cannot.
    Once `received` has a result, the program is sent that signal, or the signal `sends`, and is
    killed if it has not ended five seconds later. Raises UsageError where it cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *program,
            env={**os.environ, **environment},
            pass_fds=() if sys.platform == "win32" else inherits,
        )
    except OSError as error:
        hint = _way_to(program[0]) if isinstance(error, FileNotFoundError) else ""
        raise UsageError(f"cannot run {program[0]}: {error.strerror}", hint=hint) from error
    ended = asyncio.ensure_future(process.wait())
    either: set[asyncio.Future[int]] = {ended, received}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        send_signal(process, received.result() if sends is None else sends)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(ended), _GRACE_S)
        if not ended.done():
            send_signal(process, KILL)
    code = await ended
    return code if code >= 0 else 128 - code
