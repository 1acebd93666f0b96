"""No two boards of a run have one identity, and all are heard before the first goes on."""

from __future__ import annotations

import asyncio

import pytest

from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.running.roll_call import DuplicateIdentity, Identity, RollCall

ONE, TWO, THREE = (BoardLocation("", "", slot, f"/dev/{slot}") for slot in ("A1", "A2", "A3"))


def identity(uuid: str, device_id: str = "") -> Identity:
    return Identity(uuid, f"imei-of-{uuid}", device_id or uuid)


async def answers(roll: RollCall, *boards: tuple[BoardLocation, Identity]) -> list[object]:
    return await asyncio.gather(*(roll.answer(*board) for board in boards), return_exceptions=True)


async def test_boards_that_differ_go_on() -> None:
    assert await answers(RollCall(2), (ONE, identity("a")), (TWO, identity("b"))) == [None, None]


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (identity("a"), identity("a"), "a clone of the other, or one board is on two ports"),
        (identity("a", "nrf-1"), identity("b", "nrf-1"), "device nrf-1"),
    ],
    ids=["uuid", "device-id"],
)
async def test_both_of_two_with_one_identity_are_refused_and_each_names_the_other(
    first: Identity, second: Identity, says: str
) -> None:
    roll = RollCall(3)
    ends = await answers(roll, (ONE, first), (TWO, second), (THREE, identity("c")))
    assert ends[2] is None
    for end, other in zip(ends, ("A2 /dev/A2", "A1 /dev/A1"), strict=False):
        assert isinstance(end, DuplicateIdentity)
        assert says in str(end)
        assert other in str(end)
        assert end.hint


async def test_nobody_goes_on_before_all_have_answered_or_are_absent() -> None:
    roll = RollCall(3)
    first = asyncio.create_task(roll.answer(ONE, identity("a")))
    second = asyncio.create_task(roll.answer(TWO, identity("a")))
    await asyncio.sleep(0)
    assert not first.done()
    roll.leave(THREE)  # it could not be opened
    ends = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(end) for end in ends] == [DuplicateIdentity] * 2
    roll.leave(ONE)
    roll.leave(TWO)


async def test_a_clone_that_has_ended_is_still_held_against_the_other() -> None:
    roll = RollCall(2)
    first = asyncio.create_task(roll.answer(ONE, identity("a")))
    await asyncio.sleep(0)
    with pytest.raises(DuplicateIdentity):
        await roll.answer(TWO, identity("a"))
    roll.leave(TWO)
    with pytest.raises(DuplicateIdentity):
        await first


async def test_a_board_that_never_answers_holds_up_the_others_no_longer_than_it_may() -> None:
    roll = RollCall(2, longest_s=0.0)
    await roll.answer(ONE, identity("a"))
    with pytest.raises(DuplicateIdentity):
        await roll.answer(TWO, identity("a"))


async def test_where_boards_come_and_go_one_is_held_against_those_that_are_there() -> None:
    roll = RollCall()
    await roll.answer(ONE, identity("a"))
    with pytest.raises(DuplicateIdentity):
        await roll.answer(TWO, identity("a"))
    roll.leave(TWO)
    await roll.answer(TWO, identity("b"))
    roll.leave(ONE)
    await roll.answer(THREE, identity("a"))
