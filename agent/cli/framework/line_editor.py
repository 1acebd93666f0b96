"""Lines that are edited as they are typed, and that come again with Up."""

import contextlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from agent.cli.framework.silent_terminal import terminal_modes
from agent.cli.framework.typed_input import InputLines


def typed_so_far() -> str:
    """Return the line that is being typed and edited, "" where there is none."""
    readline = sys.modules.get("readline")
    return readline.get_line_buffer() if readline else ""


@contextlib.contextmanager
def edited_lines() -> Iterator[InputLines]:
    """Give the lines of standard input; on a terminal they are edited, and kept until the end."""
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()  # elsewhere input() edits nothing
    if sys.platform == "win32" or not on_terminal or find_spec("readline") is None:
        yield InputLines()
        return
    import readline  # whose import makes input() edit

    def read_line() -> bytes:
        try:
            return input().encode() + b"\n"
        except EOFError:
            return b""
        except UnicodeError:
            return b"\xff\n"  # no text of this terminal's encoding: it is refused as such

    with terminal_modes(shown_again=readline.get_line_buffer):
        yield InputLines(read_line)
