"""What a person reads of a test that failed: where it left its recording, and what to try."""

from __future__ import annotations

import difflib
import os
import sysconfig
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pytest

import at
from agent.errors import AgentError
from at.protocol.errors import AtError, PortBusy, TranscriptError
from at.transcripts.step_matching import Divergence

if TYPE_CHECKING:
    from agent.testing.console import NotPrinted

_AROUND = 3
_PLAYED = 12  # lines
_STDLIB = Path(sysconfig.get_path("stdlib"))
_NOT_THE_TESTS = (Path(at.__file__).parent, Path(__file__).parents[1], _STDLIB)
_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of packages: of this environment, and of the user and the system below it."""


def error_of_ours(raised: BaseException) -> AtError | AgentError | NotPrinted | None:
    """Return the error of ours that was raised, None for another's."""
    from agent.testing.console import NotPrinted  # only a failure pays for it

    if isinstance(raised, BaseExceptionGroup) and len(set(raised.exceptions)) == 1:
        # A fixture raised it at its end, and the session did at its own.
        raised = raised.exceptions[0]
    return raised if isinstance(raised, AtError | AgentError | NotPrinted) else None


def for_a_person(error: AtError | AgentError | NotPrinted, way_out: str) -> BaseException:
    """Return an error of ours as it is shown: with what to try, and without our frames."""
    from agent.cli.framework.hints import hold_hint
    from agent.files.private_files import disk_hint

    frames = without_our_frames(error.__traceback__)
    shown: BaseException = error
    if isinstance(error, TranscriptError):
        error.hint = error.hint or disk_hint(error.__cause__)
        shown = TranscriptError(described(error, way_out))
        shown.__suppress_context__ = True
    elif isinstance(error, AtError | AgentError):
        hint = hold_hint() if isinstance(error, PortBusy) else ""
        if hint := hint or error.hint:
            shown.add_note(f"try: {hint}")
    if frames is None:  # it happened in a fixture of ours, or after the test
        notes = getattr(shown, "__notes__", [])
        shown = pytest.fail.Exception("\n".join([str(shown), *notes]), pytrace=False)
    return shown.with_traceback(frames or error.__traceback__)


def described(error: TranscriptError, way_out: str) -> str:
    """Return a divergence as text: place, neighbours, difference, and what to do about it."""
    where: list[str] = []
    if error.file is not None and error.line:
        where = ["", *_numbered(error.file, error.line - _AROUND, error.line, error.line + _AROUND)]
    if not isinstance(error, Divergence) or error.file is None:
        hint = [f"try: {error.hint}"] if error.hint else []
        return "\n".join([str(error), *where, "", *hint, way_out])
    shown = [f"{os.path.relpath(error.file)}:{error.line}: the session left its recording", *where]
    shown += ["", f"recorded  {error.recorded}", f"sent      {error.sent}"]
    shown.append(f"          {_difference(error.recorded, error.sent)}")
    if error.heard:
        shown.append(f"the kit had said last: {error.heard}")
    if error.nearest:
        shown.append(f"the nearest step that was to follow is line {error.nearest}")
    return "\n".join([*shown, way_out])


def lines_up_to(file: Path, line: int) -> str:
    """Return the lines of a recording that were played last, as text: `line` is the last one."""
    shown = [f"{os.path.relpath(file)}:{line}: the last line that was played", ""]
    return "\n".join([*shown, *_numbered(file, line - _PLAYED, line, line)])


def _numbered(file: Path, first: int, marked: int, last: int) -> list[str]:
    """Return the lines of a file with their numbers, and a mark at one of them."""
    lines = file.read_text("utf-8", "surrogateescape").split("\n")
    chosen = range(max(first, 1), min(last, len(lines)) + 1)
    return [f"{'->' if n == marked else '  '} {n:4} {lines[n - 1]}" for n in chosen]


def _difference(recorded: str, sent: str) -> str:
    """Return marks below the part of `sent` that is another."""
    codes = difflib.SequenceMatcher(None, recorded, sent, autojunk=False).get_opcodes()
    marks = ""
    for what, _, _, begin, end in codes:
        if what != "delete":
            marks += (" " if what == "equal" else "^") * (end - begin)
        elif not marks.endswith("^"):
            marks += "^"
    return marks.rstrip()


def without_our_frames(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback of the test's own frames, None where it has none."""
    if frames is None:
        return None
    rest = without_our_frames(frames.tb_next)
    file = Path(frames.tb_frame.f_code.co_filename)
    if _INSTALLED.intersection(file.parts) or any(map(file.is_relative_to, _NOT_THE_TESTS)):
        return rest
    return TracebackType(rest, frames.tb_frame, frames.tb_lasti, frames.tb_lineno)
