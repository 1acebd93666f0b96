r"""Turns the bytes of a modem into lines, log lines and prompts. Knows no port, clock or command.

Rules (ITU-T V.250 as the nRF91 firmwares implement it): CR, LF and CR LF end a line; empty lines
are ignored; text in quotes may run over line ends; a Zephyr log line may stand between AT lines or
cut one in two; a prompt has no line end. The same bytes give the same events however they are cut.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from at.protocol import kit_log
from at.protocol.dialect import BOOT_BANNER, CONTROL_SEQUENCE, PROMPTS, tells_start
from at.protocol.state_machine import IdentityEnum, Transitions

LIMIT_BYTES = 64 * 1024
_HEAD_BYTES = 80

_COLOUR = re.compile(CONTROL_SEQUENCE.encode())
_LOG_WITHIN = re.compile(kit_log.BEGIN.encode())
# Log lines with and without time, boot banners, the headings of a crash, the lines of TF-M and of
# the boot loader, and what agent.console lifts out of a console: chunk export lines and core dump
# lines.
_LOG = re.compile(
    kit_log.ANY_BEGIN.encode() + rb"|\*{3,} |>>> ZEPHYR FATAL ERROR |[IWED]: "
    rb"|\[(?:INF|WRN|ERR|DBG|NOT|Sec Thread)\] |--- \d+ messages dropped ---|#CD:|MC:"
    rb"|Booting TF-M|Attempting to boot |Booting from "
)
# A line that may hold text over several lines: a reply, a notice, or the echo of a command.
_QUOTING = re.compile(rb"(?:[Aa][Tt])?[+%#*^$&!][A-Za-z0-9_]+[:=]")
# A row in parentheses is whole once they close, with however many quotes in the name of a network.
_ROW = re.compile(rb"[+%#][A-Za-z0-9_]+:[ \t]*\(.*\)")
_FRESH = re.compile(rb"[+%#][A-Z][A-Z0-9_]*: ?")
_BANNER = BOOT_BANNER.encode()
_FINAL = re.compile(rb"(?:OK|ERROR|\+CM[ES] ERROR:.*)")
_EDGES = b"\x00\x0b\x0c "
# Printable ASCII but for the signs of prompts.
_PLAIN_BYTES = bytes(byte for byte in range(32, 127) if byte not in b">$")
# What a log line may begin with, or what is stripped from a line's start.
_NOT_PLAIN = frozenset("[<*IWED-#MBA ")


class Line(Struct, frozen=True):
    """A whole line without its end."""

    text: str


class Log(Struct, frozen=True):
    """A line of the application's console: a log line, a banner, a chunk, a core dump line."""

    text: str


class Prompt(Struct, frozen=True):
    """The modem waits for text (">")."""

    text: str = ">"


class DroppedLine(Struct, frozen=True):
    """A line beyond the limit, dropped up to its end; `head` is its beginning."""

    head: str


Event = Line | Log | Prompt | DroppedLine


class LineState(IdentityEnum):
    """What the line that is being read is."""

    ORDINARY = "as it comes"
    QUOTED = "text whose quote is open: its lines so far are kept"
    CUT = "its head is kept, for a log line stood before its end"
    OVERLONG = "beyond the limit: its rest is dropped"


class LineEvent(IdentityEnum):
    """What changes how a line is read."""

    QUOTE = "a quote is open at its end"
    LOG_WITHIN = "a log line begins within it"
    LIMIT = "it is longer than the limit"
    END = "it is whole, or given up"


ORDINARY, QUOTED, CUT, OVERLONG = LineState
QUOTE, LOG_WITHIN, LIMIT, END = LineEvent

TRANSITIONS = Transitions(
    {
        (ORDINARY, QUOTE): QUOTED,
        (ORDINARY, LOG_WITHIN): CUT,
        (ORDINARY, LIMIT): OVERLONG,
        (QUOTED, END): ORDINARY,
        (CUT, LOG_WITHIN): CUT,
        (CUT, END): ORDINARY,
        (OVERLONG, END): ORDINARY,
    }
)
"""How the framer reads the line that comes in. An ordinary line takes no transition."""


class _Last(IdentityEnum):
    """What came last, if the next byte may belong to it."""

    CR = "a CR that ended a line: an LF belongs to it"
    KEPT_CR = "a CR that is kept in a text with an open quote: so is its LF"
    PROMPT = "a prompt: a blank belongs to it"
    OTHER = "anything else"


_CR, _KEPT_CR, _PROMPT, _OTHER = _Last


class Framer:
    """Turns the bytes of a modem into events.

    `expects_prompt`: a ">" at the start of a line is a prompt although no line end follows.
    `multiline`: the name ("%CMNG") of the lines whose quoted text may run over line ends; "" for
    none; None for any, if the command being answered is unknown.
    """

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self.limit = limit
        self.expects_prompt = False
        self.multiline: str | None = None
        self._state = ORDINARY
        self._last = _OTHER
        self._pending = bytearray()  # the line that has no end yet
        self._kept = bytearray()  # of a quoted text the whole lines, of a cut line the head

    def plain_lines(self, data: bytes) -> list[str] | None:
        """Consume `data` and return its lines if they are plain ones, ended by CR LF.

        Return None, with nothing consumed, if a byte needs `feed`. Nearly all output of a modem
        is plain, and is read here in one pass over the bytes.
        """
        end = data.rfind(b"\n") + 1
        if (
            not end
            or self._state is not ORDINARY
            or self._last is not _OTHER
            or self.expects_prompt
            or len(data) > self.limit
        ):
            return None
        whole, rest = (data, b"") if end == len(data) else (data[:end], data[end:])
        if self._pending:
            whole = bytes(self._pending) + whole
        ends = whole.translate(None, _PLAIN_BYTES)
        lines = whole.decode("ascii", "replace").split("\r\n")
        if (
            # No byte of another kind, no CR or LF alone, no blank before a line end.
            len(ends) != 2 * (len(lines) - 1)
            or b"\r" in rest
            or b" \r" in whole
            or _BANNER in whole
            or len(whole) > self.limit
        ):
            return None
        quotes = b'"' in whole
        for line in lines:
            if line and (line[0] in _NOT_PLAIN or (quotes and line.count('"') & 1)):
                return None
        self._pending[:] = rest
        return lines

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield the events that `data` completes. Consume all of it before the next call."""
        while data:
            data = self._begin(data)
            if data[:1] == b">" and self._may_prompt():
                self.expects_prompt, self._last = False, _PROMPT
                data = data[1:]
                yield Prompt()
                continue
            pieces = data.splitlines(keepends=True)
            data = b""
            for number, piece in enumerate(pieces, 1):
                yield from self._piece(piece)
                if self.expects_prompt:
                    data = b"".join(pieces[number:])
                    break

    def finish(self) -> Iterator[Event]:
        """Yield what the end of the input completes: text held back, then the last line."""
        pending = bytes(self._pending)
        self._pending.clear()
        if pending.strip() == b">" and self._state is not QUOTED:
            yield Prompt()
        elif pending:
            yield from self._line(pending, b"")
        yield from self._give_up()
        self._last = _OTHER

    def drop_partial(self) -> Iterator[Event]:
        """Forget the line that has no end yet; yield the whole lines held for an open quote."""
        self._pending.clear()
        yield from self._release()
        if self._state is CUT:
            self._end()

    def _begin(self, data: bytes) -> bytes:
        """Drop the byte that belongs to the event before: LF after CR, blank after prompt."""
        last, self._last = self._last, _OTHER
        if last is _OTHER or data[:1] != (b" " if last is _PROMPT else b"\n"):
            return data
        if last is _KEPT_CR and self._state is QUOTED:
            self._kept += b"\n"
        return data[1:]

    def _may_prompt(self) -> bool:
        """Return whether a ">" here would stand at the start of a line that may be a prompt."""
        starts = self._state is ORDINARY or self._state is CUT
        return self.expects_prompt and starts and not self._pending

    def _keep(self, event: LineEvent, more: bytes = b"") -> None:
        self._state = TRANSITIONS[self._state, event]
        self._kept += more

    def _keep_quoted(self, line: bytes, end: bytes) -> None:
        """Keep one more line of a text whose quote is open."""
        self._kept += line + end
        if end == b"\r":
            self._last = _KEPT_CR

    def _end(self) -> bytes:
        """End what is kept or dropped of the line; return what was kept."""
        self._keep(END)
        kept = bytes(self._kept)
        self._kept.clear()
        return kept

    def _piece(self, piece: bytes) -> Iterator[Event]:
        last = piece[-1]
        if last not in b"\r\n":
            self._last = _OTHER
            if self._state is not OVERLONG:
                self._pending += piece
                if len(self._pending) > self.limit:
                    yield from self._overlong(bytes(self._pending[:_HEAD_BYTES]))
            return
        self._last = _CR if last == 13 else _OTHER
        if self._state is OVERLONG:
            self._end()
            return
        body = piece.rstrip(b"\r\n")
        end = piece[len(body) :]
        if self._pending:
            body = bytes(self._pending) + body
            self._pending.clear()
        if len(body) > self.limit:
            yield from self._overlong(body[:_HEAD_BYTES])
            self._end()
        else:
            yield from self._line(body, end)

    def _overlong(self, head: bytes) -> Iterator[Event]:
        yield from self.drop_partial()
        self._keep(LIMIT)
        yield DroppedLine(_text(head))

    def _line(self, body: bytes, end: bytes) -> Iterator[Event]:
        if self._state is QUOTED:
            yield from self._quoted(body, end)
            return
        if b"\x1b" in body:
            body = _COLOUR.sub(b"", body)
        if b":~$" in body and (prompt := PROMPTS.match(body)):
            body = body[prompt.end() :]
        if self._state is CUT:
            yield from self._mend(body, end)
            return
        body = body.strip(_EDGES)
        if not body:
            return
        elif (start := body.find(_BANNER)) > 0:
            # A restart broke a line off, or made noise that is none.
            yield from self._line(body[:start], end)
            yield from self._give_up()
            yield Log(_text(body[start:]))
        elif _LOG.match(body):
            yield Log(_text(body))
        elif b"> " in body and (log := _LOG_WITHIN.search(body)):
            self._keep(LOG_WITHIN, body[: log.start()])
            yield Log(_text(body[log.start() :]))
        elif body.count(b'"') & 1 and self._may_quote(body):
            self._keep(QUOTE)
            self._keep_quoted(body, end)
        elif body == b">":
            yield Prompt()
        else:
            yield Line(_text(body))

    def _mend(self, body: bytes, end: bytes) -> Iterator[Event]:
        """Join a line to the head that a log line cut off."""
        if _LOG.match(body) and body.find(_BANNER) < 1:
            yield Log(_text(body))
            return
        if _begins_anew(body) or _FINAL.fullmatch(body):
            # The rest of the cut line is lost: this line is a new one.
            yield Line(_text(self._end()))
            yield from self._line(body, end)
        elif log := _LOG_WITHIN.search(body):
            self._keep(LOG_WITHIN, body[: log.start()])
            yield Log(_text(body[log.start() :]))
            if len(self._kept) > self.limit:
                yield DroppedLine(_text(self._end()[:_HEAD_BYTES]))
        else:
            yield Line(_text((self._end() + body).strip(_EDGES)))

    def _may_quote(self, body: bytes) -> bool:
        if _ROW.fullmatch(body):
            return False
        if self.multiline is None:
            return _QUOTING.match(body) is not None
        return bool(self.multiline) and body.startswith(self.multiline.encode() + b":")

    def _quoted(self, body: bytes, end: bytes) -> Iterator[Event]:
        """Read a line while a quote is open."""
        if _LOG_WITHIN.match(body) and _BANNER not in body:
            yield Log(_text(body))
        elif _begins_anew(body) or len(self._kept) + len(body) > self.limit:
            # The quote was a stray one, or a restart broke its text off.
            yield from self._release()
            yield from self._line(body, end)
        elif not body.count(b'"') & 1:
            self._keep_quoted(body, end)
        else:
            yield Line(_text((self._end() + body).strip(_EDGES)))

    def _give_up(self) -> Iterator[Event]:
        """Yield what is kept of a line whose end does not come."""
        yield from self._release()
        if self._state is CUT:
            yield Line(_text(self._end()))
        elif self._state is OVERLONG:
            self._end()

    def _release(self) -> Iterator[Event]:
        """Yield the lines that are kept one by one: the quote was never closed."""
        while self._state is QUOTED:
            first, *rest = self._end().splitlines(keepends=True)
            yield Line(_text(first.rstrip(b"\r\n")))
            for line in rest:
                yield from self._line(line.rstrip(b"\r\n"), b"\n")


def _begins_anew(body: bytes) -> bool:
    """Return whether a line goes on with none before: it begins like an answer, or is a start."""
    return _FRESH.match(body) is not None or _BANNER in body or tells_start(_text(body))


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")
