"""What a kit printed, as programs save it: UTF-8 or, from Windows PowerShell, UTF-16."""

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain

_UTF_16 = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MARKS = (codecs.BOM_UTF8, *(mark for mark, _ in _UTF_16))
_OF_A_MARK = b"\xff\xfe"
_DECIDES = 3
"""So many bytes, after what may be marks of UTF-16, say what they are."""


def saved_text(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a saved console or of a pipe as they come, without a byte order mark.

    UTF-16 becomes UTF-8. Noise of a line may begin like its mark: only a zero in the first
    character says that it is one.
    """
    rest, head = iter(pieces), b""
    while (
        len(head.lstrip(_OF_A_MARK)) < _DECIDES
        and _may_be_a_mark(head)
        and (piece := next(rest, b""))
    ):
        head += piece
    for mark, encoding in _UTF_16:
        if head.startswith(mark) and b"\0" in head.lstrip(_OF_A_MARK)[:2]:
            raw = chain([head.removeprefix(mark)], rest)
            # A mark that was there already comes after that of the program which saved it again.
            yield from saved_text(_in_utf_8(raw, encoding))
            return
    yield from chain([head.removeprefix(codecs.BOM_UTF8)], rest)


def _in_utf_8(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for piece in chain(pieces, [b""]):
        if text := decoder.decode(piece, final=not piece):
            yield text.encode()


def _may_be_a_mark(head: bytes) -> bool:
    return any(mark.startswith(head[: len(mark)]) for mark in _MARKS)
