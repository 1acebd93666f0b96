"""Keys and scanned lines at the terminal of a bench; a scanner types like a fast person."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator

from agent.cli.framework.terminal import InputPieces

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
            _silenced() if self.reads and self._is_terminal else contextlib.nullcontext()
        )
        self._restore.__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        self._restore.__exit__(None, None, None)

    @property
    def reads(self) -> bool:
        """Whether somebody may type here: not from the background, where that would stop us."""
        if not self._is_terminal:
            return self._scans
        return sys.platform == "win32" or os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()

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


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Have the terminal give each character at once, and not show it: the table stands there."""
    if sys.platform == "win32":
        yield
        return
    import termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    quiet = termios.tcgetattr(terminal)
    quiet[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(terminal, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal was closed
            # What a scanner typed too late is no command of the shell's.
            termios.tcflush(terminal, termios.TCIFLUSH)
            termios.tcsetattr(terminal, termios.TCSANOW, before)
