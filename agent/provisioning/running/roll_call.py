"""The boards of one run, by what they say they are: no two may have one identity."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from agent.errors import RefusedByRule
from agent.provisioning.boards.board import BoardLocation

_LONGEST_S = 30.0
"""A board that answers later than this finds the others at work."""


class DuplicateIdentity(RefusedByRule):
    """Two boards of one run have the same UUID, or are to get the same device id."""

    kind = "duplicate-identity"


class Identity(Struct, frozen=True):
    """What a board says it is, and the device id that follows from it."""

    uuid: str
    imei: str
    device_id: str


class RollCall:
    """Hears the identity of each board before the first of them is written to.

    `awaited` boards answer, or are absent, before anyone goes on. With 0 nobody is waited for:
    boards come and go, and one is held against those that are there.
    """

    def __init__(self, awaited: int = 0, longest_s: float = _LONGEST_S) -> None:
        self._awaited = awaited
        self._longest_s = longest_s
        self._heard: set[BoardLocation] = set()
        self._present: dict[BoardLocation, Identity] = {}
        self._complete = asyncio.Event()
        if not awaited:
            self._complete.set()

    async def answer(self, location: BoardLocation, identity: Identity) -> None:
        """Give a board's identity and wait for the others. Raises DuplicateIdentity."""
        self._present[location] = identity
        self._hear(location)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._longest_s):
                await self._complete.wait()
        others = [(other, known) for other, known in self._present.items() if other != location]
        require_single(identity, others)

    def leave(self, location: BoardLocation) -> None:
        """Tell that a board has ended, or never told what it is."""
        self._hear(location)
        # A board that has answered stays known to those that were awaited with it.
        if not self._awaited:
            self._present.pop(location, None)

    def _hear(self, location: BoardLocation) -> None:
        self._heard.add(location)
        if len(self._heard) >= self._awaited:
            self._complete.set()


def require_single(identity: Identity, others: Sequence[tuple[BoardLocation, Identity]]) -> None:
    """Check that no other board has this identity. Raises DuplicateIdentity."""
    clones = [(at, one) for at, one in others if one.uuid == identity.uuid]
    if clones:
        named = " and ".join(f"that at {_name(at)} (IMEI {one.imei})" for at, one in clones)
        raise DuplicateIdentity(
            f"this board (IMEI {identity.imei}) has the UUID {identity.uuid}, and so has {named}: "
            "one is a clone of the other, or one board is on two ports. Nothing was "
            "written to this one",
            hint="unplug all but one of them and run again; the board that the ledger knows is "
            "checked, a clone is refused",
        )
    doubles = [(at, one) for at, one in others if one.device_id == identity.device_id]
    if doubles:
        named = " and ".join(f"that at {_name(at)} (UUID {one.uuid})" for at, one in doubles)
        raise DuplicateIdentity(
            f"this board (UUID {identity.uuid}) would be device {identity.device_id}, and so would "
            f"{named}: one of them has an IMEI that is not its own. Nothing was written "
            "to this one",
            hint="leave out the board whose IMEI is wrong, or name the devices by their UUIDs: "
            "without --id-prefix",
        )


def _name(location: BoardLocation) -> str:
    return " ".join(filter(None, [location.slot, location.port]))
