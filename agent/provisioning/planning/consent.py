"""The consents that a board's key needs: by what its modem holds, and what the ledger knows.

The service keeps one key for each device. So a new key, or another one, ends the life of a key that
may be at work in the field, and an operator must have said that this is meant. A consent is a
permission: a board that is right is left alone with it as well.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from msgspec import Struct

from agent.provisioning.planning.goal import Goal
from at.commands.credentials import CredentialType


class HeldKey(Enum):
    """What the modem holds in the goal's security tag, where the private key goes."""

    NOTHING = "nothing"
    OURS = "the ledger's key of this tag"
    ENDED = "that key, whose certificate has ended"
    ANOTHER = "another key"
    OWN = "a module's one key, which is not the ledger's"
    BEGUN = "what a run began and did not end"
    """A run of ours that was cut off noted that it makes a key here: whatever is here is that."""


class KnownKeys(Enum):
    """The live keys of the board in the ledger, by their security tag."""

    NONE = "no key"
    THIS_TAG = "a key in this tag"
    OTHER_TAG = "a key in another tag"
    BOTH = "keys in both"


class Consent(Enum):
    """What an operator allows by an option."""

    REPLACE = "--replace"
    """A key that the ledger does not know is deleted."""
    REKEY = "--rekey"
    """Another key takes the place of the ledger's key of this tag."""
    SECOND_TAG = "--second-tag"
    """The key of this tag takes the place of that of another tag."""
    TAKE_OVER = "--take-over"
    """The device id of another board becomes this board's."""


_NONE: frozenset[Consent] = frozenset()
_REKEY = frozenset({Consent.REKEY})
_REPLACE = frozenset({Consent.REPLACE})
_SECOND_TAG = frozenset({Consent.SECOND_TAG})

KEY_CONSENTS: Mapping[tuple[HeldKey, KnownKeys], frozenset[Consent]] = {
    (HeldKey.NOTHING, KnownKeys.NONE): _NONE,
    (HeldKey.NOTHING, KnownKeys.THIS_TAG): _REKEY,
    (HeldKey.NOTHING, KnownKeys.OTHER_TAG): _SECOND_TAG,
    (HeldKey.NOTHING, KnownKeys.BOTH): _REKEY | _SECOND_TAG,
    # A key of this tag that the ledger has, and the modem holds, is left alone.
    (HeldKey.OURS, KnownKeys.THIS_TAG): _NONE,
    (HeldKey.OURS, KnownKeys.BOTH): _NONE,
    (HeldKey.ENDED, KnownKeys.THIS_TAG): _REKEY,
    (HeldKey.ENDED, KnownKeys.BOTH): _REKEY | _SECOND_TAG,
    (HeldKey.ANOTHER, KnownKeys.NONE): _REPLACE,
    (HeldKey.ANOTHER, KnownKeys.THIS_TAG): _REPLACE | _REKEY,
    (HeldKey.ANOTHER, KnownKeys.OTHER_TAG): _REPLACE | _SECOND_TAG,
    (HeldKey.ANOTHER, KnownKeys.BOTH): _REPLACE | _REKEY | _SECOND_TAG,
    (HeldKey.OWN, KnownKeys.NONE): _NONE,
    (HeldKey.OWN, KnownKeys.THIS_TAG): _REKEY,
    # The run that was cut off had the consent to make a key here.
    (HeldKey.BEGUN, KnownKeys.NONE): _NONE,
    (HeldKey.BEGUN, KnownKeys.THIS_TAG): _NONE,
    (HeldKey.BEGUN, KnownKeys.OTHER_TAG): _SECOND_TAG,
    (HeldKey.BEGUN, KnownKeys.BOTH): _SECOND_TAG,
}
"""The consents for the key itself. A key that is still to be registered needs SECOND_TAG as well
where the board has one in another tag, or may have: one that the ledger does not know, while no
proof is asked for. A device id of another board always needs TAKE_OVER."""


class OtherKey(Struct, frozen=True):
    """A live key of the board in another tag; `made` says when and where, "" if not known.

    `same_device` tells whether it works as the device that the board is to be, `digest` what the
    modem lists for it, and `held` whether it does.
    """

    security_tag: int
    made: str = ""
    same_device: bool = True
    digest: str = ""
    held: bool = True

    def __str__(self) -> str:
        gone = "" if self.held else ", which the modem does not hold any more: erased, or a clone"
        return f"tag {self.security_tag}{_made(self.made)}{gone}"


class Refusal(Struct, frozen=True):
    """Why a board is refused, what to try, and the slug of it."""

    reason: str
    hint: str
    code: str


class KeyQuestion(Struct, frozen=True):
    """What is to be decided about a board's key, in words that the operator understands.

    `made` says when and where the ledger's key of this tag was made, `ended` when its certificate
    ended, "" if it did not. `other_keys` are the live keys of other tags, `retired` says why the
    key that the modem holds is none any more, "" if it never was the ledger's. `id_holders` are
    sentences about the boards that have the device id. `other_imei` is that of the board that the
    ledger knows by this UUID, "" where this one has it. `unknown_tags` are the other tags with a
    private key that the ledger does not know.
    """

    goal: Goal
    device_id: str
    held: HeldKey
    known: KnownKeys
    made: str = ""
    ended: str = ""
    other_keys: Sequence[OtherKey] = ()
    retired: str = ""
    id_holders: Sequence[str] = ()
    other_imei: str = ""
    unknown_tags: Sequence[int] = ()

    def needed(self, *, registers: bool) -> frozenset[Consent]:
        """Return the consents that the key needs; `registers` if the service is to get it."""
        needed = KEY_CONSENTS[self.held, self.known]
        if registers and (self._unasked or any(one.same_device for one in self.other_keys)):
            needed |= _SECOND_TAG
        if self.id_holders:
            needed |= {Consent.TAKE_OVER}
        return needed

    def given(self) -> frozenset[Consent]:
        """Return the consents that the operator has given for this key."""
        goal = self.goal
        replaces = self._key_place in goal.replace
        consents = {
            Consent.REPLACE: replaces,
            Consent.REKEY: goal.rekey,
            Consent.SECOND_TAG: goal.second_tag,
            Consent.TAKE_OVER: self.device_id in goal.take_over,
        }
        return frozenset(consent for consent, told in consents.items() if told)

    def option(self, consent: Consent) -> str:
        """Return the option that gives a consent, to be pasted."""
        if consent is Consent.REPLACE:
            tag, kind = self._key_place
            return f"--replace {tag}:{kind:d}"
        if consent is Consent.TAKE_OVER:
            return f"--take-over {shlex.quote(self.device_id)}"
        return str(consent.value)

    def reason(self, consent: Consent) -> str:
        """Return why a consent is needed, and what follows from it."""
        tag = self.goal.security_tag
        if consent is Consent.REPLACE:
            if self.retired:
                return f"tag {tag} holds a key of this board that was retired: {self.retired}"
            return f"tag {tag} holds a private key that this ledger does not know"
        if consent is Consent.REKEY and self.held is HeldKey.OWN:
            return (
                f"the ledger has another key of this nRF93M1{_made(self.made)}, which makes one "
                "and keeps it: another module says that it is this one. The service keeps one key "
                "for each device: a module that still holds the first one is locked out"
            )
        if consent is Consent.REKEY and self.held is HeldKey.ENDED:
            return (
                f"the certificate of the board's key{_made(self.made)} ended on {self.ended}: "
                "another key, with a certificate of its own, takes its place"
            )
        if consent is Consent.REKEY:
            found = "holds none" if self.held is HeldKey.NOTHING else "holds another"
            cause = "the modem was erased, or it is a clone of that board"
            if self.other_imei:
                cause = f"that board has the IMEI {self.other_imei}, so this is a clone of it"
            return (
                f"the ledger has a key of this board{_made(self.made)}, and tag {tag} {found}: "
                f"{cause}. The service keeps one key for each device: a board that still holds "
                "the first one is locked out by a new one"
            )
        if consent is Consent.SECOND_TAG:
            return "; ".join(self._second_tag())
        return (
            f"device id {self.device_id} is that of {' and '.join(self.id_holders)}. The service "
            "keeps one key for each device: the other board is locked out by this one"
        )

    def _second_tag(self) -> Iterator[str]:
        """Yield why a key of this tag ends the life of one in another, or may."""
        tag, keys = self.goal.security_tag, ", ".join(map(str, self.other_keys))
        if any(one.same_device for one in self.other_keys):
            yield (
                f"the key of this board is in {keys}. The service keeps one key for each device: "
                f"with a key of tag {tag} the tokens of the first one are refused (401)"
            )
        elif self.other_keys:
            yield (
                f"the board has a key in {keys} already, which is not that of device "
                f"{self.device_id}: it stays what it is, beside a key of tag {tag}"
            )
        if self._unasked:
            tags = " or ".join(map(str, self.unknown_tags))
            yield (
                f"this ledger does not know the private key of tag {tags}, and with no proof the "
                "service is not asked whether it has that one. It keeps one key for each device: "
                f"with a key of tag {tag} the tokens of that one are refused (401)"
            )

    @property
    def _unasked(self) -> bool:
        """Whether a key that the ledger does not know may be the service's, which is not asked."""
        return bool(self.unknown_tags) and self.goal.gives_key and not self.goal.prove

    def record(self, needed: frozenset[Consent]) -> str:
        """Return what was allowed and why, for the record; "" where nothing had to be."""
        return "; ".join(
            f"{self.option(consent)}: {self.reason(consent)}"
            for consent in Consent
            if consent in needed
        )

    def refusal(
        self,
        needed: frozenset[Consent],
        blockers: Mapping[tuple[int, int], str],
        told: Sequence[tuple[int, int]],
        *,
        rsa: bool,
    ) -> Refusal:
        """Return the refusal, which names all that is in the way, and how to allow that.

        `blockers` are the credentials beside the key that may not be deleted, by tag and type, each
        with what it is; `told` those that may. `rsa`: the kit has an RSA certificate.
        """
        tag, missing = self.goal.security_tag, needed - self.given()
        reasons = [self.reason(consent) for consent in Consent if consent in missing]
        if blockers:
            reasons.append(f"tag {tag} holds {' and '.join(blockers.values())}")
        if blockers or Consent.REPLACE in missing:
            reasons.append("nothing is overwritten unasked")
        # With what was allowed already: the line is copied whole.
        options = [self.option(consent) for consent in Consent if consent in needed]
        beside = [place for place in [*told, *blockers] if place != self._key_place]
        allow = " ".join([*options, *(f"--replace {place}:{kind:d}" for place, kind in beside)])
        reason, hint = "; ".join(reasons), f"`{allow}` allows it"
        held = [one.security_tag for one in self.other_keys if one.held]
        if Consent.SECOND_TAG in missing and held:
            hint += f"; `--security-tag {held[0]}` goes on with the key that the board has"
        if Consent.SECOND_TAG in missing and self._unasked:
            hint += "; leave out `--no-proof` to have the service asked"
        if Consent.REKEY in missing and self.other_imei:
            hint = f"keep this board apart; {hint}, and the other one is locked out"
        if rsa:
            reason = f"RSA-provisioned: {reason}"
            hint = (
                "the device cloud takes ES256 alone, so this kit must be provisioned anew: "
                f"`{allow}` deletes that and makes an ES256 key"
            )
        return Refusal(reason, hint, _code(missing))

    @property
    def _key_place(self) -> tuple[int, int]:
        return self.goal.security_tag, CredentialType.CLIENT_PRIVATE_KEY


def _code(missing: frozenset[Consent]) -> str:
    """Return the slug of a refusal: of the missing consent that reaches furthest."""
    codes = {
        Consent.TAKE_OVER: "device-id-taken",
        Consent.SECOND_TAG: "second-tag",
        Consent.REKEY: "rekey",
    }
    return next((code for consent, code in codes.items() if consent in missing), "would-overwrite")


def _made(when: str) -> str:
    return f" (made {when})" if when else ""
