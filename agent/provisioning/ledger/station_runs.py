"""The runs of a station: how they begin and end, and which are still to be given to its command."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import asdict, replace

from agent.provisioning.ledger.backend import Database, Execute
from agent.provisioning.ledger.reader import LedgerReader
from agent.provisioning.ledger.records import INTERRUPTED, UNFINISHED, RunRecord

_CUT_OFF = "it was cut off: its program was killed, or its connection to the ledger was lost"


def insert(table: str, names: tuple[str, ...]) -> str:
    """Return the statement that inserts a row; all values are bound."""
    values = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"  # noqa: S608


_NEW_RUN = insert("runs", tuple(name for name in RunRecord.__struct_fields__ if name != "change"))


class StationRuns(LedgerReader):
    """The ledger of a station, to be read, with the runs and the handovers of that station.

    `hands_over` says whether runs that begin from now on are to be given to a command.
    """

    def __init__(
        self, database: Database, station: str, now: Callable[[], datetime], older: str = ""
    ) -> None:
        super().__init__(database, older)
        self.station = station
        self.hands_over = False
        self._now = now

    def end_lost_runs(self) -> None:
        """Record as interrupted every run that is under way by its record, and by no claim."""
        with self._database.transaction(writes=True) as execute:
            self._end_lost(execute, self._database.unclaimed("runs.uuid"), {})

    def record_run(self, run: RunRecord) -> None:
        """Record a run that has ended and never claimed its board: refused, busy, or lost."""
        with self._database.transaction(writes=True) as execute:
            self._insert_run(execute, run)

    def hold_handovers(self) -> bool:
        """Hold the handovers of this station; False where another process of it does."""
        return self._database.try_lock(f"handovers of {self.station}")() == 1

    def release_handovers(self) -> None:
        """Let another process of this station hold them."""
        self._database.unlock(f"handovers of {self.station}")

    def due_handovers(self, after: int = 0) -> Sequence[RunRecord]:
        """Return runs that have ended and are still to be given, in the order in which they ended.

        At most a hundred, each with a change above `after`.
        """
        due = "SELECT run FROM handovers WHERE station = :station AND handed_at IS NULL"
        where = (
            f"WHERE outcome <> :unfinished AND change > :after AND id IN ({due}) "
            "ORDER BY change LIMIT 100"
        )
        values = {"unfinished": UNFINISHED, "after": after, "station": self.station}
        return self.select(RunRecord, where, values)

    def handed_over(self, run: str) -> None:
        """Record that a run was given."""
        with self._database.transaction(writes=True) as execute:
            execute(
                "UPDATE handovers SET handed_at = :at WHERE run = :run",
                {"at": self._time(), "run": run},
            )

    def _insert_run(self, execute: Execute, run: RunRecord) -> None:
        ours = replace(run, station=self.station)
        execute(_NEW_RUN, self._columns(asdict(ours)))
        if self.hands_over:
            execute(
                "INSERT INTO handovers (run, station) VALUES (:run, :station)",
                {"run": run.id, "station": self.station},
            )

    def _end_run(self, execute: Execute, run: RunRecord) -> None:
        names = "ended_at", "outcome", "step", "exit", "reason_code", "reason", "timings"
        execute(
            f"UPDATE runs SET {', '.join(f'{name} = :{name}' for name in names)} "  # noqa: S608
            "WHERE id = :id",
            {"id": run.id, **{name: self._column(getattr(run, name)) for name in names}},
        )

    def _end_lost(self, execute: Execute, which: str, values: Mapping[str, object]) -> None:
        """End runs that nobody is at: at the last time at which something was heard of them."""
        execute(
            "UPDATE runs SET outcome = :interrupted, reason_code = :interrupted, reason = :reason, "  # noqa: S608
            "ended_at = COALESCE((SELECT max(at) FROM steps WHERE steps.run = runs.id), began_at), "
            "step = COALESCE((SELECT step FROM steps WHERE steps.run = runs.id "
            "ORDER BY steps.id DESC LIMIT 1), step) "
            f"WHERE outcome = :unfinished AND {which}",
            {"interrupted": INTERRUPTED, "reason": _CUT_OFF, "unfinished": UNFINISHED, **values},
        )

    def _time(self) -> object:
        return self._database.time_in(self._now())
