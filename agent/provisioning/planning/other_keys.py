"""The private keys that a modem lists in other tags than the goal's, against those of the ledger.

The service may have one of them, although this ledger does not say so: it is a copy of an older
one, or another one made the key. Most are of something else, such as a broker of the customer.
"""

from collections.abc import Collection, Iterator, Sequence

from agent.errors import RefusedByRule
from agent.provisioning.boards.board import BoardState, HeldCredential
from agent.provisioning.planning.consent import OtherKey
from agent.provisioning.planning.goal import Goal
from at.commands.credentials import CredentialType


class OtherKeyAtWork(RefusedByRule):
    """The service has a key of another tag for the board's device."""

    kind = "second-tag"


def tags_to_ask(board: BoardState, goal: Goal, known: Sequence[OtherKey]) -> tuple[int, ...]:
    """Return the tags for whose keys the service is asked before it is given another one.

    None where it is given none, or where with no proof nothing is asked. A key that the ledger
    knows to work as this device needs its consent in any case.
    """
    if not (goal.gives_key and goal.prove):
        return ()
    told = {key.digest.upper() for key in known if key.same_device}
    return tuple(key.tag for key in _listed(board, goal) if key.sha256.upper() not in told)


def unknown_tags(
    board: BoardState, goal: Goal, known: Sequence[OtherKey], retired: Collection[str]
) -> tuple[int, ...]:
    """Return the tags of the keys that the ledger has never had; `retired` are digests."""
    ours = {key.digest.upper() for key in known} | {*retired}
    return tuple(key.tag for key in _listed(board, goal) if key.sha256.upper() not in ours)


def _listed(board: BoardState, goal: Goal) -> Iterator[HeldCredential]:
    for held in board.credentials:
        if held.type == CredentialType.CLIENT_PRIVATE_KEY and held.tag != goal.security_tag:
            yield held
