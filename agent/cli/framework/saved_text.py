"""What a kit printed, as programs save it: UTF-8 or, from Windows PowerShell, UTF-16."""

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain

_UTF_16 = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MARKS = (codecs.BOM_UTF8, *(mark for mark, _ in _UTF_16))
_CHARACTER_END = 4
"""Where the first character of UTF-16 ends, after its mark."""


def saved_text(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a saved console or of a pipe as they come, without a byte order mark.

    UTF-16 becomes UTF-8. Noise of a line may begin like its mark: only a zero in the first
    character says that it is one.
    """
    rest, head = iter(pieces), b""
    while len(head) < _CHARACTER_END and _may_be_a_mark(head) and (piece := next(rest, b"")):
        head += piece
    for mark, encoding in _UTF_16:
        if head.startswith(mark) and b"\0" in head[len(mark) : _CHARACTER_END]:
            decoder = codecs.getincrementaldecoder(encoding)("replace")
            for piece in chain([head.removeprefix(mark)], rest):
                yield decoder.decode(piece).encode()
            yield decoder.decode(b"", True).encode()
            return
    yield from chain([head.removeprefix(codecs.BOM_UTF8)], rest)


def _may_be_a_mark(head: bytes) -> bool:
    return any(mark.startswith(head[: len(mark)]) for mark in _MARKS)
