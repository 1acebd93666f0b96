"""The ledger of a station: its claims of boards, and what it records about them."""

from collections.abc import Callable, Mapping
from shlex import quote

from agent.errors import RefusedByRule
from agent.provisioning.ledger import records
from agent.provisioning.ledger.backend import Execute
from agent.provisioning.ledger.claims import Claim, StationClaims
from agent.provisioning.ledger.reader import OF_THE_BOARD, OF_THE_KEY, BoardKnowledge
from agent.provisioning.ledger.registrations import HELD_BY_ANOTHER, LIVE_KEY, DeviceKey
from agent.provisioning.ledger.station_runs import insert

_LAST_RUN = ("serial", "usb_place", "slot", "firmware")


class LabelTaken(RefusedByRule):
    """The label that was scanned is another board's, or the board has another one."""

    kind = "label"


# All names in statements are those of the records' fields; all values are bound.
_NEW_BOARD = insert("boards", tuple(name for name in OF_THE_BOARD if name != "change"))
_NEW_STEP = insert("steps", ("run", "uuid", "at", "station", "step", "state", "detail"))
_NEW_KEY = insert("keys", ("uuid", *OF_THE_KEY, "made_at", "run", "retired_because"))
_HAS_KEY = "EXISTS (SELECT 1 FROM keys WHERE uuid = :uuid AND retired_at IS NULL)"
_KEY_COLUMNS = frozenset(records.KEY_COLUMNS) - {"public_key", "key_digest"}
_BOARD_COLUMNS = frozenset({"attestation", "conflict"})


class Ledger(StationClaims):
    """The open ledger of a station, to be read and written.

    Every method returns after its change is on disk. Between `claim` and `release` of a board its
    methods record what is done to it; they raise DatabaseFailed where the claim was lost. Not for
    two threads.
    """

    def abort(self) -> None:
        """Abort, from any thread, the call that waits for the database: it fails."""
        self._database.abort()

    def stop_waiting(self, patience_s: float) -> None:
        """Have no call that begins from now on, in any thread, wait longer than that for others."""
        self._database.patience_s = min(patience_s, self._database.patience_s)

    # --- claims and runs

    def claim(self, run: records.RunRecord) -> Callable[[], BoardKnowledge]:
        """Claim the board and record that its run has begun, in one message, as `together` makes.

        Returns how to know the board. Raises BoardBusy where another port of ours has it; where
        another station has, the transaction fails with BoardsLocked: `lock` tells which.
        """
        names = self._locks_for(run)
        with self._database.transaction(writes=True):
            self._database.lock(*names)
            self._hold(run)
            return self.begin_run(run)

    def begin_run(self, run: records.RunRecord) -> Callable[[], BoardKnowledge]:
        """Record that the run of a claimed board has begun; return how to know the board.

        A board that has a live key, or whose device id is that of another, gets its device id with
        its registration, or at the end. One that has a live key gets its IMEI at the end: what says
        this UUID may be a clone.
        """
        texts = dict.fromkeys(OF_THE_BOARD, "")
        none = {"made_at": None, "made_run": None, "updated_at": self._time(), "writes": 0}
        new = {**texts, **none, "uuid": run.uuid}
        begun = {"station": self.station, "reason": ""}
        begun |= {"outcome": records.UNFINISHED, "last_outcome": records.UNFINISHED}
        found = {name: getattr(run, name) for name in _LAST_RUN}
        with self._change(run.uuid) as (execute, _):
            execute(f"{_NEW_BOARD} ON CONFLICT DO NOTHING", new)
            self._end_lost(execute, "runs.uuid = :uuid", {"uuid": run.uuid})
            self._insert_run(execute, run)
            execute(
                "UPDATE boards SET device_id = :device_id WHERE uuid = :uuid "  # noqa: S608
                f"AND NOT ({HELD_BY_ANOTHER} OR {_HAS_KEY})",
                {"uuid": run.uuid, "device_id": run.device_id},
            )
            execute(
                f"UPDATE boards SET imei = :imei WHERE uuid = :uuid AND NOT {_HAS_KEY}",  # noqa: S608
                {"uuid": run.uuid, "imei": run.imei},
            )
            self._set_board(execute, run.uuid, {**found, **begun})
            return self.know(run.uuid, run.device_id, run.security_tag)

    def conclude(self, run: records.RunRecord) -> None:
        """Record how the run of a claimed board ended. Its writes are counted already."""
        with self._change(run.uuid) as (execute, _):
            if not run.is_made:
                self._note(execute, run.uuid, run.step, records.FAILED, run.reason)
            self._end_run(execute, run)
            # A run that was stopped leaves the board where it was: unfinished.
            last = records.UNFINISHED if run.outcome == records.INTERRUPTED else run.outcome
            outcome = "done" if run.is_made else last
            changes = {"outcome": outcome, "last_outcome": last, "reason": run.reason}
            if run.is_made:
                changes |= {"device_id": run.device_id, "imei": run.imei, "conflict": ""}
            self._set_board(execute, run.uuid, changes)
            if run.is_made:
                self._set_made(execute, run)

    def consent(self, uuid: str, what: str) -> None:
        """Record what was allowed by name for this run, before it is done."""
        with self._change(uuid) as (execute, claim):
            execute(
                "UPDATE runs SET consent = :what WHERE id = :run", {"what": what, "run": claim.run}
            )

    # --- the steps of a claimed board

    def begin(self, uuid: str, step: str, detail: str = "", writes: int = 0) -> None:
        """Record that a step is about to be done; one begun and not done may have happened.

        `writes` are the credential writes that it is: counted now, so that none is lost to a kill.
        """
        with self._change(uuid) as (execute, claim):
            self._note(execute, uuid, step, records.BEGUN, detail)
            self._count(execute, uuid, claim.run, writes)

    def refused(self, uuid: str, step: str, reason: str, writes: int = 0) -> None:
        """Record that a step which was begun was not done; `writes` were counted and were none."""
        with self._change(uuid) as (execute, claim):
            self._note(execute, uuid, step, records.REFUSED, reason)
            self._count(execute, uuid, claim.run, -writes)

    def never_done(self, note: records.StepRecord, reason: str) -> None:
        """Record that a write which a run began, and was cut off at, was not done."""
        with self._change(note.uuid) as (execute, _):
            self._note(execute, note.uuid, note.step, records.REFUSED, reason)
            self._count(execute, note.uuid, note.run, -1)

    def finish(self, uuid: str, step: str, detail: str = "", **columns: str) -> None:
        """Record that a step was done, with its results: columns of the board, or of its key."""
        with self._change(uuid) as (execute, _):
            self._note(execute, uuid, step, records.DONE, detail)
            self._set(execute, uuid, columns)

    def begin_registration(self, uuid: str, step: str, detail: str, method: str) -> None:
        """Record that the service is about to be given the key of the run's tag."""
        with self._change(uuid) as (execute, claim):
            self._note(execute, uuid, step, records.BEGUN, detail)
            self._device_key(execute, uuid, claim).begin(method)

    def finish_registration(
        self, uuid: str, step: str, detail: str, method: str, **columns: str
    ) -> None:
        """Record that the service took the key of the run's tag, with the results.

        The service keeps one key for each device: every other one loses this device id, and one
        that is left with none retires.
        """
        with self._change(uuid) as (execute, claim):
            self._note(execute, uuid, step, records.DONE, detail)
            self._set(execute, uuid, columns)
            self._device_key(execute, uuid, claim).finish(method)
            self._give_device_id(execute, uuid, claim)

    def hold_device_id(self, uuid: str, method: str) -> None:
        """Record that the board has the run's device id, by a method that gives no key.

        Every other board loses it.
        """
        with self._change(uuid) as (execute, claim):
            self._device_key(execute, uuid, claim).hold(method)
            self._give_device_id(execute, uuid, claim)

    def finish_key(
        self, uuid: str, step: str, detail: str, public_key: str, key_digest: str, because: str
    ) -> None:
        """Record that a key was made in the run's tag: it is the live one, the one before retires.

        So does one whose tag was never known: the modem does not list it any more.
        """
        with self._change(uuid) as (execute, claim):
            self._note(execute, uuid, step, records.DONE, detail)
            execute(
                "UPDATE keys SET retired_at = :at, retired_because = :because WHERE uuid = :uuid "
                "AND retired_at IS NULL AND (security_tag = :tag OR security_tag IS NULL)",
                {"at": self._time(), "because": because, "uuid": uuid, "tag": claim.security_tag},
            )
            key = {
                **dict.fromkeys(records.KEY_COLUMNS, ""),
                "uuid": uuid,
                "security_tag": claim.security_tag,
                "public_key": public_key,
                "key_digest": key_digest,
                "made_at": self._time(),
                "run": claim.run,
                "retired_because": "",
            }
            execute(_NEW_KEY, key)
            self._set_board(execute, uuid, {})

    def update(self, uuid: str, **columns: str) -> None:
        """Store the results so far of a step that is not yet done: columns of board or key."""
        with self._change(uuid) as (execute, _):
            self._set(execute, uuid, columns)

    def adopt_key(self, uuid: str, key: int, security_tag: int) -> None:
        """Record the tag under which the modem lists a key of an older ledger."""
        with self._change(uuid) as (execute, _):
            execute(
                "UPDATE keys SET security_tag = :tag WHERE id = :key AND security_tag IS NULL",
                {"tag": security_tag, "key": key},
            )

    def bind_label(self, uuid: str, label: str, *, replaces: bool) -> Callable[[], str]:
        """Bind a label to the board, if it is free and the board has none.

        `replaces` allows to take it from another board, and to take the place of the board's own.
        What is returned tells what had to be allowed for that, "" for nothing. It raises LabelTaken
        where the label was not bound.
        """
        values = {"uuid": uuid, "label": label, "at": self._time()}
        query = "SELECT uuid, label FROM boards WHERE uuid = :uuid OR label = :label"
        free = "label = '' AND NOT EXISTS (SELECT 1 FROM boards WHERE label = :label)"
        with self._change(uuid) as (execute, _):
            rows = execute(query, values)
            if replaces:
                free = "label <> :label"
                execute(
                    "UPDATE boards SET label = '' WHERE label = :label AND uuid <> :uuid", values
                )
            execute(
                "UPDATE boards SET label = :label, updated_at = :at "  # noqa: S608
                f"WHERE uuid = :uuid AND {free}",
                values,
            )

        def bound() -> str:
            found = {str(of): str(its) for of, its in rows}
            own = found.pop(uuid)
            if own == label:
                return ""
            others = [f"label {label} is that of board {other}" for other in found]
            if not others and own:
                others = [f"this board has the label {own}, and {label} was scanned"]
            if others and not replaces:
                raise LabelTaken(
                    f"{others[0]}: nothing was written to this one",
                    hint="scan the slot, then the right label; a label that was stuck on another "
                    f"board, or anew, is bound by `--relabel {quote(label)}`",
                )
            return f"--relabel {label}: {others[0]}" if others else ""

        return bound

    # --- within a transaction

    def _note(self, execute: Execute, uuid: str, step: str, state: str, detail: str) -> None:
        values = {
            "run": self._claimed[uuid].run,
            "uuid": uuid,
            "at": self._time(),
            "station": self.station,
            "step": step,
            "state": state,
            "detail": detail,
        }
        execute(_NEW_STEP, values)

    def _count(self, execute: Execute, uuid: str, run: str | None, writes: int) -> None:
        if writes:
            for table, key, value in (("boards", "uuid", uuid), ("runs", "id", run)):
                execute(
                    f"UPDATE {table} SET writes = writes + :more WHERE {key} = :key",  # noqa: S608
                    {"more": writes, "key": value},
                )

    def _set(self, execute: Execute, uuid: str, columns: Mapping[str, str]) -> None:
        unknown = columns.keys() - _BOARD_COLUMNS - _KEY_COLUMNS
        if unknown:
            raise ValueError(f"a board has no column {', '.join(sorted(unknown))}")
        of_key = {name: value for name, value in columns.items() if name in _KEY_COLUMNS}
        if of_key:
            execute(
                f"UPDATE keys SET {', '.join(f'{name} = :{name}' for name in of_key)} "  # noqa: S608
                f"WHERE {LIVE_KEY}",
                {**of_key, "uuid": uuid, "tag": self._claimed[uuid].security_tag},
            )
        self._set_board(
            execute, uuid, {name: columns[name] for name in columns.keys() - of_key.keys()}
        )

    def _set_board(self, execute: Execute, uuid: str, columns: Mapping[str, object]) -> None:
        changes = {name: f":{name}" for name in [*columns, "updated_at"]}
        if "outcome" in changes:
            changes["outcome"] = "CASE WHEN outcome = 'done' THEN outcome ELSE :outcome END"
        execute(
            f"UPDATE boards SET {', '.join(f'{name} = {to}' for name, to in changes.items())} "  # noqa: S608
            "WHERE uuid = :uuid",
            {**columns, "updated_at": self._time(), "uuid": uuid},
        )

    def _set_made(self, execute: Execute, run: records.RunRecord) -> None:
        # Found unchanged, it was made before; where that run was cut off, nothing says so but this.
        where = "uuid = :uuid" if run.outcome == "done" else "uuid = :uuid AND made_at IS NULL"
        execute(
            "UPDATE boards SET made_at = :at, made_station = :station, made_run = :run "  # noqa: S608
            f"WHERE {where}",
            {
                "at": self._column(run.ended_at),
                "station": self.station,
                "run": run.id,
                "uuid": run.uuid,
            },
        )

    def _device_key(self, execute: Execute, uuid: str, claim: Claim) -> DeviceKey:
        """Return the board's key in the run's tag, as the run's device."""
        return DeviceKey(execute, self._time(), uuid, claim.security_tag, claim.device_id)

    def _give_device_id(self, execute: Execute, uuid: str, claim: Claim) -> None:
        """Give the board its device id; another board that has it still is told so."""
        when = f"{self._now():%Y-%m-%d %H:%M} UTC"
        text = f"device {claim.device_id} was given to board {uuid} on {when}"
        execute(
            "UPDATE boards SET conflict = :text "
            "WHERE device_id = :device_id AND device_id <> '' AND uuid <> :uuid",
            {"uuid": uuid, "device_id": claim.device_id, "text": text},
        )
        self._set_board(execute, uuid, {"device_id": claim.device_id, "conflict": ""})
