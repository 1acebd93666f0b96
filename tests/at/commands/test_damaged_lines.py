"""Every byte of a right line of every type cut, flipped and doubled: a value or a ParseError."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from answers import notice_of
from typed_answers import ANSWERS, NOTICES

from at.commands.catalog import TYPES, command_of
from at.protocol import notices
from at.protocol.errors import ParseError
from at.protocol.values import as_json, name_before_colon


def damaged(line: str) -> Iterator[str]:
    for at in range(len(line)):
        yield line[:at]
        yield line[:at] + line[at + 1 :]
        yield line[: at + 1] + line[at:]
        for bit in range(8):
            yield line[:at] + chr(ord(line[at]) ^ (1 << bit)) + line[at + 1 :]


def test_every_type_has_an_answer_here_that_it_reads() -> None:
    read = set()
    for text, lines in ANSWERS.items():
        command = command_of(text)
        assert command is not None, text
        as_json(command.parse(lines))
        read.add(type(command))
    assert {kind for kinds in TYPES.values() for kind in kinds if kind.prefix} - read == set()
    assert {name_before_colon(line) for line in NOTICES} >= set(notices._parsers) - {"+CEDRXS"}


@pytest.mark.parametrize("text", ANSWERS)
def test_a_damaged_answer_is_read_or_refused(text: str) -> None:
    command = command_of(text)
    assert command is not None
    lines = ANSWERS[text]
    for index, line in enumerate(lines):
        for one in damaged(line):
            with contextlib.suppress(ParseError):
                as_json(command.parse([*lines[:index], one, *lines[index + 1 :]]))


@pytest.mark.parametrize("line", NOTICES)
def test_a_damaged_notice_is_read_or_refused(line: str) -> None:
    assert not isinstance(notice_of(line), notices.Malformed)
    for one in damaged(line):
        name = name_before_colon(one)
        if not notices.is_known(name):
            continue
        notice = notices.parse(name, one)
        if not isinstance(notice, notices.Malformed) and hasattr(notice, "value"):
            as_json(notice.value)
