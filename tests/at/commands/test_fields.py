"""What each line of every type is read as, in a record that can be read beside the manual.

`python tests/at/commands/test_fields.py` writes the record anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.modem.answers import notice_value, value_of
from tests.support.modem.typed_answers import ANSWERS, NOTICES

RECORD = Path(__file__).with_name("fields.txt")


def record() -> Iterator[str]:
    for text, lines in ANSWERS.items():
        yield f"{text} | {json.dumps(value_of(text, *lines))}"
    for line in NOTICES:
        yield f"{line} | {json.dumps(notice_value(line))}"


def test_each_field_has_its_part_of_the_line() -> None:
    assert list(record()) == RECORD.read_text("utf-8").splitlines()


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line}\n" for line in record()), "utf-8")
    sys.exit()
