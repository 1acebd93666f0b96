"""Decodes captured bytes of a modem to JSON objects, one for each answer, notice or line. Pure.

The shape is fixed (docs: `cellagent modem decode`): answer, notice, log, unknown, echo, prompt. A
line that breaks its grammar has `error` set and `value` None, never half a record.
"""

from collections.abc import Callable, Iterable, Iterator

from at.commands.catalog import command_of, readers_of
from at.commands.identity import Revision, ShortVersion
from at.protocol import notices
from at.protocol.command import Command, Form, read_command
from at.protocol.errors import AtError
from at.protocol.firmware_version import read_firmware
from at.protocol.line.answer_or_notice import REGISTRATIONS, is_syntax, owner_of
from at.protocol.line.exchange import Exchange
from at.protocol.line.framing import DroppedLine, Log, Prompt
from at.protocol.line.items import Answer, Echo, Item, NoticeLine, Restart, Unknown
from at.protocol.values import as_json, name_before_colon
from at.tokens.attestation import Signed

Check = Callable[[Signed], Signed]
"""Returns what a modem signed with its signature checked."""

# A notice of theirs has another shape than the reply.
_REPLY_SHAPED = REGISTRATIONS | {"+CSCON", "#XNRFCLOUD"}
# What is shown as it came.
_PLAIN = {Echo: "echo", Log: "log", Prompt: "prompt", Unknown: "unknown"}
_FAILURES = {"ERROR", "+CME ERROR", "+CMS ERROR"}
# A reply of theirs begins with a parenthesis, although it answers no test command.
_IN_PARENTHESES = {"+CWLAP", "%WIFISCAN"}


class Decoder:
    """Turns captured bytes into objects as they are complete; `finish()` ends the input.

    `command` is the command that was sent, None if it is unknown: it decides which lines are its
    answer, and how notices of its name are read. An echo in the input names the command, too.
    `check` is called with the answers of %KEYGEN and %ATTESTTOKEN.
    """

    def __init__(self, command: str | None = None, check: Check | None = None) -> None:
        self._command = command
        parts = read_command(command) if command is not None else None
        self._name = parts.name if parts is not None else None
        self._check = check
        self._exchange = Exchange(offline=True)
        self._echoed = False
        if command is not None:
            self._exchange.start(command, owner_of(command))

    def feed(self, data: bytes) -> Iterator[dict[str, object]]:
        """Yield what `data` completes, in order."""
        yield from self._objects(self._exchange.feed(data))

    def finish(self) -> Iterator[dict[str, object]]:
        """Yield what the end of the input completes: the last line, the answer in progress."""
        yield from self._objects(self._exchange.finish())

    def _objects(self, items: Iterable[Item]) -> Iterator[dict[str, object]]:
        for item in items:
            yield from self._objects_of(item)
            self._echoed = isinstance(item, Echo) or (self._echoed and not isinstance(item, Answer))

    def _objects_of(self, item: Item) -> Iterator[dict[str, object]]:
        """Yield the objects of an item; none if another item has shown the same."""
        if isinstance(item, Restart) and (item.is_banner or item.text.startswith("#XMODEM")):
            return  # the banner came as a log line, the report as a notice
        if isinstance(item, Answer) and item.final is None:
            if not item.lines and not self._echoed:
                return  # no echo and no line: the command may not have been sent
            if item.command is None and self._is_unsolicited(item.lines):
                for line in item.lines:
                    name = name_before_colon(line)
                    yield self._object(NoticeLine(name, line) if name else Unknown(line))
                return
        yield self._object(item)

    def _is_unsolicited(self, lines: tuple[str, ...]) -> bool:
        """Return whether lines without a known command are all notices."""
        names = {name_before_colon(line) for line in lines} - {""}
        return not names & _REPLY_SHAPED and all(
            notices.is_known(name) or not readers_of(name) for name in names
        )

    def _object(self, item: Item) -> dict[str, object]:
        match item:
            case Answer():
                return self._answer(item)
            case NoticeLine():
                return self._notice(item)
            case Restart():
                return _notice(item.text, item.text)
            case DroppedLine():
                return {"type": "unknown", "line": item.head}
            case _:
                return {"type": _PLAIN[type(item)], "line": item.text}

    def _answer(self, answer: Answer) -> dict[str, object]:
        command = answer.command or self._command_answered_again(answer)
        value, error = answer_value(answer, command, self._check)
        decoded = answer_object(answer, command, value, error)
        if answer.text:
            decoded["text"] = answer.text
        return decoded

    def _command_answered_again(self, answer: Answer) -> str | None:
        """Return the given command if this is another answer to it."""
        names = {name_before_colon(line) for line in answer.lines}
        return self._command if names == {self._name} else None

    def _notice(self, item: NoticeLine) -> dict[str, object]:
        given = self._command if self._name == item.name else None
        notice = notices.parse(item.name, item.line, item.context or given)
        error = notice.error if isinstance(notice, notices.Malformed) else None
        return _notice(item.name, item.line, as_json(getattr(notice, "value", None)), error)


def _notice(
    name: str, line: str, value: object = None, error: str | None = None
) -> dict[str, object]:
    return {"type": "notice", "name": name, "line": line, "value": value, "error": error}


def answer_object(
    answer: Answer, command: str | None, value: object, error: str | None
) -> dict[str, object]:
    """Return an answer as it is printed, with the value and the error of `answer_value`."""
    return {
        "type": "answer",
        "command": command,
        "final": answer.final,
        "code": answer.code,
        "lines": list(answer.lines),
        "value": value,
        "error": error,
    }


def answer_value(
    answer: Answer, command: str | None, check: Check | None
) -> tuple[object, str | None]:
    """Return the value of an answer's lines and their error; both None if no command reads them.

    `check` is that of `Decoder`.
    """
    if not answer.lines and (answer.final != "OK" or command is None):
        return None, None
    if answer.final in _FAILURES:
        return None, None
    typed = command_of(command) if command is not None else None
    if typed is not None:
        readers = [typed]
    elif command is None and answer.lines:
        readers = _readers_of_unsolicited(answer.lines[0])
    else:
        return None, None
    first_error: str | None = None
    for reader in readers:
        try:
            value = reader.parse(answer.lines)
            _check_revision(value)
            if check is not None and isinstance(value, Signed):
                value = check(value)
            return as_json(value), None
        except AtError as wrong:
            first_error = first_error or str(wrong)
    return None, first_error


def _readers_of_unsolicited(line: str) -> list[Command[object]]:
    """Return the commands whose answer this line may begin, if the command is unknown.

    A line of lists ("+CEREG: (0-5)") answers a test command: the others are left out.
    """
    name = name_before_colon(line)
    readers = readers_of(name)
    if name in _IN_PARENTHESES or not is_syntax(line):
        return readers
    return [reader for reader in readers if reader.form is Form.TEST]


def _check_revision(value: object) -> None:
    """Raise ParseError for a firmware name that begins like Nordic's and breaks off.

    The command itself accepts any text, since other makers' revisions have no grammar. What a
    damaged one means for device calls is decided by `at.firmware_gate`.
    """
    match value:
        case Revision(revision=text) if text.lower().startswith("mfw"):
            read_firmware(text)
        case ShortVersion(version=text) if text.lower().startswith(("mfw", "nrf91")):
            read_firmware(text)
        case _:
            pass
