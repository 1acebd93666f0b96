"""Which of a modem's keys signs its tokens: the one that was provisioned, else its identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from at.commands.jwt import MakeJwt
from at.errors import CommandRejected

if TYPE_CHECKING:
    from agent.auth.modem_jwt import AskModem
    from at.modem import Modem

_KEY_NOT_FOUND = 513


def ask_modem(modem: Modem, security_tag: int) -> AskModem:
    """Return what makes a kit's tokens, with the private key in `security_tag`.

    A kit that holds none there signs with its device identity key, which may be registered as
    well: provisioning is one way among others to make a key known.
    """

    async def ask(subject: str, life_s: int) -> str:
        try:
            return (await modem.send(MakeJwt(subject, "", life_s, security_tag))).token
        except CommandRejected as refusal:
            if refusal.code != _KEY_NOT_FOUND:
                raise
        return (await modem.send(MakeJwt(subject, "", life_s))).token

    return ask
