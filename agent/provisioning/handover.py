"""Gives the record of each run to a command of the station's: at least once, in order per board.

The ledger knows which runs are still to be given, so neither a kill nor a command that fails loses
one: the next run, or the next round of this one, gives what is left.
"""

import asyncio
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Self

from msgspec import Struct

from agent import programs
from agent.errors import AgentError, UsageError
from agent.provisioning import record_columns
from agent.provisioning.ledger import BoardRecord, Ledger, RunRecord
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.redact import redact
from agent.tasks import cancel_and_wait

RETRY_S = 30.0
"""The time between two rounds of a run that goes on; a board that ends begins one at once."""
_POLL_S = 0.2
_FAILURES_IN_A_ROW = 3
"""So many, or one that hangs: the command itself is at fault, and the rest is left for later."""


def parse_command(text: str) -> tuple[str, ...]:
    """Return the words of --on-board, split as a shell does; none is started. Raises UsageError."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(
            f"--on-board {text!r}: {error}", hint="write it as for a shell, its quotes in pairs"
        ) from error
    return words


def runnable(words: Sequence[str], named_by: str) -> tuple[str, ...]:
    """Return a command whose program was found. Raises UsageError, with the option or the key."""
    if not words:
        raise UsageError(f"{named_by} is empty", hint="write a program and its arguments")
    program = os.path.expanduser(words[0])  # noqa: PTH111 - a name to look up in PATH stays one
    if shutil.which(program) is None:
        raise UsageError(
            f"{named_by}: there is no program {words[0]!r} that could be run",
            hint="name its file; a pipe or a builtin of a shell is written as: sh -c '...'",
        )
    return (program, *words[1:])


def record_of(run: RunRecord, board: BoardRecord | None) -> bytes:
    """Return what the command reads: one line of JSON, the run and the board as it is now."""
    record = {
        "version": record_columns.VERSION,
        "run": record_columns.as_json(run),
        "board": record_columns.as_json(board) if board is not None else None,
    }
    return json.dumps(record).encode("ascii") + b"\n"


class OnBoardCommand(Struct, frozen=True):
    """The command: its words, and the seconds after which it is ended."""

    words: tuple[str, ...]
    timeout_s: float


class _NotTaken(Exception):
    """The command did not take a record; one that hung is not tried with another at once."""

    def __init__(self, reason: str, *, hung: bool = False) -> None:
        super().__init__(reason)
        self.hung = hung


class Handover:
    """Gives records to a command, one after the other, beside a run; a context manager.

    From its beginning on the ledger notes each run as one to be given. Calls `on_failure` with the
    reason why one was not taken, each reason once.
    """

    def __init__(
        self, ledger: AsyncLedger, command: OnBoardCommand, on_failure: Callable[[str], None]
    ) -> None:
        self._ledger = ledger
        self._command = command
        self._on_failure = on_failure
        self._told: set[str] = set()
        self._wake = asyncio.Event()
        self._finishing = False
        self._task: asyncio.Task[bool] | None = None

    async def __aenter__(self) -> Self:
        def note_runs(ledger: Ledger) -> None:
            ledger.hands_over = True

        await self._ledger.call(note_runs)
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._task is not None:
            await cancel_and_wait(self._task)

    def board_ended(self) -> None:
        """Begin a round soon: there is another record."""
        self._wake.set()

    async def finish(self) -> bool:
        """Give what is left, now that no board is at work; return whether all was given."""
        assert self._task is not None
        self._finishing = True
        self._wake.set()
        return await self._task

    async def _run(self) -> bool:
        while not self._finishing:
            self._wake.clear()
            await self.give_all()
            if not self._finishing:
                with suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_S):
                        await self._wake.wait()
        return await self.give_all()

    async def give_all(self) -> bool:
        """Give every record that is due; return whether none is left. Raises no AgentError."""
        try:
            if not await self._held():
                self._tell("another run of this station is giving records for a long time")
                return False
            try:
                return await self._give_due()
            finally:
                await self._ledger.call(Ledger.release_handovers)
        except AgentError as error:
            self._tell(str(error))
            return False

    async def _held(self) -> bool:
        """Hold the handovers of the station, once the round of another process of it has ended."""
        for _ in range(1 + int(self._command.timeout_s / _POLL_S)):
            if await self._ledger.call(Ledger.hold_handovers):
                return True
            await asyncio.sleep(_POLL_S)
        return False

    async def _give_due(self) -> bool:
        waiting: set[str] = set()
        failures = after = 0
        while due := await self._ledger.call(partial(Ledger.due_handovers, after=after)):
            for run in due:
                after = run.change
                board = run.uuid or run.imei or run.id
                if board in waiting:
                    continue  # a record before it is: the order of a board's records is kept
                try:
                    await self._give(run)
                    failures = 0
                except _NotTaken as refusal:
                    self._tell(str(refusal))
                    waiting.add(board)
                    failures += 1
                    if refusal.hung or failures == _FAILURES_IN_A_ROW:
                        return False
        return not waiting

    async def _give(self, run: RunRecord) -> None:
        """Give one record. Raises _NotTaken."""
        board = await self._ledger.call(
            lambda ledger: ledger.board(run.uuid, run.security_tag) if run.uuid else None
        )
        await self._run_command(record_of(run, board))
        await self._ledger.call(lambda ledger: ledger.handed_over(run.id))

    async def _run_command(self, record: bytes) -> None:
        """Run the command with a record on its standard input. Raises _NotTaken."""
        name, limit_s = self._command.words[0], self._command.timeout_s
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command.words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=sys.platform != "win32",
            )
        except OSError as error:
            raise _NotTaken(f"{name} cannot be started: {error.strerror}") from error
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(limit_s):
                process.stdin.write(record)  # a command that does not read it need not
                process.stdin.close()
                last = await programs.follow(process.stderr, lambda _line: None)
                code = await process.wait()
        except TimeoutError as error:
            programs.kill_group(process)
            reason = f"{name} did not end within {limit_s:g} s, or left its stderr open"
            raise _NotTaken(reason, hung=True) from error
        finally:
            await programs.end(process)
        if code != 0:
            raise _NotTaken(f"{name} ended with exit code {code}: {redact(last)}".rstrip(": "))

    def _tell(self, reason: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            self._on_failure(reason)
