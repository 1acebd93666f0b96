"""What a link knows of the modem's end of the line, as a table: see at.driver.link."""

from at.protocol.state_machine import IdentityEnum, Transitions


class LinkState(IdentityEnum):
    """Whether the next command can be sent, and what has to be done before."""

    IN_STEP = "the modem takes a command, and no older answer can follow"
    SUSPECT = "an older answer may follow, or the modem holds half a command: resynchronise"
    IN_DATA_MODE = "what is written is data; unless it ends as it should: leave it, resynchronise"
    RESTARTED = "the modem restarted: resynchronise, then restore the settings"
    RESTORING = "in step again, but not all settings are restored"
    LOST = "closed, or the port is gone"


class LinkEvent(IdentityEnum):
    """What changes that."""

    DOUBT = "a command was broken off, or there was a final result too many"
    RESTART = "the modem restarted, or its settings could not be restored"
    PROBED = "a unique probe came back"
    RESTORED = "the settings are as they were"
    DATA = "a command was accepted that takes raw bytes"
    DATA_END = "the modem took all of them"
    LOSS = "the transport ended, or reading failed"


IN_STEP, SUSPECT, IN_DATA_MODE, RESTARTED, RESTORING, LOST = LinkState
DOUBT, RESTART, PROBED, RESTORED, DATA, DATA_END, LOSS = LinkEvent

TRANSITIONS = Transitions(
    {
        (IN_STEP, DOUBT): SUSPECT,
        (IN_STEP, RESTART): RESTARTED,
        (IN_STEP, DATA): IN_DATA_MODE,
        (IN_STEP, LOSS): LOST,
        (SUSPECT, DOUBT): SUSPECT,
        (SUSPECT, RESTART): RESTARTED,
        (SUSPECT, PROBED): IN_STEP,
        (SUSPECT, DATA): IN_DATA_MODE,
        (SUSPECT, LOSS): LOST,
        (IN_DATA_MODE, DOUBT): IN_DATA_MODE,
        (IN_DATA_MODE, RESTART): RESTARTED,
        (IN_DATA_MODE, PROBED): IN_STEP,
        (IN_DATA_MODE, DATA_END): IN_STEP,
        (IN_DATA_MODE, LOSS): LOST,
        (RESTARTED, DOUBT): RESTARTED,
        (RESTARTED, RESTART): RESTARTED,
        (RESTARTED, PROBED): RESTORING,
        (RESTARTED, LOSS): LOST,
        (RESTORING, DOUBT): SUSPECT,
        (RESTORING, RESTART): RESTARTED,
        (RESTORING, RESTORED): IN_STEP,
        (RESTORING, LOSS): LOST,
    }
)
"""What a link knows of the modem's end of the line. After a loss nothing changes it."""
