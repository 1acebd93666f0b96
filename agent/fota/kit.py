"""What of the kit an update needs beside its installer: its id, its token, its firmware gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.auth.jwt import read_claims
from agent.errors import ConfigError
from at.commands.identity import ReadRevision
from at.errors import CommandRejected, ParseError
from at.firmware import gate

if TYPE_CHECKING:
    from agent.auth.modem_jwt import AskModem
    from at.modem import Modem


async def gate_of(modem: Modem) -> str:
    """Return why the modem's firmware may make no device calls, "" where it may (clause D1.3)."""
    try:
        text = (await modem.send(ReadRevision())).revision
    except (CommandRejected, ParseError):
        text = ""
    verdict = gate(text)
    return "" if verdict.allowed else verdict.reason


def ask_modem(modem: Modem) -> AskModem:
    """Return what makes the kit's tokens."""

    async def ask(subject: str, life_s: int) -> str:
        return await _token(modem, f'AT%JWT=0,{life_s},"{subject}"')

    return ask


async def device_id_of(modem: Modem | None) -> str:
    """Return the modem's UUID, the device's id where the profile names none. Raises ConfigError."""
    if modem is None:
        raise ConfigError("kit.device_id is not set, and no port is there to ask the modem")
    claims = read_claims(await _token(modem, "AT%JWT"))
    if not claims.uuid:
        raise ConfigError(
            "the modem's token names no UUID", hint="name the device's id in kit.device_id"
        )
    return claims.uuid


async def _token(modem: Modem, line: str) -> str:
    from at.modem import rejection

    answer = await modem.execute(line, timeout_s=15.0)
    if not answer.ok:
        raise rejection(line.partition("=")[0], answer)
    for text in answer.lines:
        if text.startswith("%JWT:"):
            return text.partition(":")[2].strip().strip('"')
    raise ParseError("the modem's answer to AT%JWT holds no token")
