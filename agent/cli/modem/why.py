"""`cellagent modem why`: why the modem does not do its work, live or from a log."""

from __future__ import annotations

import io
import os
import re
import sys
from typing import TYPE_CHECKING

import click

from agent.cli.framework.command import agent_command, emit, say
from agent.cli.framework.file_type import FILE_OR_INPUT
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import show_progress, waiting, width_of_text, wrapped
from at.transport.base import labelled

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from _typeshed import WriteableBuffer

    from at.causes.diagnosis import Cause

_SHOWN = 3
_AT_ONCE = 1 << 20
_INDENT = " " * 10
_COMMAND = re.compile(r"`[^`]+`")


@agent_command("cellagent modem why --port /dev/ttyACM0")
@click.argument("log", metavar="[LOG|-]", type=FILE_OR_INPUT, required=False)
def command(session: Session, log: str | None) -> Coroutine[None, None, None] | None:
    """Say why the kit is not on the network, or does not do what was asked of it.

    Without LOG the kit is asked: that changes no setting and takes up to 15 seconds. With LOG a
    transcript or any log that a terminal, a tool or the firmware wrote is read, and no port is
    opened. Causes come best first: each says how sure it is, the line that it rests on, and one
    thing to do.
    """
    if log is None:
        return _ask(session)
    # Without an event loop, in which a signal would wait for the one who writes into a pipe.
    from agent.observability.coredumps.recognise import refuse_compressed
    from at.causes.diagnosis import causes_of_log

    with _opened(log) as file:
        refuse_compressed(file.peek(), log)
        _tell(causes_of_log(file), "standard input" if log == "-" else log, session)
    return None


async def _ask(session: Session) -> None:
    from at.causes.live import causes_of_modem

    async with session.modem() as modem, waiting("asking the modem what it does", session):
        causes, origin = await causes_of_modem(modem), modem.name
    _tell(causes, origin, session)


def _tell(causes: Sequence[Cause], origin: str, session: Session) -> None:
    if session.json:
        emit({"causes": as_objects(causes, session)})
    else:
        say(labelled(origin))
        show(causes, session)


def as_objects(causes: Sequence[Cause], session: Session) -> list[dict[str, str]]:
    """Return causes in the shape of `--json`; a next step that is one command is that alone."""
    return [one.to_json() | {"next": _bare(_pasteable(one, session))} for one in causes]


def show(causes: Sequence[Cause], session: Session) -> None:
    """Show the best causes to a person."""
    for cause in causes[:_SHOWN]:
        for line in describe(cause, _pasteable(cause, session)):
            say(line)


def _opened(log: str) -> io.BufferedReader:
    return io.BufferedReader(_ToldFile(sys.stdin.fileno() if log == "-" else log), _AT_ONCE)


class _ToldFile(io.FileIO):
    """A file that shows how far it was read, if it is a long one."""

    def __init__(self, file: str | int) -> None:
        super().__init__(file, closefd=isinstance(file, str))
        self._total = os.fstat(self.fileno()).st_size
        self._done = 0

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        if self._done:
            show_progress("reading", self._done, self._total or None)
        count = super().readinto(buffer)
        self._done += count or 0
        if not count and self._done > _AT_ONCE:
            show_progress("reading", self._done, self._done)
        return count


def _pasteable(cause: Cause, session: Session) -> str:
    return pasteable_hint(cause.next, cause.says, session)


def _bare(step: str) -> str:
    return step.strip("`") if _COMMAND.fullmatch(step) else step


def describe(cause: Cause, step: str) -> list[str]:
    """Return a cause as lines for a person; what is to be copied is not broken."""
    where = f"line {cause.number}" if cause.number else "line"
    return [
        "",
        *wrapped(f"{cause.certainty:<9} {cause.cause}: {cause.says}", "", _INDENT),
        *([f"{_INDENT}{where}: {_cut(cause.evidence)}"] if cause.evidence else []),
        *wrapped(f"try: {step}", _INDENT),
    ]


def _cut(line: str) -> str:
    room = width_of_text() - 2 * len(_INDENT)
    return line if len(line) <= room else f"{line[: room - 1]}…"
