"""How one board's run ended, in the shape that other programs rely on."""

from __future__ import annotations

from dataclasses import asdict, dataclass

# Outcome -> exit code, where the failure itself does not say.
_EXITS = {"done": 0, "unchanged": 0, "refused": 4, "swapped": 4, "busy": 3}


@dataclass(frozen=True, slots=True)
class BoardLocation:
    """Where a board is: its kit's serial number, its place on the hub, the operator's name."""

    serial: str
    usb_place: str
    slot: str
    port: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one board's run.

    `outcome` is done, unchanged, refused, failed, busy or swapped; `step` where it ended; `exit`
    what the process would return for it; `writes` the credential writes of this run.
    """

    location: BoardLocation
    device_id: str
    uuid: str
    outcome: str
    step: str
    exit: int
    reason: str
    hint: str
    writes: int

    @classmethod
    def of(
        cls,
        outcome: str,
        location: BoardLocation,
        device_id: str,
        uuid: str,
        step: str,
        reason: str,
        hint: str,
        writes: int,
        exit_code: int | None,
    ) -> Outcome:
        """Return an outcome with its exit code."""
        code = exit_code if exit_code is not None else _EXITS[outcome]
        return cls(location, device_id, uuid, outcome, step, code, reason, hint, writes)

    @property
    def ok(self) -> bool:
        """Tell whether the board is as it should be."""
        return self.exit == 0

    def to_json(self, seconds: float) -> dict[str, object]:
        """Return the object of `provision run --json`."""
        return {
            "board": asdict(self.location),
            "device_id": self.device_id,
            "uuid": self.uuid,
            "outcome": self.outcome,
            "step": self.step,
            "exit": self.exit,
            "reason": self.reason,
            "try": self.hint,
            "writes": self.writes,
            "seconds": round(seconds, 3),
        }
