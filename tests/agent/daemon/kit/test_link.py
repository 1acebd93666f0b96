from __future__ import annotations

import contextlib

import pytest

from agent.config.profile import KitSettings
from agent.daemon.kit.link import KitLink
from agent.daemon.status import AgentEventKind, StatusRegistry
from at.driver.modem import Modem
from at.protocol.errors import AtError, CommandTimeout, LinkLost, ModemReset, NoAnswer


async def heard(error: AtError, *, ready: bool) -> list[AgentEventKind]:
    """Return what one connection tells that ends by `error`, before or after the first contact."""
    registry, told = StatusRegistry(), []
    registry.subscribe("left", lambda event: told.append(event.kind))

    async def serve(modem: Modem) -> None:
        if ready:
            link.ready(modem)
        raise error

    link = KitLink(KitSettings(port="virtual:"), registry.add_concern("link", "left"), serve)
    with contextlib.suppress(type(error)):
        await link.run()
    assert link.modem is None
    return told


@pytest.mark.parametrize("error", [LinkLost("away"), NoAnswer("silent"), CommandTimeout("late")])
async def test_a_link_that_was_there_and_ends_is_told_as_lost(error: AtError):
    assert await heard(error, ready=True) == [AgentEventKind.LINK_LOST]


async def test_a_link_that_never_came_about_is_not_lost():
    assert await heard(NoAnswer("nobody there"), ready=False) == []


async def test_a_restart_that_breaks_off_what_was_asked_is_not_a_lost_link_too():
    assert await heard(ModemReset("the modem restarted (Ready)"), ready=True) == []
