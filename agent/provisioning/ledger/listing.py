"""Boards or runs by what they are: filtered by the database, read by pages.

No transaction lasts longer than a page, so that a slow reader holds up no station; whoever reads
all gets each record once, though stations write meanwhile.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct

from agent.provisioning.ledger.reader import LedgerReader
from agent.provisioning.ledger.records import BoardRecord, RunRecord

R = TypeVar("R", BoardRecord, RunRecord)

_PAGE = 500
_LARGEST_INTEGER = 2**63 - 1  # that the databases take
_HAS_RUN = "EXISTS (SELECT 1 FROM runs WHERE runs.uuid = boards.uuid AND runs.{} = :{})"


class RecordFilter(Struct, frozen=True):
    """Which boards, or runs, are wanted; None: all.

    Of boards: their outcome, the station and the time of their last change, a lot and a reason that
    one of their runs has. Of runs: their own, and since when they began.
    """

    outcome: str | None = None
    station: str | None = None
    lot: str | None = None
    reason: str | None = None
    since: datetime | None = None


class _Source(Struct, frozen=True):
    """A table, the condition of each field of a filter, and how all of its rows are walked through.

    A walk is a column whose ranges are read one after the other, a condition, and an order.
    """

    table: str
    conditions: Mapping[str, str]
    walks: tuple[tuple[str, str, str], ...]


_SOURCES = {
    BoardRecord: _Source(
        "boards",
        {
            "outcome": "boards.outcome = :outcome",
            "station": "boards.station = :station",
            "lot": _HAS_RUN.format("lot", "lot"),
            "reason": _HAS_RUN.format("reason_code", "reason"),
            "since": "boards.updated_at >= :since",
        },
        (("uuid", "TRUE", "boards.uuid"),),
    ),
    RunRecord: _Source(
        "runs",
        {
            "outcome": "outcome = :outcome",
            "station": "station = :station",
            "lot": "lot = :lot",
            "reason": "reason_code = :reason",
            "since": "began_at >= :since",
        },
        (("id", "uuid = ''", "id"), ("uuid", "TRUE", "uuid, change")),
    ),
}


class Listing(Generic[R]):
    """The boards or the runs (`kind`) of a ledger that a filter lets through."""

    def __init__(self, reader: LedgerReader, kind: type[R], wanted: RecordFilter) -> None:
        self._reader: LedgerReader = reader
        self._kind: type[R] = kind
        self._source: _Source = _SOURCES[kind]
        given = {name: getattr(wanted, name) for name in wanted.__struct_fields__}
        self._values: dict[str, object] = {
            name: value for name, value in given.items() if value is not None
        }
        conditions: list[str] = [self._source.conditions[name] for name in self._values]
        self._where: str = " AND ".join(["TRUE", *conditions])

    def counts(self) -> dict[str, int]:
        """Return how many there are of each outcome."""
        rows = self._reader.query(
            f"SELECT outcome, count(*) FROM {self._source.table} WHERE {self._where} "  # noqa: S608
            "GROUP BY outcome ORDER BY outcome",
            self._values,
        )
        return {str(outcome): int(count) for outcome, count in rows}

    def newest(self, limit: int, page: int = 1) -> list[R]:
        """Return a page of at most `limit`, the newest change first."""
        order = f"{self._source.table}.change DESC LIMIT :limit OFFSET :skip"
        skip = min((page - 1) * limit, _LARGEST_INTEGER)
        values = {**self._values, "limit": min(limit, _LARGEST_INTEGER), "skip": skip}
        return self._reader.select(self._kind, f"WHERE {self._where} ORDER BY {order}", values)

    def every(self) -> Iterator[R]:
        """Yield all: by board, and a board's runs as they came; those of no known board first."""
        for column, condition, order in self._source.walks:
            name = f"{self._source.table}.{column}"
            where = (
                f"WHERE {self._where} AND {condition} AND {name} > :after AND {name} <= :last "
                f"ORDER BY {order}"
            )
            for after, last in self._ranges(column, condition):
                values = {**self._values, "after": after, "last": last}
                yield from self._reader.select(self._kind, where, values)

    def _ranges(self, column: str, condition: str) -> Iterator[tuple[str, str]]:
        """Yield ranges of a column with the rows of a page each, or of one board that has more."""
        query = (
            f"SELECT max({column}) FROM (SELECT {column} FROM {self._source.table} "  # noqa: S608
            f"WHERE {condition} AND {column} > :after ORDER BY {column} LIMIT {_PAGE}) AS page"
        )
        after = ""
        while last := self._reader.query(query, {"after": after})[0][0]:
            yield after, str(last)
            after = str(last)
