"""What a kit runs, as it says over AT: +CGMR for the modem, #XSMVER for Serial Modem itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.fota.installers.base import RunningVersion
from agent.fota.jobs import MODEM_TYPES, FirmwareType
from at.commands.identity import ReadRevision
from at.commands.serial_modem import ReadSerialModemVersion
from at.protocol.errors import CommandRejected, CommandTimeout, ModemReset, NoAnswer, ParseError

if TYPE_CHECKING:
    from at.driver.modem import Modem


async def running_by_at(modem: Modem, kind: FirmwareType) -> RunningVersion | None:
    """Return what of this type runs, None while the kit does not answer or does not tell.

    A lost port passes as LinkLost. An application that was built upon Serial Modem may name a
    version of its own behind the two of Serial Modem: then that one counts.
    """
    try:
        if kind in MODEM_TYPES:
            return RunningVersion((await modem.send(ReadRevision())).revision)
        if kind is FirmwareType.APP:
            told = await modem.send(ReadSerialModemVersion())
            return RunningVersion(told.customer or told.git_describe)
    except (CommandRejected, CommandTimeout, ModemReset, NoAnswer, ParseError):
        return None
    return None
