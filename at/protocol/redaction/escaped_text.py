"""Texts as logs quote them: with a language's or a tool's escapes, in hex, with edits. Pure.

Whoever looks for something in a text has it read here in each of these spellings, too; what was
changed in one is written back in it. What a hex dump shows as text is hidden whole: its lines end
anywhere, so but for the first of a command none has the name that would tell.
"""

import re
from bisect import bisect
from collections.abc import Callable

from at.protocol.dialect import CONTROL_SEQUENCE

Clean = Callable[[str], str]

_HH = "[0-9A-Fa-f]{2}"
_DUMP = re.compile(
    rf"(?<![\w.,:-])({_HH}(?: {{1,3}}{_HH}|[:-]{_HH}){{3,}}|0x{_HH}(?:[, ]{{1,2}}0x{_HH}){{3,}}"
    rf"|{_HH}{_HH}(?: {_HH}{_HH})+(?: {_HH})?)(?![\w:-])((?:[ \t]{{2,}}|[ \t]*\|)[^\r\n]*)?"
)
_HEX = re.compile(r"(?<![\w-])(?:[2-7][0-9A-Fa-f]|0[089AaDd]|1[AaBb]){12,}(?![\w-])")
_SIGN = re.compile(r"[&\\\x08\x7f\x1b]")
_SPELT_END = re.compile("<[CcLl][RrFfNn]>")
_PAIRS = re.compile(
    rf"{_HH}(?:([ :-]) {{0,2}}{_HH}\1 {{0,2}}{_HH}\1|[, ]{{1,2}}0x"
    rf"|{_HH}(?: {_HH}{_HH}|(?:{_HH}){{10}}))"
)
"""With the two above, what a text has that may be spelled otherwise; most lines have none."""
_SURE = 8  # bytes of a dump that has no text beside it
_WHOLE_NAME = re.compile(r"AT[+%#*^]\w+[=?]", re.ASCII)  # which tells what may follow
_PAIR = re.compile(rf"(?!0x){_HH}")
_NO_PAIR = re.compile(r"0x|[^0-9A-Fa-f]")
_PRINTED = b"\t\r\n" + bytes(range(0x20, 0x7F))
_TEXT = re.compile(rb"[\t\r\n -~]{6,}")

_HTML = {"&quot;": '"', "&#34;": '"', "&#x22;": '"', "&#39;": "'", "&#x27;": "'", "&apos;": "'"}
_HTML |= {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_HTML |= {"<CR>": "\r", "<LF>": "\n", "<cr>": "\r", "<lf>": "\n", "<ln>": "\n"}
_ENTITY = re.compile("|".join(_HTML))
_ESCAPE = re.compile(rf"\\(?:x{_HH}|u00{_HH}|[\"'\\/bnrt])")
_SHORT = {"b": "\b", "n": "\n", "r": "\r", "t": "\t"}
# What is typed over a line that a host edits: backspace, delete, escape sequences.
_EDITS = re.compile(r"[\x08\x7f\x1b]")
_ESCAPE_SEQUENCE = re.compile(rf"{CONTROL_SEQUENCE}|\x1b")
_LINE_ENDS = "\r\n\0"


def cleaned_in_each_spelling(text: str, clean: Clean) -> str:
    """Return a text that `clean` has changed as each of its spellings reads, and as it stands."""
    if not (_SIGN.search(text) or _PAIRS.search(text) or _SPELT_END.search(text)):
        return clean(text)

    def plain(text: str) -> str:
        return _edited(clean(text), clean)

    def in_hex(text: str) -> str:
        return plain(_in_hex(text, plain))

    def in_each(text: str) -> str:
        return in_hex(_in_backslashes(text, in_hex))

    # No session has entities, so that nothing is to be found in them as they stand.
    if _ENTITY.search(text):
        return _in_escapes(text, in_each, _ENTITY, _HTML.__getitem__)
    return in_each(text)


def _in_backslashes(text: str, clean: Clean) -> str:
    return _in_escapes(text, clean, _ESCAPE, _meant) if "\\" in text else text


def _meant(escape: str) -> str:
    sign, digits = escape[1], escape[2:]
    return chr(int(digits, 16)) if digits else _SHORT.get(sign, sign)


def _in_escapes(
    text: str, clean: Clean, pattern: re.Pattern[str], meant: Callable[[str], str]
) -> str:
    """Return a text that is read without its escapes; outside of what changes they stay."""
    read = pattern.sub(lambda escape: meant(escape.group()), text)
    cleaned = clean(read)
    if cleaned == read:
        return text
    escapes: dict[str, str] = {}
    behind = [(0, 0)]
    """Where the text goes on behind each escape, as it is read and as it stands."""
    for match in pattern.finditer(text):
        escapes[meant(match.group())] = match.group()
        read_to, stands_to = behind[-1]
        behind.append((read_to + match.start() - stands_to + 1, match.end()))
    begin = _same(read, cleaned)
    end = _same(read[begin:][::-1], cleaned[begin:][::-1])
    changed = cleaned[begin : len(cleaned) - end]
    changed = "".join(escapes.get(char, char) for char in changed)

    def stands(at: int) -> int:
        read_to, stands_to = behind[bisect(behind, (at, len(text))) - 1]
        return stands_to + at - read_to

    return text[: stands(begin)] + changed + text[stands(len(read) - end) :]


def _same(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _in_hex(text: str, clean: Clean) -> str:
    text = _DUMP.sub(lambda line: _without_dumped_text(line, clean), text)
    return _HEX.sub(lambda match: _in_digits(match.group(), clean), text)


def _in_digits(digits: str, clean: Clean) -> str:
    read = bytes.fromhex(digits).decode("latin-1")
    cleaned = clean(read)
    return digits if cleaned == read else cleaned.encode("latin-1", "replace").hex()


def _without_dumped_text(line: re.Match[str], clean: Clean) -> str:
    """Return a line of a hex dump with dots for its text, and for what stands beside it."""
    pairs, beside = line[1], line[2] or ""
    data = bytes.fromhex(_NO_PAIR.sub("", pairs))
    read = data.decode("latin-1")
    if _WHOLE_NAME.match(read) and clean(read) == read:
        return line.group()
    shown = "".join(chr(byte) if 0x20 < byte < 0x7F else "." for byte in data)
    is_dump = len(data) >= _SURE or beside.replace(" ", "").lstrip("|\t").startswith(shown)
    hidden = _TEXT.sub(lambda text: b"." * len(text.group()), data)
    if 4 * sum(map(_PRINTED.__contains__, data)) >= 3 * len(data):
        hidden = b"." * len(data)
    if hidden == data or not is_dump:
        return line.group()
    left = iter(hidden)
    return _PAIR.sub(lambda _: f"{next(left):02x}", pairs) + re.sub(r"[^\s|]", ".", beside)


def _edited(text: str, clean: Clean) -> str:
    if not _EDITS.search(text):
        return text
    kept: list[str] = []
    for char in _ESCAPE_SEQUENCE.sub("", text):
        if char not in "\x08\x7f":
            kept.append(char)
        elif kept and kept[-1] not in _LINE_ENDS:
            kept.pop()
    read = "".join(kept)
    cleaned = clean(read)
    return text if cleaned == read else cleaned
