"""From the common options to a client of the services, closed when the command ends."""

from __future__ import annotations

import functools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from agent.cli.frame import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from agent.auth.modem_jwt import AskModem
    from agent.cloud import DeviceCloud
    from agent.config import Configuration
    from agent.http import HttpClient

P = ParamSpec("P")


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


def on_cloud(work: Callable[Concatenate[DeviceCloud, P], Awaitable[None]]) -> Callable[P, None]:
    """Make a command of `work`, which is given the device cloud before its own arguments."""

    @functools.wraps(work)
    def command(*arguments: P.args, **options: P.kwargs) -> None:
        async def connected() -> None:
            from agent.cloud import DeviceCloud

            async with services() as (_, client):
                await work(DeviceCloud(client), *arguments, **options)

        run(connected())

    return command
