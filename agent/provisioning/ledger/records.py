"""The records of the ledger: boards, their keys, the runs, and the steps of each run.

`change` numbers every change of a record: the record with the largest one changed last.
"""

from datetime import datetime

from msgspec import Struct

BEGUN, DONE, REFUSED, FAILED = "begun", "done", "refused", "failed"
UNFINISHED = "unfinished"
"""The outcome of a run that is under way, or was cut off and not looked at since."""
INTERRUPTED = "interrupted"
"""The outcome of a run that was found cut off: by a kill, or the loss of the ledger."""


class BoardRecord(Struct, frozen=True):
    """The ledger's record of a board with one of its keys; "" for an unknown value.

    `outcome` is "done" for ever once it was reached, else as `last_outcome`, that of the last run;
    `reason` is the last run's. `made_at`, `made_station` and `made_run` tell when, where and by
    which run it became done last; `station` and `updated_at` where and when it changed last.
    `conflict` says why the board is refused by name. `label` is what was scanned for it: no other
    board has it. `attestation` is the token that claims the
    device. `writes` counts credential writes. The columns from `security_tag` on are those of its
    live key (see KeyRecord): of the tag that was asked for, or the one that was made last.
    """

    uuid: str
    imei: str = ""
    device_id: str = ""
    serial: str = ""
    usb_place: str = ""
    slot: str = ""
    label: str = ""
    firmware: str = ""
    station: str = ""
    outcome: str = ""
    last_outcome: str = ""
    reason: str = ""
    conflict: str = ""
    attestation: str = ""
    writes: int = 0
    made_at: datetime | None = None
    made_station: str = ""
    made_run: str | None = None
    updated_at: datetime | None = None
    change: int = 0
    security_tag: int | None = None
    public_key: str = ""
    key_digest: str = ""
    certificate: str = ""
    certificate_serial: str = ""
    registered_key: str = ""
    registered_as: str = ""
    request_id: str = ""


KEY_COLUMNS = (
    "public_key",
    "key_digest",
    "certificate",
    "certificate_serial",
    "registered_key",
    "registered_as",
    "request_id",
)
"""The columns of a key that are texts; BoardRecord has them too."""


class KeyRecord(Struct, frozen=True):
    """A key of a board; live until `retired_at`. A board has one live key per security tag.

    `security_tag` is None for the key of an nRF93M1, which has no tags, and for one of an older
    ledger, until the modem lists it again.
    `public_key` and `certificate` are PEM; `key_digest` is what the modem lists for the private
    key; `certificate_serial` is in hex, as openssl prints it. `registered_key` is the SHA-256 of
    the key, as SPKI, that the service took, `registered_as` how and as which device, `request_id`
    its bulk request. `run` made it, None before there were runs.
    """

    id: int
    uuid: str
    security_tag: int | None
    public_key: str
    key_digest: str
    certificate: str
    certificate_serial: str
    registered_key: str
    registered_as: str
    request_id: str
    made_at: datetime
    run: str | None
    retired_at: datetime | None
    retired_because: str
    change: int


class Registration(Struct, frozen=True):
    """That a key (its `id`, and its board's UUID) works as a device.

    By which `method`; "none" where the board has the device id, and no service was given the key.
    `finished` False: the service was asked, and what it did is not known.
    """

    key: int
    uuid: str
    method: str
    finished: bool


class WorkOrder(Struct, frozen=True):
    """Who provisions what, in the words of the line; "" where nobody said."""

    operator: str = ""
    lot: str = ""
    product: str = ""


class RunRecord(Struct, frozen=True, kw_only=True):
    """One attempt of one slot. `uuid` is "" where the board was refused or lost before it told.

    `outcome` is done, unchanged, refused, failed, busy, swapped or interrupted; unfinished while
    `ended_at` is None. `step` is where it ended, `exit` its exit code, `reason_code` a slug that
    does not change from version to version ("" where there is no reason), `reason` the sentence.
    `label` is what was scanned. `consent` says what was allowed by name (a key that was replaced).
    `writes` counts the credential writes of this run. `timings` is a JSON object: the seconds of
    each step, in order; "" for a run that was cut off.
    """

    id: str
    uuid: str = ""
    imei: str = ""
    device_id: str = ""
    serial: str = ""
    slot: str = ""
    usb_place: str = ""
    port: str = ""
    label: str = ""
    station: str = ""
    operator: str = ""
    lot: str = ""
    product: str = ""
    cellagent: str = ""
    firmware: str = ""
    security_tag: int | None = None
    began_at: datetime
    ended_at: datetime | None = None
    outcome: str = UNFINISHED
    step: str = ""
    exit: int | None = None
    reason_code: str = ""
    reason: str = ""
    consent: str = ""
    writes: int = 0
    timings: str = ""
    change: int = 0

    @property
    def is_made(self) -> bool:
        """Whether the board was then as it should be."""
        return self.outcome in {"done", "unchanged"}

    @property
    def is_no_attempt(self) -> bool:
        """Whether it says nothing of the board: its port, or the board, was in use."""
        return self.outcome == "busy"

    @property
    def has_failed(self) -> bool:
        """Whether it was an attempt that ended, and not with a board as it should be."""
        return not (self.is_made or self.is_no_attempt or self.outcome == UNFINISHED)


class StepRecord(Struct, frozen=True):
    """One note about a step of a board: `state` is begun, done, refused (so not done) or failed.

    `run` is None for a note that is older than the runs.
    """

    id: int
    run: str | None
    uuid: str
    at: datetime
    station: str
    step: str
    state: str
    detail: str
    change: int


Record = BoardRecord | KeyRecord | RunRecord | StepRecord
