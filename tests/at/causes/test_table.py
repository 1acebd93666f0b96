"""Each row of the table holds for a log, and its next step can be pasted."""

from __future__ import annotations

import re
from functools import cache

import pytest

from at.causes.diagnosis import Cause, causes_of_log
from at.causes.table import Row, load
from at.protocol.redaction.command_redaction import without_secrets
from tests.support.modem.cause_logs import HEALTHY, TROUBLES, cause_logs


def _told(row: Row) -> str:
    """Return a log that makes a row of a cause number hold, "" for another row."""
    if not row.cause.startswith(("emm-", "esm-")):
        return ""
    fact, value = next(iter(row.when[0].items()))
    number = value[0] if isinstance(value, list) else value
    match fact:
        case "emm" | "esm":
            return f"+CNEC_{fact.upper()}: {number}" + (",0" if fact == "esm" else "")
        case "emm_last" | "esm_last":
            return f'AT+CEER\n+CEER: "{fact[:3].upper()} {number}"'
    return ""


ROWS = (*load().rows, *load().failures, *load().alone)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.cause}-{row.certainty.value}")
def test_every_row_holds_for_a_log(row: Row) -> None:
    told = _told(row)
    found = {_shown(one) for one in causes_of_log(told.encode())} if told else _found()
    wanted = row.cause.split("{")[0], row.certainty.value, row.next
    assert any(one[0].startswith(wanted[0]) and one[1:] == wanted[1:] for one in found)


def _shown(cause: Cause) -> tuple[str, str, str]:
    return cause.cause, cause.certainty, cause.next


@cache
def _found() -> set[tuple[str, str, str]]:
    logs = [log for _, log in (*TROUBLES, *HEALTHY, *cause_logs("rows.txt"))]
    return {_shown(one) for log in logs for one in causes_of_log(log.encode())}


def test_every_row_has_its_columns() -> None:
    table = load()
    assert len({row.cause for row in table.rows}) > 100
    for row in ROWS:
        assert all((row.says, row.next, row.source, row.when))


def test_the_commands_of_a_next_step_stand_in_backticks_and_are_whole() -> None:
    for row in ROWS:
        words = row.next.split("`")
        assert not re.search(r"cellagent|\bAT[+%#]", "".join(words[::2])), row
        for command in words[1::2]:
            bare = re.sub(r"'[^']*'", "", command).split()
            assert not any(set("?*") & set(word) for word in bare), row


def test_a_next_step_stays_in_a_log_as_it_can_be_pasted() -> None:
    for row in ROWS:
        told = f"no network: {row.says}; try: {row.next}"
        assert without_secrets(told) == told, row
