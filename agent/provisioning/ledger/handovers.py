"""The runs of a station whose records are still to be given to its command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from agent.provisioning.ledger.backend import Database, Execute
from agent.provisioning.ledger.reader import LedgerReader
from agent.provisioning.ledger.records import UNFINISHED, RunRecord


class StationHandovers(LedgerReader):
    """The ledger of a station, to be read, with the handovers of that station.

    `hands_over` says whether runs that begin from now on are to be given to a command.
    """

    def __init__(
        self, database: Database, station: str, now: Callable[[], datetime], older: str = ""
    ) -> None:
        super().__init__(database, older)
        self.station = station
        self.hands_over = False
        self._now = now

    def hold_handovers(self) -> bool:
        """Hold the handovers of this station; False where another process of it does."""
        return self._database.try_lock(f"handovers of {self.station}")

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

    def _note_handover(self, execute: Execute, run: RunRecord) -> None:
        """Record with a run that it is to be given."""
        if self.hands_over:
            execute(
                "INSERT INTO handovers (run, station) VALUES (:run, :station)",
                {"run": run.id, "station": self.station},
            )

    def _time(self) -> object:
        return self._database.time_in(self._now())
