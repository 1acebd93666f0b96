"""What each line of every type is read as, in a record that can be read beside the manual."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.support.harness.recorded import assert_recorded
from tests.support.modem.answers import notice_value, value_of
from tests.support.modem.typed_answers import ANSWERS, NOTICES


def record() -> Iterator[str]:
    for text, lines in ANSWERS.items():
        yield f"{text} | {json.dumps(value_of(text, *lines))}\n"
    for line in NOTICES:
        yield f"{line} | {json.dumps(notice_value(line))}\n"


def test_each_field_has_its_part_of_the_line() -> None:
    assert_recorded(Path(__file__).with_name("fields.txt"), "".join(record()))
