"""The claims of a station: the boards that it alone works on, and changes of several at once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Self, TypeVar

from msgspec import Struct

from agent.errors import ResourceUnavailable
from agent.provisioning.ledger.backend import Database, DatabaseFailed, Execute
from agent.provisioning.ledger.records import RunRecord
from agent.provisioning.ledger.station_runs import StationRuns

T = TypeVar("T")


class BoardBusy(ResourceUnavailable):
    """Another station works on this board."""

    kind = "busy"


class Claim(Struct, frozen=True):
    """A claimed board: the session of the database that holds it, and the run that it is for."""

    session: int
    run: str
    security_tag: int | None
    device_id: str


def _locks_of(uuid: str, device_id: str) -> list[str]:
    """Return the names of the locks of a board, its UUID, and of its device id."""
    return [uuid] if device_id in {"", uuid} else [uuid, f"device {device_id}"]


class StationClaims(StationRuns):
    """The ledger of a station, to be read, with the claims of that station."""

    def __init__(
        self, database: Database, station: str, now: Callable[[], datetime], older: str = ""
    ) -> None:
        super().__init__(database, station, now, older)
        self._claimed: dict[str, Claim] = {}

    @property
    def claims(self) -> int:
        """How many boards are claimed."""
        return len(self._claimed)

    def close(self) -> None:
        """Release every claim and close the database."""
        self._claimed.clear()
        super().close()

    def together(
        self, works: Sequence[Callable[[Self], Callable[[], T] | None]], *, alone: bool = False
    ) -> Iterator[T | Exception | None]:
        """Do works of several boards in one transaction; yield what came of each, in their order.

        One that is refused is undone with the others, and each is done again `alone`: the refusal
        touches no other. So is one that stood in the way of another station, and would not now.
        """
        if not self._claimed:
            self._database.renew()  # no claim is lost with it
        before, session = dict(self._claimed), self._database.session
        try:
            with self._database.transaction(writes=True):
                answers = [work(self) for work in works]
        except Exception as error:  # noqa: BLE001 - it is raised where the work's answer is due
            lost = session != self._database.session
            if not lost:
                for uuid in self._claimed.keys() - before.keys():
                    self._unlock(uuid, self._claimed[uuid])
            self._claimed = before
            if alone or lost or (isinstance(error, DatabaseFailed) and error.busy):
                yield from [error] * len(works)
            else:
                for work in works:
                    yield from self.together([work], alone=True)
            return
        for answer in answers:
            try:
                yield answer() if answer is not None else None
            except Exception as error:  # noqa: BLE001 - as above
                yield error

    def lock(self, run: RunRecord) -> Callable[[], None]:
        """Claim the board of a run, and its device id, for this station.

        What is returned raises BoardBusy where another has one of them; so does this where another
        port of ours has.
        """
        uuid, device_id = run.uuid, run.device_id
        names = self._locks_for(run)
        with self._database.transaction(writes=True):
            locked = self._database.try_lock(*names)
            self._hold(run)

        def require_locked() -> None:
            number = locked()
            if number == len(names):
                return
            del self._claimed[uuid]
            for name in names[:number]:
                self._database.unlock(name)
            if number == 0:
                raise BoardBusy(f"board {uuid} is being worked on {self._holder(uuid)}")
            raise BoardBusy(
                f"device id {device_id} is being given to another board at another station"
            )

        return require_locked

    def _locks_for(self, run: RunRecord) -> list[str]:
        """Return the names of the locks of a run. Raises BoardBusy where another port has one."""
        if self._is_live(self._claimed.get(run.uuid)):
            raise BoardBusy(f"board {run.uuid} is on two ports of this station")
        live = {claim.device_id for claim in self._claimed.values() if self._is_live(claim)}
        if run.device_id in live - {""}:
            raise BoardBusy(f"device id {run.device_id} is being given to another board here")
        return _locks_of(run.uuid, run.device_id)

    def _hold(self, run: RunRecord) -> None:
        """Take a run's claim for ours, in the transaction that locks it."""
        session = self._database.session
        self._claimed[run.uuid] = Claim(session, run.id, run.security_tag, run.device_id)

    def release(self, uuid: str) -> None:
        """Release the board, and its device id."""
        claim = self._claimed.pop(uuid, None)
        if claim is not None:
            self._unlock(uuid, claim)

    def give_up(self, run: RunRecord) -> None:
        """Release the board of a run, if it is this run that has it."""
        claim = self._claimed.get(run.uuid)
        if claim is not None and claim.run == run.id:
            self.release(run.uuid)

    def _unlock(self, uuid: str, claim: Claim) -> None:
        if self._is_live(claim):
            for name in reversed(_locks_of(uuid, claim.device_id)):
                self._database.unlock(name)

    @contextmanager
    def _change(self, uuid: str) -> Iterator[tuple[Execute, Claim]]:
        """Begin a transaction on a board. Raises DatabaseFailed where its claim was lost."""
        claim = self._claimed.get(uuid)
        # Before a connection is opened anew, which may take long, for each board in turn.
        if claim is None or not self._is_live(claim):
            raise DatabaseFailed("its connection was lost, and this board's claim with it")
        with self._database.transaction(writes=True) as execute:
            yield execute, claim

    def _is_live(self, claim: Claim | None) -> bool:
        return claim is not None and claim.session == self._database.session

    def _holder(self, uuid: str) -> str:
        known = self.board(uuid)
        station = known.station if known is not None else ""
        return f"at station {station}" if station else "at another station"
