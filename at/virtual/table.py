"""Every command that the virtual modem knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from at.virtual.families import clock, credentials, identity, keys, power
from at.virtual.kit import Answer, Kit
from at.virtual.request import Request

Handler = Callable[[Kit, Request], Answer]

COMMANDS: Mapping[str, Handler] = {
    **identity.COMMANDS,
    **power.COMMANDS,
    **clock.COMMANDS,
    **credentials.COMMANDS,
    **keys.COMMANDS,
}
