"""Takes a log's text out of what it is wrapped in: HTML, Markdown, a terminal's columns. Pure.

What a logger took out of it is put back.
"""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from at.protocol import kit_log
from at.transcripts.logs.leads import FENCE
from at.transcripts.logs.records import elements, table_under, without_record

_ESCAPED = {"&lt;": "<", "&gt;": ">", "&quot;": '"'}
_TAGS = re.compile(
    r"^(?:\[code[^\]]*\]|<(?:pre|code)\b[^>]*>)+"
    r"|(?<!\[/code\])(?<!</pre>)(?<!</code>)(?<!<br>)(?<!<br/>)(?<!<br />)"
    r"(?>(?:\[/code\]|</(?:pre|code)>|<br ?/?>)+)$",
    re.IGNORECASE,
)
"""What a forum sets around a log, on its first line and its last, or a page at each line's end."""
_RETURNS = re.compile(r"(?<!\^M)(?>(?:\^M)+)\$?$")
"""The CR before a line's end, as cat -v and chat show it, and the end, as cat -A does."""
_SPACED = re.compile(r"(_received_command: [+%#][A-Za-z]\w*: ) ([\d\"].*)")
"""What Zephyr's modem_chat logs of an answer: its name, and its fields with blanks between."""
_SOCAT = re.compile(
    r"([<>]) (\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{1,9}) +length=\d+ from=\d+ to=\d+$"
)
"""What socat -v and -x print before each transfer: behind the last one if that had no line end."""
_SCREEN = 80
"""Columns of a terminal, which breaks a longer line where it was not asked to."""
_BEGUN = re.compile(r"[+%#][A-Z]\w*:|AT[+%#][^\"]*(?:\"[^\"]*\"[^\"]*)*\"[^\"]*$")
"""An answer with a name, or a command whose quote is open."""
_BEGINS = re.compile(r"\[|AT[+%#]|[+%#][A-Z]\w*:|(?:OK|ERROR)$", re.IGNORECASE)
_LEFT_OPEN = re.compile(r"(?:.*\s)?(?:-->|<--) '[^']{0,4096}")
_QUOTED_BEGINS = re.compile(r"(?:-->|<--) '|^[> ]*<\w{3,7}> ")
"""ModemManager's quote, which a mail breaks at a blank; and how its lines begin."""
_GOES_ON = re.compile(r"[\d\",.-][^:]*|[0-9A-Fa-f]+\".*")
_CUT = re.compile(
    r"(?P<begun>(?P<command>AT)?[+%#][A-Z].{0,500}?)"
    rf"(?P<log>{kit_log.BEGIN}.*)"
)
"""A command or an answer, and the log line of the kit that came into it."""
_LOG_BEGINS = re.compile(kit_log.BEGIN)
_TYPED = re.compile(r"\b\w+:~\$(?: (?:> )?(?:\w+ )?at\b|\s*$)", re.IGNORECASE)
"""A command in a shell, behind which a forum may have lost the line ends."""
_TYPED_TWICE = re.compile(r"(?<=\s)(slm AT\S{0,200}) (?P<echo>\1)(?=\s|$)", re.IGNORECASE)
"""A command in a shell, and what the shell prints of it before the answer."""
_BANNER = re.compile(r"\*\*\* .*\*\*\* *")
_EMPHASIS = re.compile(r"\s*(?P<mark>\*\*|`)(?P<text>[^*`\s][^*`]*)(?P=mark)\s*")
"""A line in Markdown, in bold or as code."""
STRAIGHT = str.maketrans("\u201c\u201d\u201e\u2033\xa0", '"""" ')
"""Forums make quotes curly, and blanks such that break no line."""
_INVISIBLE = str.maketrans("", "", "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\xad")
"""What wikis and chats set into a text so that it may break there, or not."""
_BLANK = re.compile(r"(\"[^\"]*\"?)| ")


def unwrapped(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers in the file, from 1.

    A row of a table becomes `[time] TX: data`. Raises TranscriptError for one that its heading
    does not fit.
    """
    plain = (
        (number, _without_html(_without_emphasis(_RETURNS.sub("", line.strip("\ufeff\r\n")))))
        for number, line in enumerate(lines, start=1)
        if line.strip("\ufeff \t\r\n") and not FENCE.fullmatch(line)
    )
    numbered = _marked_by_socat(
        (number, without_record(_with_commas(line))) for number, line in elements(plain)
    )
    first = next(numbered, None)
    if first is None:
        return
    table = table_under(first[1])
    if table is None:
        yield first
        yield from numbered
    else:
        yield from table.rows(numbered)


def _marked_by_socat(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a log of socat -v or -x, each with time and direction; others as they are.

    With both it writes `--` behind each transfer.
    """
    mark = begun = ""
    number = 0
    for number, line in numbered:
        header = _SOCAT.search(line) if "length=" in line else None
        text = begun + (line[: header.start()] if header else line)
        # What is typed goes over the port in pieces.
        goes_on = header and mark.endswith(f"{header[1]} ") and not text.endswith(("\\r", "\\n"))
        begun = text if goes_on else ""
        if text and not goes_on and not (mark and text == "--"):
            yield number, mark + text
        if header:
            mark = f"{header[2]} {header[1]} "
    if begun:
        yield number, mark + begun


def divided(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines and their numbers; of those that a forum put on one, each by itself."""
    for number, line in numbered:
        begins = [found.start() for found in _LOG_BEGINS.finditer(line)] if "<" in line else []
        if ":~$ " in line:
            begins += [found.start() for found in _TYPED.finditer(line)]
            echoes = (found.span("echo") for found in _TYPED_TWICE.finditer(line))
            begins = sorted([*begins, *chain.from_iterable(echoes)])
        # Before the first stands the mark of the tool that shows it, or the banner of a start.
        banner = begins and _BANNER.fullmatch(line, 0, begins[0])
        for begin, end in pairwise([0, *begins[0 if banner else 1 :], len(line)]):
            yield number, line[begin:end]


def uncut(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines and their numbers; an answer that a log line cut is whole, behind that one.

    Its rest stands on the next line, as the driver's framing has it.
    """
    begun: tuple[int, str] | None = None
    for number, line in numbered:
        whole = number, line
        if begun:
            if _BEGINS.match(line):
                yield begun
            else:
                whole = begun[0], begun[1] + line
            begun = None
        cut = _CUT.fullmatch(whole[1])
        if cut is None:
            yield whole
            continue
        if cut["command"]:
            yield whole[0], cut["begun"]
        else:
            begun = whole[0], cut["begun"]
        yield whole[0], cut["log"]
    if begun:
        yield begun


def rejoined(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines and their numbers; what a terminal or a mail broke is whole."""
    begun: tuple[int, str] | None = None
    for number, line in numbered:
        if begun and (joined := _joined(begun[1], line)):
            whole, goes_on = (begun[0], joined[0]), joined[1]
        else:
            if begun:
                yield begun
            whole = number, line
            is_full = len(line) == _SCREEN and _BEGUN.match(line) is not None
            goes_on = is_full or _LEFT_OPEN.fullmatch(line) is not None
        if not goes_on:
            yield whole
        begun = whole if goes_on else None
    if begun:
        yield begun


def _joined(begun: str, line: str) -> tuple[str, bool] | None:
    """Return a line with what goes on with it, and whether more does; None if this does not."""
    if _LEFT_OPEN.fullmatch(begun) and not _QUOTED_BEGINS.search(line):
        whole = f"{begun} {line.lstrip('> ')}"
        return whole, _LEFT_OPEN.fullmatch(whole) is not None
    is_quoted = begun.count('"') % 2 == 1 and not _BEGINS.match(line)
    if is_quoted or _GOES_ON.fullmatch(line):
        return begun + line, len(line) == _SCREEN
    return None


def _without_emphasis(line: str) -> str:
    """Return a line without what a forum sets around a log, or Markdown around a line of it."""
    emphasis = _EMPHASIS.fullmatch(line)
    return emphasis["text"] if emphasis else _TAGS.sub("", line)


def _without_html(line: str) -> str:
    """Return a line without HTML's escapes, if it is escaped: what may be, is so throughout."""
    found = [sign for entity, sign in _ESCAPED.items() if entity in line]
    return html.unescape(line) if found and not any(sign in line for sign in found) else line


def straight(line: str) -> str:
    """Return a line with straight quotes; in a credential, curly ones are its own defect."""
    is_straight = line.isascii() or "CMNG" in line or "-----" in line
    return line if is_straight else line.translate(STRAIGHT)


def visible(line: str) -> str:
    """Return a line without the signs that nobody sees."""
    return line if line.isascii() else line.translate(_INVISIBLE)


def _with_commas(line: str) -> str:
    """Return a line with the commas that Zephyr's modem_chat took out of an answer's fields."""
    return _SPACED.sub(
        lambda found: found[1] + _BLANK.sub(lambda one: one[1] or ",", found[2].rstrip()), line
    )
