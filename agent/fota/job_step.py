"""How far the open job of a kit has come: the states of its journal. Pure."""

from enum import Enum

from at.protocol.state_machine import Transitions


class JobStep(Enum):
    """How far the open job has come; each step is in the journal before it begins."""

    IDLE = "idle"
    TAKEN = "taken"
    STARTED = "started"
    PROVEN = "proven"
    INSTALLING = "installing"
    INSTALLED = "installed"
    CONFIRMING = "confirming"

    @property
    def in_install(self) -> bool:
        """Whether the install has begun: the job is brought to its end, whoever withdraws it."""
        return self is not JobStep.IDLE and (self, JobEvent.WITHDRAW) not in TRANSITIONS


class JobEvent(Enum):
    """An event in the life of the open job."""

    TAKE = "an offered job is taken"
    START = "the cloud knows that it is in progress: the download begins"
    PROVE = "the image is here and has proven what it must"
    INSTALL = "the install begins, perhaps again"
    PLACE = "the image is on the kit"
    CONFIRM = "the new version runs and is made to stay, perhaps again"
    WITHDRAW = "the cloud has cancelled or replaced the job"
    END = "the job has its result"


TRANSITIONS = Transitions(
    {
        (JobStep.IDLE, JobEvent.TAKE): JobStep.TAKEN,
        (JobStep.TAKEN, JobEvent.START): JobStep.STARTED,
        (JobStep.TAKEN, JobEvent.WITHDRAW): JobStep.IDLE,
        (JobStep.TAKEN, JobEvent.END): JobStep.IDLE,
        (JobStep.STARTED, JobEvent.PROVE): JobStep.PROVEN,
        (JobStep.STARTED, JobEvent.WITHDRAW): JobStep.IDLE,
        (JobStep.STARTED, JobEvent.END): JobStep.IDLE,
        (JobStep.PROVEN, JobEvent.PROVE): JobStep.PROVEN,
        (JobStep.PROVEN, JobEvent.INSTALL): JobStep.INSTALLING,
        (JobStep.PROVEN, JobEvent.WITHDRAW): JobStep.IDLE,
        (JobStep.PROVEN, JobEvent.END): JobStep.IDLE,
        (JobStep.INSTALLING, JobEvent.INSTALL): JobStep.INSTALLING,
        (JobStep.INSTALLING, JobEvent.PLACE): JobStep.INSTALLED,
        (JobStep.INSTALLING, JobEvent.CONFIRM): JobStep.CONFIRMING,
        (JobStep.INSTALLING, JobEvent.END): JobStep.IDLE,
        (JobStep.INSTALLED, JobEvent.CONFIRM): JobStep.CONFIRMING,
        (JobStep.INSTALLED, JobEvent.END): JobStep.IDLE,
        (JobStep.CONFIRMING, JobEvent.CONFIRM): JobStep.CONFIRMING,
        (JobStep.CONFIRMING, JobEvent.END): JobStep.IDLE,
    }
)
"""The open job of a kit in its journal. A restart goes on from the step that is there: what was
downloaded is proven again, and a kit that already runs the image is not given it again."""
