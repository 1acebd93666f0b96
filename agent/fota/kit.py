"""What of the kit an update needs beside its installer: its id, its firmware gate."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from agent.errors import ConfigError
from at.commands.identity import ReadDeviceUuid, ReadRevision
from at.commands.jwt import MakeJwt
from at.commands.serial_modem import ReadSerialModemUuid
from at.errors import CommandRejected, ParseError
from at.firmware import gate

if TYPE_CHECKING:
    from at.modem import Modem


async def gate_of(modem: Modem) -> str:
    """Return why the modem's firmware may make no device calls, "" where it may (clause D1.3)."""
    try:
        text = (await modem.send(ReadRevision())).revision
    except (CommandRejected, ParseError):
        text = ""
    verdict = gate(text)
    return "" if verdict.allowed else verdict.reason


async def device_id_of(modem: Modem | None) -> str:
    """Return the modem's UUID, the device's id where the profile names none. Raises ConfigError.

    Asked in three ways, since none is understood by every firmware.
    """
    if modem is None:
        raise ConfigError("kit.device_id is not set, and no port is there to ask the modem")
    for question in (ReadDeviceUuid(), ReadSerialModemUuid()):
        with suppress(CommandRejected, ParseError):
            return (await modem.send(question)).uuid
    with suppress(CommandRejected, ParseError):
        uuid = (await modem.send(MakeJwt())).device_uuid
        if uuid:
            return uuid
    raise ConfigError(
        "the modem does not tell its UUID", hint="name the device's id in kit.device_id"
    )
