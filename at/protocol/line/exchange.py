"""Pairs the command in flight with its answer, and classifies every other line. Pure.

Live, `start()` names the command and `feed()` classifies what comes back. Offline
(`Exchange(offline=True)`) only an echo names it, if there is one; `finish()` ends the input.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from at.protocol.dialect import BOOT_BANNER, ECHO_LIMIT, START_LINES, unwrapped
from at.protocol.line.answer_or_notice import (
    ANSWERS_TO,
    NOTICES_ONLY,
    ONE_SHAPE,
    Owner,
    command_name,
    is_reply_alone,
    line_name,
    looks_like_notice,
    owner_of,
)
from at.protocol.line.framing import Event, Framer, Line, Log
from at.protocol.line.items import Answer, Echo, Item, NoticeLine, Restart, Unknown, final_result
from at.protocol.state_machine import IdentityEnum, Transitions

_ECHO = re.compile(r"[Aa][Tt](?:[+%#*^$&!?].*|[A-Za-z]?\d?)", re.DOTALL)
# Their answers are command lines, not echoes.
_LISTS_COMMANDS = frozenset({"+CLAC", "#XCLAC"})
# A message follows them on a line of its own, in hex: TS 27.005, clause 3.4.1.
_ANNOUNCE_PDU = frozenset({"+CMT", "+CDS", "+CBM"})
# Notices of one line that change no state.
_PLAIN_NOTICES = NOTICES_ONLY - _ANNOUNCE_PDU - {"#XMODEM"}
_PDU = re.compile(r"(?:[0-9A-Fa-f]{2}){4,}")
_HELD_ITEMS = 1000
_MOST_RECENT_NAMES = 64


class ExchangeState(IdentityEnum):
    """What the lines that come in may belong to."""

    IDLE = "nothing that is known; offline, an answer may turn up"
    ANSWERED = "the answer to a command that was sent or echoed"
    UNASKED = "offline: the answer to a command that was not seen"


class ExchangeEvent(IdentityEnum):
    """What changes that."""

    COMMAND = "a command is sent, or echoed"
    NAMED_LINE = "no command was seen, and a line with a name comes that is no notice"
    END = "a final result, a restart, or nobody awaits the answer any more"


IDLE, ANSWERED, UNASKED = ExchangeState
COMMAND, NAMED_LINE, END = ExchangeEvent

TRANSITIONS = Transitions(
    {
        (IDLE, COMMAND): ANSWERED,
        (IDLE, NAMED_LINE): UNASKED,
        (IDLE, END): IDLE,
        (ANSWERED, END): IDLE,
        (UNASKED, NAMED_LINE): UNASKED,
        (UNASKED, END): IDLE,
    }
)
"""Which answer is coming in. The lines of an answer whose command is known take no transition."""


class Exchange:
    """Pairs the command in flight with its answer, and classifies everything else.

    At most one command is in flight. After `abandon()` (a time-out, a cancel) the caller must
    resynchronise the link before the next `start()`: see at.protocol.line.resynchronisation.
    """

    def __init__(self, *, offline: bool = False) -> None:
        self.framer = Framer()
        self.framer.multiline = None if offline else ""
        self.offline = offline
        self.contexts: dict[str, str] = {}
        """Name -> the last command of that name that was accepted."""
        self._state = IDLE
        self._command: str | None = None
        self.owner = Owner("")
        """Which lines belong to the last command."""
        self._echo: list[str] = []
        self._body: list[str] = []
        self._recent_names: dict[str, None] = {}  # of the lines of the last answers
        self._repeated = False  # a line of one of them came again: so will its final result
        self._announced: NoticeLine | None = None  # a message in hex follows it
        # Offline: the items since a line that may belong to an answer; True marks such lines.
        self._held: list[tuple[bool, Item]] = []
        self._classified: list[Item] = []

    @property
    def in_flight(self) -> bool:
        """Whether the answer to a command is awaited."""
        return self._state is ANSWERED

    def start(
        self,
        command: str,
        owner: Owner | None = None,
        *,
        prompt: bool = False,
        typed: str | None = None,
    ) -> None:
        """Await the answer to `command`; `owner` says which lines belong to it.

        `prompt`: the modem prompts for text with ">". `typed`: what was written, where that is not
        the command itself (the shell), because an echo repeats it.
        """
        self._state = TRANSITIONS[self._state, COMMAND]
        self._command = command
        self.owner = owner or owner_of(command)
        self._echo = [line for line in (typed or command).splitlines() if line]
        self._body = []
        self._repeated = False
        self.framer.multiline = self.owner.name
        self.framer.expects_prompt = prompt

    def await_another(self, answer: Answer) -> None:
        """Await the answer to the same command again: this one may be another command's."""
        self.start(answer.command or "", self.owner)

    def abandon(self) -> list[Item]:
        """Drop the command in flight and an unfinished line; return the items held back."""
        items: list[Item] = []
        for event in self.framer.drop_partial():
            self._classify(event)
            items += self._take_classified()
        return items + self.disown()

    def disown(self) -> list[Item]:
        """Drop the command in flight; return the lines of its answer so far as `Unknown`."""
        self._takes_pdu("")
        items = self._take_classified() + [Unknown(line) for line in self._body]
        self._reset()
        return items

    def feed(self, data: bytes) -> Iterable[Item]:
        """Return what `data` completes, in order. Consume all of it before the next call."""
        if not self.offline and (lines := self.framer.plain_lines(data)) is not None:
            if self._state is IDLE and (notices := self._only_notices(lines)):
                return notices
            return self._classify_lines(lines)
        return self._classify_events(data)

    def _only_notices(self, lines: list[str]) -> list[Item]:
        """Return the notices if every line is one of `_PLAIN_NOTICES`, else nothing; while idle.

        The fast path of a flood of notices: it is short, so that little code has to be fetched
        again each time a few lines wake the process up.
        """
        contexts = self.contexts
        notices: list[Item] = []
        if self._announced is not None:
            return notices
        for line in lines:
            name, colon, _ = line.partition(":")
            if name in _PLAIN_NOTICES and colon:
                notices.append(NoticeLine(name, line, contexts.get(name)))
            elif line:
                return []
        return notices

    def _classify_lines(self, lines: list[str]) -> Iterator[Item]:
        classified = self._classified
        for line in lines:
            if line:
                self._classify_line(line)
                # The receiver of an answer or a restart may change how the next line is read.
                if classified and type(classified[-1]) is not NoticeLine:
                    yield from self._take_classified()
        if classified:
            yield from self._take_classified()

    def _classify_events(self, data: bytes) -> Iterator[Item]:
        for event in self.framer.feed(data):
            self._classify(event)
            yield from self._take_decided()

    def finish(self) -> Iterator[Item]:
        """Yield what the end of the input completes: the last line, the answer in progress."""
        for event in self.framer.finish():
            self._classify(event)
            yield from self._take_decided()
        self._takes_pdu("")
        yield from self._take_decided()
        if self.offline:
            yield from self._end_offline()
        self._reset()

    def _take_classified(self) -> list[Item]:
        items = self._classified.copy()
        self._classified.clear()
        return items

    def _take_decided(self) -> Iterable[Item]:
        items = self._take_classified()
        return self._hold(items) if self.offline else items

    def _hold(self, items: Iterable[Item]) -> Iterator[Item]:
        """Hold items back, in order, until it is decided whether a line belongs to an answer."""
        for item in items:
            if isinstance(item, Answer):
                yield from self._release_held(item.lines)
                yield item
            elif self._held:
                self._held.append((False, item))
            else:
                yield item
        if len(self._held) > _HELD_ITEMS:
            yield from self._end_offline()

    def _release_held(self, lines: tuple[str, ...]) -> Iterator[Item]:
        held, self._held = self._held, []
        for is_body, item in held:
            if not (is_body and lines):
                yield item

    def _end_offline(self) -> Iterator[Item]:
        """Yield the answer in progress, or the lines that belonged to none."""
        if self._state is not IDLE:
            yield from self._release_held(tuple(self._body))
            yield Answer(tuple(self._body), None, command=self._command)
        else:
            yield from self._release_held(())
        self._reset()

    def _reset(self) -> None:
        self._state = TRANSITIONS[self._state, END]
        self._command = None
        self._echo = []
        self._body = []
        self.framer.multiline = None if self.offline else ""
        self.framer.expects_prompt = False

    def _classify(self, event: Event) -> None:
        if type(event) is Line:
            self._classify_line(event.text)
            return
        self._classified.append(event)  # type: ignore[arg-type]
        if type(event) is Log and event.text.startswith(BOOT_BANNER):
            self._restart(event.text)

    def _classify_line(self, line: str) -> None:
        if self._announced is not None and self._takes_pdu(line):
            return
        if self._echo and len(line) <= len(self._echo[0]) and self._is_echo(line):
            self._classified.append(Echo(line))
        elif (self._state is ANSWERED or self.offline) and (final := final_result(line)):
            self._classified.append(self._final(line, *final))
        elif name := line_name(line):
            self._named_line(name, line)
        elif line in START_LINES:
            self._restart(line)
        elif self._state is ANSWERED and self.owner.name in _LISTS_COMMANDS and line[:2] == "AT":
            self._echo = []
            self._body.append(line)
        elif self._state is ANSWERED and line == self.owner.name:
            self._body.append(line)  # a test form may be answered with the name alone
        elif self.offline and _ECHO.fullmatch(line):
            self._offline_echo(line, line)
        elif self.offline and (command := unwrapped(line)) is not None:
            self._offline_echo(line, command)
        elif self._takes_bare_lines() and "\\x" not in line and line.isprintable():
            self._body.append(line)
            if self._state is not ANSWERED:
                self._held.append((True, Unknown(line)))
        else:
            self._classified.append(Unknown(line))

    def _named_line(self, name: str, line: str) -> None:
        last = line_name(self._body[-1]) if self._body and name in ONE_SHAPE else ""
        if self._state is ANSWERED:
            own = ANSWERS_TO.get(name, name) == self.owner.name and self.owner.owns(line)
        elif own := self.offline and last in ("", name) and not looks_like_notice(line):
            self._state = TRANSITIONS[self._state, NAMED_LINE]
        if own:
            if last == name:
                earlier = self._body.pop()
                self._classified.append(NoticeLine(name, earlier, self.contexts.get(name)))
            self._body.append(line)
            return
        if name in self._recent_names and is_reply_alone(name, line):
            self._repeated = self._state is ANSWERED
            self._classified.append(Unknown(line))
            return
        notice = NoticeLine(name, line, self.contexts.get(name))
        if name in _ANNOUNCE_PDU:
            self._announced = notice
            return
        self._classified.append(notice)
        if name == "#XMODEM" and "SHUTDOWN" not in line:
            self._restart(line)

    def _takes_pdu(self, line: str) -> bool:
        """Add the announcing notice, with `line` if that is its message; return whether it is."""
        notice, self._announced = self._announced, None
        if notice is None:
            return False
        is_pdu = _PDU.fullmatch(line) is not None
        self._classified.append(
            replace(notice, line=f"{notice.line}\r\n{line}") if is_pdu else notice
        )
        return is_pdu

    def _takes_bare_lines(self) -> bool:
        return self.owner.bare if self._state is ANSWERED else self.offline

    def _final(self, line: str, final: str, code: int | None, text: str) -> Answer | Unknown:
        """Return the answer that a final result ends, unless it ends one that came again."""
        if self._repeated and not self._body:
            self._repeated = False
            return Unknown(line)
        command, lines = self._command, tuple(self._body)
        if not self.offline:
            for body_line in lines:
                if name := line_name(body_line):
                    self._recent_names[name] = None
            while len(self._recent_names) > _MOST_RECENT_NAMES:
                del self._recent_names[next(iter(self._recent_names))]
        if command is not None and final == "OK" and (name := command_name(command)):
            self.contexts[name] = command
        self._reset()
        return Answer(lines, final, code, text, command)

    def _restart(self, line: str) -> None:
        # Offline, an answer that a restart cut off stays in progress until the input ends.
        if not self.offline:
            # What has no name was printed by the application before its end, or may have been.
            self._classified += [Unknown(each) for each in self._body if not line_name(each)]
            self._reset()
        self.contexts.clear()
        self._classified.append(Restart(line))

    def _is_echo(self, line: str) -> bool:
        """Return whether a line is the next of the echo: whole, or cut at the echo buffer's end."""
        expected = self._echo[0]
        if line == expected:
            del self._echo[0]
            return True
        cut = expected.startswith(line) and (
            len(line) >= ECHO_LIMIT or (line[:2].upper() == "AT" and len(line) > 3)
        )
        lost = len(line) > 2 and expected.endswith(line) and len(line) >= len(expected) - 2
        if cut or lost:
            self._echo.clear()
        return cut or lost

    def _offline_echo(self, line: str, command: str) -> None:
        self._classified += self._end_offline()
        self.start(command)
        self._echo = []
        self.framer.multiline = self.owner.name or None
        self._classified.append(Echo(line))
