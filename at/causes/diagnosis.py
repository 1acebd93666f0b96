"""From a modem's lines to the causes that the table names for them, best first. Pure."""

import re
from collections.abc import Iterable, Mapping
from io import BufferedReader, BytesIO

from msgspec import Struct

from at.causes.evidence import Evidence
from at.causes.facts import Fact
from at.causes.table import ABSENT, ANY, LINE, Certainty, Expected, Row, Table, load
from at.transcripts.logs.reader import read_lines
from at.transcripts.redaction.named_secrets import without_logged_secrets

MOST = 5
_MOST_FAILURES = 2
_ORDER = {certainty: place for place, certainty in enumerate(Certainty)}
_FACT = re.compile(r"\{([^{}]+)\}")
_NO_SECRET = re.compile(r'[^"]*AT%CMNG=0,\d+,\d+,"\s*-----BEGIN [A-Z ]+-----', re.IGNORECASE)
"""The first line of a write, whose content comes on the next ones."""
_LIMITS = re.compile(r"([<>]) (-?\d+(?:\.\d+)?)")


class Cause(Struct, frozen=True):
    """Why it does not work: `says` one sentence, `evidence` the line it rests on, `next` one step.

    `number` is the line's place in the log, from 1.
    """

    cause: str
    certainty: str
    says: str
    evidence: str
    next: str
    number: int

    @property
    def is_trouble(self) -> bool:
        """Whether it says more than that all is well, or nothing known."""
        return self.cause not in {row.cause for row in load().alone}

    def to_json(self) -> dict[str, str]:
        """Return it in the shape of `modem why --json`."""
        names = ("cause", "certainty", "says", "evidence", "next")
        return {name: getattr(self, name) for name in names}


def causes_of_log(log: bytes | BufferedReader) -> list[Cause]:
    """Return the causes that a log shows. Raises TranscriptError if it is no text."""
    table = load()
    evidence = Evidence(table)
    file: BufferedReader = BufferedReader(BytesIO(log)) if isinstance(log, bytes) else log
    for line in read_lines(file):
        evidence.add(line.text, line.number, line.at_s)
    return causes(evidence.facts(), table)


def causes(facts: Mapping[str, Fact], table: Table) -> list[Cause]:
    """Return the causes that hold for these facts, best first; `alone` rows where none does."""
    rows = sorted(table.rows, key=lambda row: _ORDER[row.certainty])
    return (
        _held(rows, facts)[:MOST]
        or _held(table.failures, facts)[:_MOST_FAILURES]
        or _held(table.alone, facts)[:1]
    )


def _held(rows: Iterable[Row], facts: Mapping[str, Fact]) -> list[Cause]:
    """Return the causes of the rows that hold, each by the first of its rows."""
    found: dict[str, Cause] = {}
    for row in rows:
        if (cause := _cause(row, facts)) is not None:
            found.setdefault(cause.cause, cause)
    return list(found.values())


def _cause(row: Row, facts: Mapping[str, Fact]) -> Cause | None:
    """Return the cause of a row by its newest evidence, None if it does not hold."""
    held = [fact for wanted in row.when if (fact := _rests_on(wanted, facts)) is not None]
    taken_back = max((facts[name].order for name in row.until if name in facts), default=-1)
    fact = max(held, key=lambda fact: fact.order, default=None)
    if fact is None or fact.order < taken_back:
        return None

    def value(match: re.Match[str]) -> str:
        if match[1] == LINE:
            return str(fact.value)
        if match[1] == "pem":
            return f": {facts['pem_defect'].value}" if "pem_defect" in facts else ""
        return str(facts[match[1]].value) if match[1] in facts else "?"

    return Cause(
        cause=_FACT.sub(value, row.cause),
        certainty=row.certainty.value,
        says=_FACT.sub(value, row.says),
        evidence=fact.line
        if _NO_SECRET.fullmatch(fact.line)
        else without_logged_secrets(fact.line),
        next=row.next,
        number=fact.number,
    )


def _rests_on(wanted: Mapping[str, Expected], facts: Mapping[str, Fact]) -> Fact | None:
    """Return the fact that a set of conditions rests on, the first; None if one does not hold."""
    first: Fact | None = None
    for name, expected in wanted.items():
        fact = facts.get(str(expected) if name == LINE else name)
        if not (name == LINE and fact is not None) and not _holds(fact, expected):
            return None
        first = first or fact
    return first or _NOTHING


def _holds(fact: Fact | None, expected: Expected) -> bool:
    if isinstance(expected, list):
        return any(_holds(fact, one) for one in expected)
    if fact is None:
        return expected == ABSENT
    if not isinstance(expected, str):
        return fact.value == expected
    if match := _LIMITS.fullmatch(expected):
        if not isinstance(fact.value, int | float):
            return False
        limit = float(match[2])
        return fact.value < limit if match[1] == "<" else fact.value > limit
    if expected.startswith("/"):
        return re.search(expected[1:-1], str(fact.value)) is not None
    return expected in {ANY, fact.value}


_NOTHING = Fact("", "", 0, 0)
