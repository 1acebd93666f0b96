"""What arrives from a modem, once it is classified: answers, notices, echoes, restarts."""

import re
from dataclasses import dataclass, field

from msgspec import Struct

from at.protocol.line.framing import DroppedLine, Log, Prompt

_WORDS = frozenset(
    ("OK", "ERROR", "NO CARRIER", "BUSY", "NO ANSWER", "NO DIALTONE", "COMMAND NOT SUPPORT", "NA")
)
_NUMBERED = re.compile(r"(\+CM[ES] ERROR|MODEM ERROR):\s*(.*)", re.DOTALL)
# In place of a modem's error, by the shell of an nRF93M1 kit's host program.
_OF_SHELL = re.compile(r"modem is not ready|AT pipe busy|AT command failed \((-?[0-9]{1,9})\)")
_FINAL_INITIALS = frozenset("+MCmA")
_CONNECT = re.compile(r"CONNECT(?: .*)?")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one command. `lines`: its body, without echo, notices and the final result.

    `final` is "OK", "ERROR", "+CME ERROR", "+CMS ERROR" or another final word; None if the input
    ended before it. `code` is the number of an error; `text` is the error's text instead of one.
    """

    lines: tuple[str, ...]
    final: str | None
    code: int | None = None
    text: str = ""
    command: str | None = field(default=None, compare=False)
    """The command as it was sent or echoed; None if unknown."""

    @property
    def ok(self) -> bool:
        """Whether the command succeeded."""
        return self.final == "OK" or (self.final or "").startswith("CONNECT")


class NoticeLine(Struct, frozen=True):
    """An unsolicited line. `context`: the last accepted command of that name."""

    name: str
    line: str
    context: str | None = None


class Echo(Struct, frozen=True):
    """The echo of a command."""

    text: str


class Unknown(Struct, frozen=True):
    """A line that is neither an answer's nor a notice."""

    text: str


class Restart(Struct, frozen=True):
    """The modem, or the firmware in front of it, restarted; `text` is the line that says so."""

    text: str

    @property
    def is_banner(self) -> bool:
        """Whether the line also came as a log line."""
        return self.text.startswith("*** ")


Item = Answer | NoticeLine | Echo | Unknown | Restart | Log | Prompt | DroppedLine


def final_result(line: str) -> tuple[str, int | None, str] | None:
    """Return final word, code and text of a line that ends an answer; None for another line."""
    if line in _WORDS:
        return line, None, ""
    if line[:1] not in _FINAL_INITIALS:
        return None
    if match := _NUMBERED.fullmatch(line):
        word, rest = match.group(1), match.group(2).strip()
        if rest.isascii() and rest.removeprefix("-").isdigit():
            return word, int(rest), ""
        return word, None, rest
    if match := _OF_SHELL.fullmatch(line):
        return "ERROR", int(match[1]) if match[1] else None, line
    if line.startswith("CONNECT") and _CONNECT.fullmatch(line):
        return line, None, ""
    return None
