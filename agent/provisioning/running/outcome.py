"""How a board's run ended: its outcome, the times of its steps, and what an error makes of it."""

import json
import logging
import time

from msgspec import Struct
from msgspec.structs import asdict

from agent.config.identity_keys import UntrustedSignature
from agent.errors import AgentError
from agent.provisioning.boards.board import BoardLocation, BoardSwapped
from agent.provisioning.ledger import BoardBusy, LabelTaken
from agent.provisioning.planning.other_keys import OtherKeyAtWork
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.roll_call import DuplicateIdentity
from at.protocol.errors import AtError, ModemReset, PortBusy

_OUTCOMES = {
    BoardBusy: "busy",
    PortBusy: "busy",
    BoardSwapped: "swapped",
    UntrustedSignature: "refused",
    DuplicateIdentity: "refused",
    LabelTaken: "refused",
    OtherKeyAtWork: "refused",
}
_AGAIN = "run the same command again: what is done is left alone"
_log = logging.getLogger(__name__)


class Outcome(Struct, frozen=True, kw_only=True):
    """The end of one board's run.

    `outcome` is done, unchanged, refused, failed, busy or swapped; `step` where it ended; `exit`
    what the process would return for it; `reason_code` the slug of its reason; `writes` the
    credential writes of this run.
    """

    location: BoardLocation
    device_id: str = ""
    uuid: str = ""
    outcome: str
    step: str
    exit: int = 0
    reason_code: str = ""
    reason: str = ""
    hint: str = ""
    writes: int = 0

    @property
    def ok(self) -> bool:
        """Whether the board is as it should be."""
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


class StepTimes:
    """The seconds that each step of a run took, in the order in which they were first entered."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._step = ""
        self._entered = 0.0

    def enter(self, step: ProvisioningStep | None) -> None:
        """End the step before, and begin this one; None begins none."""
        now = time.monotonic()
        if self._step:
            self._seconds[self._step] = self._seconds.get(self._step, 0.0) + now - self._entered
        self._step, self._entered = (step.value if step else ""), now

    def to_json(self) -> str:
        """End the step that was entered last; return an object: seconds by step."""
        self.enter(None)
        return json.dumps({step: round(seconds, 3) for step, seconds in self._seconds.items()})


class Defect(AgentError):
    """A defect of this program: an exception that nothing expected."""

    kind = "defect"


def outcome_of(error: AgentError | AtError) -> str:
    """Return the outcome of a run that ended with `error`: busy, swapped, refused or failed."""
    return next((name for kind, name in _OUTCOMES.items() if isinstance(error, kind)), "failed")


def hint_of(error: AgentError | AtError) -> str:
    """Return what to do about an error that ended a run; a rerun is always right."""
    # A modem that restarted is to be read back, as the next run does.
    return _AGAIN if isinstance(error, ModemReset) else error.hint or _AGAIN


def unexpected_failure(defect: Exception, location: BoardLocation) -> AgentError:
    """Return the message for an unexpected exception; the log has its traceback."""
    _log.info("%s", location.port, exc_info=defect)
    return Defect(
        f"a defect of this program ({type(defect).__name__})",
        hint="run again with -v and report what it prints",
    )
