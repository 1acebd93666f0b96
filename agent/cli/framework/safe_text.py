r"""Text that is safe to show: what comes from a modem, a server or a file gives no orders.

`guard_output` puts a guard before standard output and standard error, through which every command
writes. On a terminal it shows control and format characters as `\u009b`, which is valid in JSON,
too; elsewhere the text goes through unchanged. What cannot be encoded, as a lone surrogate, is
written in the same way everywhere. Only `drawing` lets sequences through that we make ourselves.
"""

import codecs
import io
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

# All of Unicode's categories Cc (but tab and newline), Cf, Cs, Zl and Zp: what controls a terminal,
# reorders or hides the text around it, or ends a line for some programs and not for others.
_OWN = "\x08\r\x1b"  # what moves a cursor and sets a colour
_C0 = "\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f"
_OTHERS = (
    "\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
    "\U000e0020-\U000e007f"
)
# Not compiled: `re` does that, and keeps it, for those that a command comes to use.
_UNSAFE = f"[{_OWN}{_C0}{_OTHERS}]"
_UNSAFE_BUT_LINE_ENDS = f"\r(?!\n)|[\x08\x1b{_C0}{_OTHERS}]"
_UNSAFE_BUT_OWN = f"[{_C0}{_OTHERS}]"

AS_IN_JSON = "cellagent.as-in-json"
r"""The error handler of the standard streams: what cannot be encoded is written as `\udcff`."""


_PLAIN = {"°": "deg ", "·": ".", "…": "...", "→": "->", "\xa0": " ", "─": "-", "│": "|"}
_PLAIN |= dict.fromkeys("┌┐└┘├┤┬┴┼", "+") | dict.fromkeys("█▀▄▌▐▖▗▘▙▚▛▜▝▞▟", "#")
"""What our own words, bars and plots hold beyond ASCII -> what a person can read instead."""
_plain: dict[int, str] = {}
"""Those of them that the standard streams of this process cannot encode."""


def printable(text: str) -> str:
    r"""Return `text` for a person: each control and format character is `\x1b`, `\u202e`."""
    text = re.sub(_UNSAFE, lambda match: match.group().encode("unicode_escape").decode(), text)
    return text.translate(_plain) if _plain else text


def drawn(text: str) -> str:
    """Return text of ours, colours and all, with every other character as the guard shows it."""
    return re.sub(_UNSAFE_BUT_OWN, _as_in_json, text)


def guard_output() -> None:
    """Guard the standard streams of this process; one that the caller closed is a null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # else the next file that is opened gets its number
            end = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - for good
            setattr(sys, name, end)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=AS_IN_JSON)
            _plain.update({ord(char): _PLAIN[char] for char in _PLAIN if not _has(stream, char)})
            if stream.isatty():
                setattr(sys, name, _GuardedStream(stream, _UNSAFE_BUT_LINE_ENDS))


def _has(stream: io.TextIOWrapper, character: str) -> bool:
    try:
        return bool(character.encode(stream.encoding))
    except UnicodeEncodeError:
        return False


def drawing(stream: TextIO) -> TextIO:
    """Return `stream` for what moves the cursor or sets a colour; its text must be `printable`."""
    if isinstance(stream, _GuardedStream):
        return cast("TextIO", _GuardedStream(stream.inner, _UNSAFE_BUT_OWN))
    return stream


def ring(stream: TextIO) -> None:
    """Ring the bell, where `stream` is a terminal: the guard lets no text do it."""
    if stream.isatty():
        bare = stream.inner if isinstance(stream, _GuardedStream) else stream
        bare.write("\a")
        bare.flush()


class _GuardedStream:
    """A text stream that shows the characters of `unsafe` as JSON writes them."""

    def __init__(self, inner: TextIO, unsafe: str) -> None:
        self.inner = inner
        self._unsafe = unsafe

    def write(self, text: str) -> int:
        """Write the text, made safe; return the length of what was given."""
        self.inner.write(re.sub(self._unsafe, _as_in_json, text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write all of the lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return what else the stream has: its encoding, its descriptor."""
        return getattr(self.inner, name)


def _as_in_json(match: re.Match[str]) -> str:
    return _escaped(match.group())


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _escaped(error.object[error.start : error.end]), error.end


codecs.register_error(AS_IN_JSON, _escape_unencodable)
