"""A port is open, or another program has it: never both."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from agent.daemon.kit import held_port
from agent.daemon.kit.held_port import TRANSITIONS, HeldPort, PortEvent, PortState
from agent.daemon.snapshot import ConsoleStatus, LinkStatus
from agent.daemon.status import StatusRegistry
from at.protocol.state_machine import IllegalTransition


@pytest.mark.parametrize(
    "walk",
    [
        "closed open open close closed",
        "closed ask released give_back closed",
        "closed open open ask asked stop closing close released give_back closed",
        "closed open open ask asked close released give_back closed",
        "closed open open ask asked give_back open close closed",
        "closed open open ask asked stop closing give_back reopening close closed",
        "closed open open ask asked stop closing give_back reopening ask closing close released",
    ],
)
def test_a_port_goes_from_state_to_state(walk: str):
    states, events = walk.split()[::2], walk.split()[1::2]
    state = PortState[states[0].upper()]
    for event, after in zip(events, states[1:], strict=True):
        state = TRANSITIONS[state, PortEvent[event.upper()]]
        assert state is PortState[after.upper()]


async def test_two_cannot_have_a_port_released_at_once():
    port = HeldPort(StatusRegistry().add_concern(LinkStatus, "left"), "/dev/ttyACM0")
    async with port.released("west"):
        with pytest.raises(IllegalTransition):
            await port.released("nrfutil").__aenter__()


async def kept_open(port: HeldPort, steps: list[str]) -> None:
    async with port.opened():
        steps.append("opened")
        await port.release_requested()
    steps.append("closed")


async def flashed(port: HeldPort, steps: list[str]) -> None:
    async with port.released("west"):
        steps.append("released")


async def test_a_port_is_released_once_it_is_closed_and_the_status_counts_it(
    monkeypatch: pytest.MonkeyPatch,
):
    clock = iter([0.0, 1.5, 10.0, 12.0])
    monkeypatch.setattr(held_port, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    concern = StatusRegistry().add_concern(LinkStatus, "left")
    port, steps = HeldPort(concern, "/dev/ttyACM0"), list[str]()
    keeping = asyncio.ensure_future(kept_open(port, steps))
    await asyncio.sleep(0)
    async with port.released("west"):
        steps.append("released")
        assert (port.released_to, concern.status.let_go_for) == ("west", "west")
    await keeping
    assert steps == ["opened", "closed", "released"]
    assert (port.released_to, concern.status.let_go) == ("", 1)
    assert concern.status.let_go_for is None
    async with port.released("west"):
        pass
    assert (concern.status.let_go, concern.status.let_go_s) == (2, 3.5)


async def test_a_port_is_not_released_in_the_middle_of_a_core_dump():
    port, steps = HeldPort(StatusRegistry().add_concern(LinkStatus, "left"), "/dev/ttyACM0"), []
    keeping = asyncio.ensure_future(kept_open(port, steps))
    await asyncio.sleep(0)
    port.set_dump_bytes(16)
    flashing = asyncio.ensure_future(flashed(port, steps))
    for _ in range(5):
        await asyncio.sleep(0)
    assert steps == ["opened"]
    port.set_dump_bytes(0)
    await flashing
    await keeping
    assert steps == ["opened", "closed", "released"]


async def test_a_dump_that_was_broken_off_with_the_port_holds_up_nobody():
    port, steps = HeldPort(StatusRegistry().add_concern(LinkStatus, "left"), "/dev/ttyACM0"), []
    async with port.opened():
        port.set_dump_bytes(16)
    keeping = asyncio.ensure_future(kept_open(port, steps))
    flashing = asyncio.ensure_future(port.released("west").__aenter__())
    for _ in range(10):
        await asyncio.sleep(0)
    assert steps == ["opened", "closed"]
    await keeping
    await flashing


@pytest.mark.parametrize(
    ("name", "port", "may"),
    [
        (None, "/dev/ttyACM1", True),
        (None, "", False),
        ("", "/dev/ttyACM1", False),
        ("/dev/ttyACM1", "/dev/ttyACM1", True),
        ("/dev/ttyACM1", "/dev/ttyACM2", False),
    ],
)
def test_a_port_that_is_not_known_yet_may_be_any(name: str | None, port: str, may: bool):
    held = HeldPort(StatusRegistry().add_concern(ConsoleStatus, "left"), name)
    assert held.may_be(port) is may


async def test_who_gives_up_during_a_core_dump_leaves_the_port_open():
    port, steps = HeldPort(StatusRegistry().add_concern(LinkStatus, "left"), "/dev/ttyACM0"), []
    keeping = asyncio.ensure_future(kept_open(port, steps))
    await asyncio.sleep(0)
    port.set_dump_bytes(16)
    flashing = asyncio.ensure_future(flashed(port, steps))
    for _ in range(5):
        await asyncio.sleep(0)
    flashing.cancel()
    await asyncio.gather(flashing, return_exceptions=True)
    port.set_dump_bytes(0)
    for _ in range(5):
        await asyncio.sleep(0)
    assert steps == ["opened"], "nobody wants it any more"
    async with port.released("west"):
        assert steps == ["opened", "closed"]
    await keeping
