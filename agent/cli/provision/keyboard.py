"""Keys and scanned lines at the terminal of a bench; a scanner types like a fast person."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator

from agent.cli.framework.silent_terminal import in_foreground, silent_terminal
from agent.cli.framework.typed_input import InputPieces

_LONGEST_LINE = 4096
_ERASE = "\x08\x7f"
_ERASE_LINE = "\x15"  # Ctrl-U, as a terminal has it


class Keyboard:
    """Standard input of a run that goes on; a context manager, which gives the terminal back.

    `line` is what was typed of the line so far.
    """

    def __init__(self, *, scans: bool) -> None:
        self._scans = scans
        self._is_terminal = sys.stdin.isatty()
        self.line = ""

    def __enter__(self) -> Keyboard:
        self._restore = (
            silent_terminal()  # the table stands there
            if self.reads and self._is_terminal
            else contextlib.nullcontext()
        )
        self._restore.__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        self._restore.__exit__(None, None, None)

    @property
    def reads(self) -> bool:
        """Whether somebody may type here: not from the background, where that would stop us."""
        return in_foreground() if self._is_terminal else self._scans

    async def typed(self) -> AsyncIterator[str]:
        """Yield each line where lines are scanned, else each key."""
        if not self.reads:
            return
        import codecs

        text = codecs.getincrementaldecoder("utf-8")("replace")
        async for data in InputPieces():
            for character in text.decode(data):
                if not self._scans:
                    yield character
                elif character in "\r\n":
                    line, self.line = self.line, ""
                    yield line
                else:
                    self._type(character)

    def _type(self, character: str) -> None:
        if character in _ERASE:
            self.line = self.line[:-1]
        elif character == _ERASE_LINE:
            self.line = ""
        elif len(self.line) < _LONGEST_LINE:
            self.line += character
