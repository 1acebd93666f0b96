"""The private keys of a modem, against those of the ledger: which of them the service may have.

It may have one of another tag than the goal's, although this ledger does not say so: it is a copy
of an older one, or another one made the key. Most are of something else, such as a broker of the
customer. And a key that a run began to make and was cut off at may have been made since, by a run
with another ledger. The device identity key is in no list, and any firmware may have it sign.
"""

from collections.abc import Collection, Iterator, Sequence

from agent.errors import RefusedByRule
from agent.provisioning.boards.board import BoardState, HeldCredential
from agent.provisioning.planning.consent import Consent, HeldKey, OtherKey
from agent.provisioning.planning.goal import Goal
from at.commands.credentials import CredentialType

IDENTITY_KEY = None
"""In place of the tag of the device identity key, which has none."""
Keys = tuple[int | None, ...]
"""Keys by their tags, with IDENTITY_KEY."""


class OtherKeyAtWork(RefusedByRule):
    """The service has a key of another tag, or the identity key, for the board's device."""

    kind = "second-tag"


class BegunKeyAtWork(OtherKeyAtWork):
    """The service has the key that is in the place of one that a run began to make."""

    kind = "would-overwrite"


def keys_to_ask(board: BoardState, goal: Goal, known: Sequence[OtherKey], held: HeldKey) -> Keys:
    """Return the tags for whose keys the service is asked before they lose their place.

    The goal's own is one of them where `held` in it is what a run began: it is to be deleted. None
    where with no proof nothing is asked, and of others none where the service is given no key. A
    key that the ledger knows to work as this device needs its consent in any case. A module has one
    key, which is the goal's.
    """
    if not goal.prove or board.module_key:
        return ()
    own = (goal.security_tag,) if held is HeldKey.BEGUN else ()
    if not goal.gives_key:
        return own
    told = {key.digest.upper() for key in known if key.same_device}
    others = (key.tag for key in _listed(board, goal) if key.sha256.upper() not in told)
    return (*own, *others, IDENTITY_KEY)


def key_of(*tags: int | None) -> str:
    """Return what keys that are asked for are called."""
    return " or ".join(
        "the device identity key" if tag is IDENTITY_KEY else f"the key of tag {tag}"
        for tag in tags
    )


def question_of(goal: Goal, tags: Keys) -> str:
    """Return what the service is asked, and which options allow to end the life of a key."""
    ends = " or ".join(dict.fromkeys(ends_key(goal, tag) for tag in tags))
    return f"ask whether the service has {key_of(*tags)}: only {ends} ends that one"


def ends_key(goal: Goal, tag: int | None) -> str:
    """Return the option that allows to end the life of the key of a tag which is asked for."""
    if tag == goal.security_tag:
        return f"--replace {tag}:{CredentialType.CLIENT_PRIVATE_KEY:d}"
    return Consent.SECOND_TAG.value


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
