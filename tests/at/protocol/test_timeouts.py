"""How long the answer to a command line may take, by its text alone."""

from __future__ import annotations

import pytest

from at.commands.catalog import TYPES
from at.protocol.timeouts import TIMEOUTS_S, timeout_of


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("AT+CFUN=4", 60.0),
        ("at+cops=?", 600.0),
        ("AT+COPS=0", 180.0),
        ("AT+COPS?", 5.0),
        ("AT%CMNG=1", 30.0),  # of all four operations the longest
        (" AT%CONEVAL ", 60.0),
        ("AT+FOO=1", 5.0),
        ("ATE0", 5.0),
    ],
)
def test_a_command_line_may_take_as_long_as_the_table_says(line: str, seconds: float) -> None:
    assert timeout_of(line) == seconds


def test_every_row_of_the_table_is_of_a_typed_command() -> None:
    kinds = [kind for kinds in TYPES.values() for kind in kinds]
    # One whose answer is OK alone is none that TYPES would read an answer with.
    names = {kind.name for kind in kinds} | {"%NRFCLOUDOBSFORWARD", "#XDFUINIT", "#XDFUAPPLY"}
    assert {text[2:].partition("=")[0] for text in TIMEOUTS_S} <= names


def test_a_typed_command_may_take_as_long_as_its_row_says() -> None:
    (operation,) = [kind for kind in _kinds("%CMNG") if kind.first_parameter == 1]
    assert operation.timeout_s == 15.0
    assert {kind.timeout_s for kind in _kinds("+CFUN")} == {5.0}


def _kinds(name: str) -> list[type]:
    return [kind for (each, _), kinds in TYPES.items() if each == name for kind in kinds]
