"""Which answers may be copies of an earlier command's, on a line that repeats bytes. Pure.

Such a line gives the final result of one command once more while a later one is in flight. A copy
with lines shows by their name (at.protocol.line.exchange). One without shows by its text and the
time: it came already, or it is an OK a moment after another OK, for a command that needs a line.
Where two commands in a row are answered with OK alone, nothing shows that one OK is a copy.
"""

import re
from collections import deque

from at.protocol.line.answer_or_notice import command_name, is_reply_alone, line_name
from at.protocol.line.items import Answer, final_result

COPY_S = 0.05
"""How long after an answer a copy of it may come."""
AWAIT_S = 0.1
"""How long another answer is awaited behind one that may be a copy."""
_RECENT = 32
_SET = re.compile(r"[^=]*=(?!\?\s*\Z).*", re.DOTALL)


class RecentAnswers:
    """The last answers, and lines that were nobody's, each with its time in seconds."""

    def __init__(self) -> None:
        self._answers: deque[tuple[float, Answer]] = deque(maxlen=_RECENT)
        self._strays: deque[tuple[float, str]] = deque(maxlen=_RECENT)
        self.come_twice: bool | None = None
        """Whether answers come twice on this link; None where nothing tells yet."""

    def add(self, answer: Answer, now: float) -> None:
        """Add an answer that came for a command."""
        self._answers.append((now, answer))

    def add_named(self, line: str, now: float) -> None:
        """Add a line with a name that was given to no command: a notice, or a late answer's."""
        self._strays.append((now, line))

    def add_stray(self, line: str, now: float) -> None:
        """Add a line that was given to no command: it may be of the answer to one before."""
        if final := final_result(line):
            self._answers.append((now, Answer((), *final)))
            self.come_twice = True
        else:
            self._strays.append((now, line))

    def waited_in_vain(self, answer: Answer) -> None:
        """Note that no other answer came behind this one, which might have been a copy."""
        # An OK alone is awaited another answer for by the time, which may not decide what is known.
        if self.come_twice is None and not is_ok_alone(answer):
            self.come_twice = False

    def has_name_of(self, answer: Answer, now: float) -> bool:
        """Return whether one of these has lines of the answer's name, a moment before it."""
        name = _name(answer)
        return name != "" and (
            any(now - then < COPY_S and name == _name(earlier) for then, earlier in self._answers)
            or any(now - then < COPY_S and name == line_name(line) for then, line in self._strays)
        )

    def may_be_copy(self, answer: Answer, now: float, *, expects_line: bool) -> bool:
        """Return whether an answer may be a copy of one of these.

        `expects_line`: it is an OK alone for a command whose answer has a line. Where nothing tells
        yet whether answers come twice, any answer as before may be a copy, whenever it comes; where
        none does, none may: the time decides nothing on a sound link.
        """
        if not expects_line and (self.come_twice is False or is_ok_alone(answer)):
            return False
        came_before = False
        for _, earlier in self._answers:
            # Most differ in their lines, which is found out sooner than by a whole comparison.
            if earlier.lines == answer.lines and earlier == answer:
                if answer.lines and earlier.command == answer.command:
                    return False  # it is as right for its command as it was for the earlier one
                came_before = True
        if not expects_line and self.come_twice is None:
            return came_before
        return (
            answer.lines != () and all(self._is_stray(line, now) for line in answer.lines)
        ) or any(
            now - then < COPY_S
            and earlier.final == answer.final
            and (expects_line or earlier == answer)
            for then, earlier in self._answers
        )

    def _is_stray(self, line: str, now: float) -> bool:
        known = any(now - then < COPY_S and line == stray for then, stray in self._strays)
        return known and is_reply_alone(line_name(line), line)


def is_ok_alone(answer: Answer) -> bool:
    """Return whether an answer is OK without a line."""
    return answer.final == "OK" and not answer.lines


def _name(answer: Answer) -> str:
    return line_name(answer.lines[0]) if answer.lines else ""


def tells_more(answer: Answer, other: Answer) -> bool:
    """Return whether of two answers that may both be copies this is the better one to give."""
    return _telling(answer) > _telling(other)


def _telling(answer: Answer) -> tuple[bool, bool, bool]:
    # Behind lines of the command's own name a refusal: who takes one for true tries again.
    return _name(answer) != "", answer.final != "OK", answer.lines != ()


def expects_line(command: str) -> bool:
    """Return whether the answer to a command line has a line as a rule: all but set commands."""
    return command_name(command) != "" and _SET.fullmatch(command) is None
