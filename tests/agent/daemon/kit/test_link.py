from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from agent.config.profile import KitSettings
from agent.daemon.control.protocol import LeaseAnswer
from agent.daemon.kit.link import (
    TRANSITIONS,
    KitBusy,
    KitLink,
    KitLinkEvent,
    KitLinkState,
    hold,
    lease,
)
from agent.daemon.snapshot import FotaStatus, LinkStatus, LocationStatus, State
from agent.daemon.status import AgentEventKind, StatusRegistry
from at.driver.modem import Modem
from at.protocol.errors import AtError, CommandTimeout, LinkLost, ModemReset, NoAnswer


@pytest.mark.parametrize(
    "walk",
    [
        "away open opening close away",
        "away open opening leave closing close away",
        "away open opening ready up leave closing close away",
        "away open opening ready up lend lent give_back up leave closing close away",
        "away open opening ready up lend lent leave closing close away",
    ],
)
def test_a_link_goes_from_state_to_state(walk: str) -> None:
    states, events = walk.split()[::2], walk.split()[1::2]
    state = KitLinkState[states[0].upper()]
    for event, after in zip(events, states[1:], strict=True):
        state = TRANSITIONS[state, KitLinkEvent[event.upper()]]
        assert state is KitLinkState[after.upper()]


async def test_a_lease_ends_with_the_link() -> None:
    async def serve(modem: Modem) -> None:
        link.ready(modem)
        modems.append(modem)
        with link.lent(modem):
            assert link.is_leased
        assert not link.is_leased
        held.enter_context(link.lent(modem))
        raise LinkLost("away")

    held, modems = contextlib.ExitStack(), list[Modem]()
    concern = StatusRegistry().add_concern(LinkStatus, "left")
    link = KitLink(KitSettings(port="virtual:"), concern, serve)
    with pytest.raises(LinkLost):
        await link.run()
    assert not link.is_leased
    held.close()
    assert (link.modem, link.is_leased) == (None, False)
    with pytest.raises(LinkLost):
        held.enter_context(link.lent(modems[0]))


class Terminal:
    """Turns the modem off, key by key."""

    async def send(self, answer: LeaseAnswer) -> None:
        assert answer.kit == "left"

    async def write_through(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        for key in (b"AT+CF", b"UN=", b"4", b"\r"):
            await write(key)

    def data_received(self, data: bytes) -> None:
        """Show what the modem answers."""

    def connection_lost(self, reason: Exception | None) -> None:
        """End."""


async def test_a_mode_that_comes_in_pieces_from_the_holder_of_a_lease_is_noted() -> None:
    async def serve(modem: Modem) -> None:
        link.ready(modem)
        await lease(link, "left", Terminal(), "a terminal")
        raise LinkLost("away")

    modes: list[int] = []
    concern = StatusRegistry().add_concern(LinkStatus, "left")
    link = KitLink(KitSettings(port="virtual:"), concern, serve)
    link.on_mode_asked = modes.append
    with pytest.raises(LinkLost):
        await link.run()
    assert modes == [4]


async def test_a_lease_of_a_modem_that_is_lost_meanwhile_is_refused_and_not_answered_first():
    """Behind the answer come bytes of the modem: the error would be taken for some."""

    class Holder(Terminal):
        async def send(self, answer: LeaseAnswer) -> None:
            raise AssertionError(answer)

    async def serve(modem: Modem) -> None:
        link.ready(modem)
        await modem.close()
        with pytest.raises(LinkLost):
            await lease(link, "left", Holder(), "a terminal")
        raise LinkLost("as it was to end")

    concern = StatusRegistry().add_concern(LinkStatus, "left")
    link = KitLink(KitSettings(port="virtual:"), concern, serve)
    with pytest.raises(LinkLost, match="as it was to end"):
        await link.run()


async def test_a_lease_waits_for_a_link_that_is_opened_again_behind_a_hold() -> None:
    async def serve(modem: Modem) -> None:
        link.ready(modem)
        await leasing
        raise LinkLost("away")

    modes: list[int] = []
    concern = StatusRegistry().add_concern(LinkStatus, "left")
    link = KitLink(KitSettings(port="virtual:"), concern, serve)
    link.on_mode_asked = modes.append
    async with hold(link, "west"):
        leasing = asyncio.ensure_future(lease(link, "left", Terminal(), "a terminal"))
    with pytest.raises(LinkLost):
        await link.run()
    assert modes == [4]


async def events_of(error: AtError, *, ready: bool) -> list[AgentEventKind]:
    """Return what one connection tells that ends by `error`, before or after the first contact."""
    registry, published = StatusRegistry(), []
    registry.subscribe("left", lambda event: published.append(event.kind))

    async def serve(modem: Modem) -> None:
        if ready:
            link.ready(modem)
        raise error

    link = KitLink(KitSettings(port="virtual:"), registry.add_concern(LinkStatus, "left"), serve)
    with contextlib.suppress(type(error)):
        await link.run()
    assert link.modem is None
    return published


@pytest.mark.parametrize("error", [LinkLost("away"), NoAnswer("silent"), CommandTimeout("late")])
async def test_a_link_that_was_there_and_ends_is_told_as_lost(error: AtError):
    assert await events_of(error, ready=True) == [AgentEventKind.LINK_LOST]


async def test_who_waited_for_the_link_is_at_work_once_it_is_there_and_waits_for_the_rest():
    async def serve(modem: Modem) -> None:
        link.ready(modem)
        await waiting
        await link.wait_up(position)
        raise LinkLost("away")

    registry = StatusRegistry()
    link = KitLink(KitSettings(port="virtual:"), registry.add_concern(LinkStatus, "left"), serve)
    updates = registry.add_concern(FotaStatus, "left")
    position = registry.add_concern(LocationStatus, "left")
    position.set_waiting("the kit to be on the network")
    waiting = asyncio.create_task(link.wait_up(updates))
    await asyncio.sleep(0)
    assert updates.status.state is State.UNKNOWN
    with pytest.raises(LinkLost):
        await link.run()
    with updates.changing() as status:
        status.stage, status.done, status.total = "download", 2, 10
    assert (updates.status.state, updates.status.trouble) == (State.WORKING, None)
    assert position.status.trouble == "the kit to be on the network"


async def test_a_link_that_never_came_about_is_not_lost():
    assert await events_of(NoAnswer("nobody there"), ready=False) == []


async def test_a_restart_that_breaks_off_what_was_asked_is_not_a_lost_link_too():
    assert await events_of(ModemReset("the modem restarted (Ready)"), ready=True) == []


async def test_who_waits_too_long_for_exclusive_use_learns_what_the_kit_is_busy_with():
    async def serve(_modem: Modem) -> None:
        raise AssertionError

    concern = StatusRegistry().add_concern(LinkStatus, "left")
    link = KitLink(KitSettings(port="virtual:"), concern, serve)
    async with link.exclusive("an update"):
        with pytest.raises(KitBusy, match="an update"):
            async with link.exclusive("a lease", patience_s=0.0):
                pass
        assert concern.status.busy_with == "an update"
    async with link.exclusive("a lease", patience_s=60.0):
        assert concern.status.busy_with == "a lease"
    assert concern.status.busy_with is None


@pytest.mark.parametrize("imei", ["", "356561000000007"])
async def test_no_image_is_given_to_a_kit_that_has_just_gone(imei: str) -> None:
    concern = StatusRegistry().add_concern(LinkStatus, "kit")
    link = KitLink(KitSettings(port="/dev/ttyACM0"), concern, _never)
    with pytest.raises(LinkLost, match="/dev/ttyACM0: another kit is here, or none"):
        await link.require_kit(imei, "the installation of an update")


async def _never(_modem: Modem) -> None:
    pytest.fail("no modem was opened")
