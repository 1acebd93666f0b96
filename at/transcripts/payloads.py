"""Tells the payload of a command from command lines, since a payload is never recorded. Pure.

Serial Modem takes the bytes behind the OK of a command without its data as they are, until it says
`#XDATAMODE` (its manual, "Running in data mode"). A message follows +CMGS up to Ctrl-Z or Esc, and
+CMT is followed by one (3GPP TS 27.005).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto

from at.protocol.dialect import tells_start
from at.protocol.errors import ParseError
from at.protocol.line.items import final_result
from at.protocol.values import Value, name_before_colon, split

_COMMAND = re.compile(r"AT[ \t]*([+#]\w+)[ \t]*(?:=(.*))?", re.IGNORECASE | re.ASCII | re.DOTALL)
_ANNOUNCES_MESSAGE = re.compile(r"\+(?:CMT|CDS|CBM|CMGR|CMGL)[ \t]*:", re.IGNORECASE)
_LOG_LINE = re.compile(r"\[\d\d:\d\d:\d\d", re.ASCII)
_TAKES_MESSAGE = frozenset({"+CMGS", "+CMGSEX", "+CMGW", "+CMGC"})
_MESSAGE_END = re.compile(rb"[\x1a\x1b]")
_DATA_END = re.compile(rb"\+\+\+\r?\n?\Z")
_HEX = re.compile(rb"[0-9A-Fa-f]+")


class Phase(Enum):
    """What the next bytes to the modem are."""

    COMMANDS = auto()
    ANNOUNCED = auto()
    """Data if the modem answers OK, else commands."""
    DATA = auto()
    MESSAGE = auto()


class Payloads:
    """Follows a session line by line; `phase` says what the next bytes to the modem are."""

    def __init__(self) -> None:
        self.phase = Phase.COMMANDS
        self._before_message: str | None = None
        """What stands before the message that follows, a log's stamp perhaps; None: none does."""
        self._lines: int | None = None
        """How many of a message that was read have come: a text has line ends of its own."""
        self._command = b""
        """The command whose message may come back as an echo, up to its final result."""

    @property
    def echoes_message(self) -> bool:
        """Whether lines of the modem may be the echo of a message, whose quotes mean nothing."""
        return bool(self._command)

    def sent(self, line: bytes) -> None:
        """Follow a whole command line."""
        text = line.decode("latin-1").strip()
        match = _COMMAND.fullmatch(text, max(text.upper().find("AT"), 0))
        if match is None:
            return
        name = match[1].upper()
        if name in _TAKES_MESSAGE and match[2] and match[2].strip() != "?":
            self.phase = Phase.MESSAGE
            self._command = line.strip()
        elif _lacks_data(name, match[2]):
            self.phase = Phase.ANNOUNCED

    def payload_end(self, data: bytes | bytearray) -> tuple[int, int] | None:
        """Return where the payload in `data` ends, and where the mark of its end does.

        None if it is a message whose end is still to come.
        """
        if self.phase is not Phase.MESSAGE:
            end = _DATA_END.search(data)
            return (len(data), len(data)) if end is None else (end.start(), end.end())
        end = _MESSAGE_END.search(data)
        if end is None:
            return None
        self.phase = Phase.COMMANDS
        return end.start(), end.end()

    def received(self, line: bytes) -> bytes:
        """Follow a whole line of the modem; return it without a message that it holds."""
        # An echo may stand before it, which ends as the command did.
        parts = [part.strip() for part in re.split("[\r\0]", line.decode("latin-1"))]
        text = next(filter(None, reversed(parts)), "")
        if not text:
            return line
        final, name = final_result(text), name_before_colon(text)
        if final or name == "#XDATAMODE" or tells_start(text):
            went_on = self.phase is Phase.ANNOUNCED and final is not None and final[0] == "OK"
            self.phase = Phase.DATA if went_on else Phase.COMMANDS
            self._before_message, self._command = None, b""
            return line
        if announced := _ANNOUNCES_MESSAGE.search(text):
            self._before_message = _any_digits(text[: announced.start()])
            self._lines = 0 if announced[0].upper().startswith("+CMG") else None
        elif self._is_message(text):
            message = text.removeprefix(self._before_of(text)).strip()
            is_pdu = self._lines == 0 and _HEX.fullmatch(message.encode("latin-1"))
            if self._lines is None or is_pdu:
                self._before_message = None
            else:
                self._lines += 1
                if self._lines > 1 and name_before_colon(message):
                    return line  # a notice
            return _without_message(line, message)
        elif self._command and not name and line.strip() not in {self._command, b">"}:
            return _without_message(line, text)
        return line

    def _is_message(self, text: str) -> bool:
        """Return whether a line is the one announced: log lines of others may come before it."""
        before = self._before_message
        if before is None:
            return False
        # A message in a log of the firmware stands on a line of its own, or as that log's next one.
        is_stamped = _LOG_LINE.match(text) is not None
        within_log = not is_stamped and _LOG_LINE.match(before) is not None
        return not is_stamped if before == "" else within_log or bool(self._before_of(text))

    def _before_of(self, text: str) -> str:
        """Return what stands before the message in a line, "" if nothing does."""
        before = self._before_message or ""
        return text[: len(before)] if _any_digits(text).startswith(before) else ""


def _any_digits(text: str) -> str:
    return re.sub("[0-9]", "0", text)


def _without_message(line: bytes, message: str) -> bytes:
    """Return a line whose message is hidden; one in hex keeps its shape."""
    text = message.strip().encode("latin-1")
    hidden = b"0" * len(text) if _HEX.fullmatch(text) else b"{redacted:message}"
    return line.replace(text, b"> " + hidden if text.startswith(b">") else hidden, 1)


def _lacks_data(name: str, arguments: str | None) -> bool:
    try:
        given = split(arguments or "")
    except ParseError:
        return False
    rule = _DATA_MODE.get(name)
    return rule is not None and rule(given)


def _text(given: Sequence[Value], index: int) -> str:
    return (given[index].text or "") if index < len(given) else ""


def _number(given: Sequence[Value], index: int) -> int:
    text = _text(given, index)
    bare = text.isascii() and text.isdigit() and not given[index].quoted
    return int(text[:9]) if bare else 0


def _send(given: Sequence[Value]) -> bool:
    """#XSEND=<handle>,<mode 2>,<flags>[,<length>]; once #XSEND[=<data>]."""
    return not given or _number(given, 1) == 2


def _send_to(given: Sequence[Value]) -> bool:
    """#XSENDTO=<handle>,<mode 2>,...; once #XSENDTO=<host>,<port>[,<data>]."""
    once = bool(given) and given[0].quoted
    return not _text(given, 2) if once else _number(given, 1) == 2


def _http_request(given: Sequence[Value]) -> bool:
    """#XHTTPCREQ: its body has a length, 6th, or 5th in the form without a format of the body."""
    if given and given[0].quoted:
        return any(_number(given, index) for index in range(3, len(given)))
    return _number(given, 5) > 0 or _number(given, 4) > 1


def _ftp(given: Sequence[Value]) -> bool:
    operation = _text(given, 0).lower()
    return operation in {"put", "uput", "mput"} and not _text(
        given, 1 if operation[0] == "u" else 2
    )


_DATA_MODE: Mapping[str, Callable[[Sequence[Value]], bool]] = {
    "#XSEND": _send,
    "#XSENDTO": _send_to,
    "#XTCPSEND": lambda given: not given,
    "#XUDPSEND": lambda given: not given,
    "#XMQTTPUB": lambda given: bool(given) and not _text(given, 1),
    "#XHTTPCREQ": _http_request,
    "#XCOAPCREQ": lambda given: _number(given, 7) > 0,
    "#XFTP": _ftp,
    "#XCARRIER": lambda given: _text(given, 0).startswith("app_data") and not _text(given, 1),
    "#XNRFCLOUD": lambda given: _number(given, 0) == 2,
    "#XDFUWRITE": lambda given: len(given) == 3,
}
