"""Text as programs save it: UTF-8 or, from Windows PowerShell, UTF-16."""

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, BinaryIO

from agent.cli.framework.terminal import ended_by_ctrl_c
from agent.errors import AgentError, UsageError

_UTF_16 = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MARKS = (codecs.BOM_UTF8, *(mark for mark, _ in _UTF_16))
_READ = 65536
_ENDLESS = 64 * 1024 * 1024
"""Bytes without a line end, as /dev/zero has them; or of a text that is needed whole."""
_OF_A_MARK = b"\xff\xfe"
_DECIDES = 3
"""So many bytes, after what may be marks of UTF-16, say what they are."""


def saved_text(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a saved console or of a pipe as they come, without a byte order mark.

    UTF-16 becomes UTF-8. Noise of a line may begin like its mark: only a zero in the first
    character says that it is one. Raises AgentError for what goes on and on without lines.
    """
    rest, head = _lines_in(pieces), b""
    while (
        len(head.lstrip(_OF_A_MARK)) < _DECIDES
        and _may_be_a_mark(head)
        and (piece := next(rest, b""))
    ):
        head += piece
    for mark, encoding in _UTF_16:
        if head.startswith(mark) and b"\0" in head.lstrip(_OF_A_MARK)[:2]:
            text = codecs.iterdecode(chain([head.removeprefix(mark)], rest), encoding, "replace")
            # A mark that was there already comes after that of the program which saved it again.
            yield from saved_text(piece.encode() for piece in text)
            return
    yield from chain([head.removeprefix(codecs.BOM_UTF8)], rest)


def read_pieces(source: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of a file or a pipe as they come; of text in UTF-16, as UTF-8.

    Raises UsageError for a compressed file.
    """
    # read1 returns what a pipe holds at the moment, so that a live capture is not held back.
    read = getattr(source, "read1", source.read)
    first = read(_READ)
    _refuse_compressed(first, source.name)
    yield from saved_text(chain([first], iter(lambda: read(_READ), b"")))


def whole_text(source: IO[bytes], name: str) -> bytes:
    """Return all of a text, in UTF-8; `name` is what it was given as. Raises UsageError.

    It is held at once: what goes on and on (/dev/zero) is refused, not read until memory ends.
    """
    with ended_by_ctrl_c():
        text = source.read(_ENDLESS + 1)
    _refuse_compressed(text, name)
    if len(text) > _ENDLESS:
        raise UsageError(
            f"{name}: over {_ENDLESS >> 20} MiB, or without end",
            hint="name a file that holds the text alone",
        )
    return b"".join(saved_text([text]))


def _refuse_compressed(head: bytes, name: str) -> None:
    from agent.observability.coredumps.recognise import refuse_compressed

    refuse_compressed(head, name)


def _lines_in(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of what has lines, in the end at least."""
    rest = 0
    for piece in pieces:
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
        rest = len(piece) - end + (0 if end else rest)
        if rest > _ENDLESS:
            raise AgentError(
                f"{_ENDLESS >> 20} MiB without the end of a line: this is no text",
                hint="give what a terminal, or the kit's firmware, wrote",
            )
        yield piece


def _may_be_a_mark(head: bytes) -> bool:
    return any(mark.startswith(head[: len(mark)]) for mark in _MARKS)
