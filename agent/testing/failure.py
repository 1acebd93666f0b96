"""What a person reads where a test left its recording: the lines around, the difference."""

import difflib
import os
import sysconfig
from pathlib import Path
from types import TracebackType

import at
from at.protocol.errors import TranscriptError
from at.transcripts.step_matching import Divergence

_AROUND = 3
_PLAYED = 12  # lines
_STDLIB = Path(sysconfig.get_path("stdlib"))
_NOT_THE_TESTS = (Path(at.__file__).parent, Path(__file__).parents[1], _STDLIB)
_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of packages: of this environment, and of the user and the system below it."""


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
