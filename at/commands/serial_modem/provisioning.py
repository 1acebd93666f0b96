"""The provisioning client of Serial Modem 2.0: #XNRFPROV.

The client asks its host to switch the radio off and on while it writes credentials. On boards other
than the nRF91M1 only some builds have it; the others answer ERROR.
"""

from enum import IntEnum
from typing import Annotated

from at.commands.serial_modem.application import SerialModemNotice
from at.protocol.command import OkCommand, at_command
from at.protocol.notices import register_readers
from at.protocol.record_fields import record, within
from at.protocol.values import Record


class ProvisioningEvent(IntEnum):
    """<status> of #XNRFPROV: what the client asks of its host, or how it ended."""

    DONE = 0
    """Provisioned, or nothing to do: the two are not told apart."""
    GO_OFFLINE = 1
    GO_ONLINE = 2
    FAILED = -1
    NOT_CLAIMED = -2
    WRONG_ROOT_CA = -3
    NO_TIME = -4
    TOO_MANY_COMMANDS = -5
    STOPPED = -6


class ProvisioningStatus(Record, frozen=True):
    """#XNRFPROV: one of `ProvisioningEvent`."""

    status: Annotated[int, within(min(ProvisioningEvent), max(ProvisioningEvent))]


class ProvisioningNotice(SerialModemNotice, frozen=True):
    """#XNRFPROV as a notice."""

    value: ProvisioningStatus


@at_command("AT#XNRFPROV")
class StartProvisioning(OkCommand, frozen=True):
    """AT#XNRFPROV: OK at once; what follows comes as ProvisioningNotice."""


register_readers(ProvisioningNotice, {"#XNRFPROV": record(ProvisioningStatus)})
