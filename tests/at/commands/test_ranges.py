"""The numbers that each field of a line may have, beside which the manual can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from at.commands.catalog import command_of
from at.protocol import notices
from at.protocol.errors import ParseError
from at.protocol.values import name_before_colon
from tests.support.harness.recorded import assert_recorded
from tests.support.modem.typed_answers import ANSWERS, NOTICES

_NUMBER = re.compile(r"(?<![\w.\"-])-?\d+(?![\w.\"-])")
_EDGES = (
    *(64, 90, 97, 100, 128, 256, 300, 359, 503, 512, 1000, 1024, 1282, 3000, 3200, 4096, 7000),
    *(20512, 32768, 65536, 262144, 1 << 24, 1 << 28, 1 << 31, 1 << 32, 10**10),
)
PROBES = sorted({*range(-32, 50), *(edge + step for edge in _EDGES for step in (-2, -1, 0, 1, 2))})


def reads_answer(text: str, index: int) -> Callable[[str], bool]:
    command = command_of(text)
    assert command is not None

    def reads(line: str) -> bool:
        lines = ANSWERS[text]
        try:
            command.parse([*lines[:index], line, *lines[index + 1 :]])
        except ParseError:
            return False
        return True

    return reads


def reads_notice(line: str) -> bool:
    return not isinstance(notices.parse(name_before_colon(line), line), notices.Malformed)


def accepted(line: str, reads: Callable[[str], bool]) -> str:
    """Return the probes that each number of a line may be, as ranges."""
    shown = []
    for number in _NUMBER.finditer(line):
        fits = [reads(f"{line[: number.start()]}{probe}{line[number.end() :]}") for probe in PROBES]
        shown.append(",".join(runs(fits)) or number.group())
    return " ".join(shown)


def runs(fits: list[bool]) -> Iterator[str]:
    begin: int | None = None
    for at, fit in enumerate([*fits, False]):
        if fit and begin is None:
            begin = at
        elif not fit and begin is not None:
            last = "" if at == len(PROBES) else PROBES[at - 1]
            yield str(last) if at - 1 == begin else f"{PROBES[begin]}..{last}"
            begin = None


def record() -> str:
    lines = [
        f"{text} | {line.splitlines()[0][:60]} | {accepted(line, reads_answer(text, index))}"
        for text, answer in ANSWERS.items()
        for index, line in enumerate(answer)
    ]
    lines += [f"notice | {line[:60]} | {accepted(line, reads_notice)}" for line in NOTICES]
    return "\n".join(lines) + "\n"


def test_each_number_of_a_line_has_the_range_of_its_manual() -> None:
    assert_recorded(Path(__file__).with_name("ranges.txt"), record())
