"""From the common options to a client of the services, closed when the command ends."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent.auth.modem_jwt import AskModem
    from agent.config import Configuration
    from agent.http import HttpClient


@asynccontextmanager
async def services(
    *, ask_modem: AskModem | None = None
) -> AsyncIterator[tuple[Configuration, HttpClient]]:
    """Give the configuration that the options choose and a client that holds its credentials.

    Raises ConfigError, and what a secret that cannot be used raises.
    """
    from agent.cli.configured import configured
    from agent.connect import connect

    configuration = configured()
    async with connect(configuration, ask_modem=ask_modem) as client:
        yield configuration, client
