"""Which key needs which consent: every cell of the table, as the plan carries it out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, product
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.provisioning.boards.board import BoardState, HeldCredential
from agent.provisioning.planning.consent import KEY_CONSENTS, Consent, HeldKey, KnownKeys, OtherKey
from agent.provisioning.planning.goal import Goal, RegistrationMethod
from agent.provisioning.planning.plan import (
    BoardHistory,
    ProvisioningPlan,
    ProvisioningStep,
    make_plan,
)
from at.commands.credentials import CredentialType

ROOT = Path(__file__).resolve().parents[4]
KEY = CredentialType.CLIENT_PRIVATE_KEY
TAG, FIRST_TAG = 101, 16842753
DEVICE = "nrf-350457791234567"
EMPTY = BoardState("350457791234567", "uuid", "nRF9161", "mfw_nrf91x1_2.0.4", "", 0, False, ())
GOAL = Goal(TAG, id_prefix="nrf-")
OURS, STRANGE, FIRST = "AB" * 32, "CD" * 32, "EF" * 32
ELSEWHERE = (OtherKey(FIRST_TAG, "2026-03-14 at bench-1", digest=FIRST),)
STOLEN = ("board other-uuid (IMEI 350457791234567), made 2026-03-14 at bench-1",)
CELLS = sorted(KEY_CONSENTS, key=str)


def board_of(held: HeldKey) -> BoardState:
    if held is HeldKey.OWN:
        return replace(EMPTY, module_key="its own")
    digest = {HeldKey.NOTHING: "", HeldKey.OURS: OURS, HeldKey.ENDED: OURS}.get(held, STRANGE)
    credentials = (HeldCredential(FIRST_TAG, KEY, FIRST),)
    credentials += (HeldCredential(TAG, KEY, digest),) if digest else ()
    return replace(EMPTY, credentials=credentials)


def history_of(held: HeldKey, known: KnownKeys, *, registered: bool = True) -> BoardHistory:
    here = known in {KnownKeys.THIS_TAG, KnownKeys.BOTH}
    return BoardHistory(
        public_key="public" if here else "",
        key_digest=OURS if here else "",
        registered=registered and here,
        certificate_ended="2026-11-01" if held is HeldKey.ENDED else "",
        key_begun=held is HeldKey.BEGUN,
        made="2026-03-13 at bench-2" if here else "",
        other_keys=ELSEWHERE if known in {KnownKeys.OTHER_TAG, KnownKeys.BOTH} else (),
    )


def told(goal: Goal, consents: frozenset[Consent]) -> Goal:
    return replace(
        goal,
        replace=frozenset({(TAG, int(KEY))}) if Consent.REPLACE in consents else frozenset(),
        rekey=Consent.REKEY in consents,
        second_tag=Consent.SECOND_TAG in consents,
        take_over=frozenset({DEVICE}) if Consent.TAKE_OVER in consents else frozenset(),
    )


def all_consents() -> Iterator[frozenset[Consent]]:
    every = list(Consent)
    sizes = range(len(every) + 1)
    return map(frozenset, chain.from_iterable(combinations(every, size) for size in sizes))


def pasted(plan: ProvisioningPlan) -> frozenset[Consent]:
    """Return the consents that the hint of a refusal gives, each in a form that can be pasted."""
    options = {
        f"--replace {TAG}:{KEY:d}": Consent.REPLACE,
        "--rekey": Consent.REKEY,
        "--second-tag": Consent.SECOND_TAG,
        f"--take-over {DEVICE}": Consent.TAKE_OVER,
    }
    return frozenset(consent for option, consent in options.items() if option in plan.hint)


def test_the_how_to_shows_the_table_as_it_is() -> None:
    text = (ROOT / "docs" / "howto" / "provisioning.md").read_text()
    lines = text.partition("| the modem holds |")[2].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[: len(HeldKey)]]
    options = {Consent.REPLACE: "--replace TAG:2"}
    for held, row in zip(HeldKey, rows, strict=True):
        assert row[0] == held.value
        for known, shown in zip(KnownKeys, row[1:], strict=True):
            needed = KEY_CONSENTS.get((held, known))
            words = [options.get(one, one.value) for one in Consent if one in (needed or ())]
            assert shown.strip("`") == ("" if needed is None else " ".join(words) or "-")


def test_every_state_has_a_cell_but_our_key_where_the_ledger_knows_none() -> None:
    ours = HeldKey.OURS, HeldKey.ENDED
    impossible = set(product(ours, (KnownKeys.NONE, KnownKeys.OTHER_TAG)))
    # A module has no tags.
    impossible |= {(HeldKey.OWN, KnownKeys.OTHER_TAG), (HeldKey.OWN, KnownKeys.BOTH)}
    assert set(KEY_CONSENTS) == set(product(HeldKey, KnownKeys)) - impossible


@pytest.mark.parametrize("stolen", [False, True], ids=["own-id", "id-of-another"])
@pytest.mark.parametrize(("held", "known"), CELLS, ids=lambda state: state.name)
def test_a_cell_needs_its_consents_all_of_them_and_no_other(
    held: HeldKey, known: KnownKeys, stolen: bool
) -> None:
    board, history = board_of(held), history_of(held, known)
    needed = KEY_CONSENTS[held, known]
    if stolen:
        history = replace(history, id_holders=STOLEN)
        needed |= {Consent.TAKE_OVER}
        if known is KnownKeys.BOTH:  # it is registered anew, which ends the other tag's key
            needed |= {Consent.SECOND_TAG}
    for consents in all_consents():
        plan = make_plan(board, told(GOAL, consents), history)
        if needed <= consents:
            assert not plan.refusal
            makes = held not in {HeldKey.OURS, HeldKey.OWN}
            assert plan.has(ProvisioningStep.KEY) == makes
            assert plan.has(ProvisioningStep.REGISTER) == (held is not HeldKey.OURS or stolen)
        else:
            assert (plan.steps, plan.writes) == ((), 0)
            # What was told already stays in the line, so that it is copied whole.
            assert pasted(plan) == needed


@pytest.mark.parametrize("known", [KnownKeys.THIS_TAG, KnownKeys.BOTH])
def test_a_key_that_is_still_to_be_registered_needs_a_word_where_another_tag_has_one(
    known: KnownKeys,
) -> None:
    board = board_of(HeldKey.OURS)
    history = history_of(HeldKey.OURS, known, registered=False)
    plan = make_plan(board, GOAL, history)
    assert pasted(plan) == ({Consent.SECOND_TAG} if known is KnownKeys.BOTH else set())
    assert not make_plan(board, replace(GOAL, second_tag=True), history).refusal
    no_service = replace(GOAL, registration=RegistrationMethod.NONE)
    assert not make_plan(board, no_service, history).refusal


@pytest.mark.parametrize(
    "method", [RegistrationMethod.PUBLIC_KEY, RegistrationMethod.CLAIM, RegistrationMethod.NONE]
)
def test_a_second_tag_is_told_whatever_the_registration(method: RegistrationMethod) -> None:
    """And that it may end a key that nobody here knows, where the service is given one."""
    goal = replace(GOAL, registration=method, prove=False)
    unknown = HeldCredential(55, KEY, STRANGE)
    board = replace(EMPTY, credentials=(*board_of(HeldKey.NOTHING).credentials, unknown))
    refused = make_plan(board, goal, history_of(HeldKey.NOTHING, KnownKeys.OTHER_TAG))
    assert pasted(refused) == {Consent.SECOND_TAG}
    assert ("the private key of tag 55" in refused.refusal) == goal.gives_key


@pytest.mark.contract("C10")
def test_a_second_tag_says_what_the_service_does_and_leads_back_to_the_first() -> None:
    board = board_of(HeldKey.NOTHING)
    refused = make_plan(board, GOAL, history_of(HeldKey.NOTHING, KnownKeys.OTHER_TAG))
    assert f"tag {FIRST_TAG} (made 2026-03-14 at bench-1)" in refused.refusal
    assert "one key for each device" in refused.refusal
    assert "401" in refused.refusal
    assert f"--security-tag {FIRST_TAG}" in refused.hint
    assert refused.reason_code == "second-tag"


def test_a_second_tag_leads_not_back_to_a_key_that_the_modem_lost() -> None:
    refused = make_plan(EMPTY, GOAL, history_of(HeldKey.NOTHING, KnownKeys.OTHER_TAG))
    assert "which the modem does not hold any more: erased, or a clone" in refused.refusal
    assert "--security-tag" not in refused.hint
    assert pasted(refused) == {Consent.SECOND_TAG}


def test_a_key_of_another_device_in_another_tag_is_not_said_to_die() -> None:
    another = (replace(ELSEWHERE[0], same_device=False),)
    history = BoardHistory(other_keys=another)
    refused = make_plan(board_of(HeldKey.NOTHING), GOAL, history)
    assert f"which is not that of device {DEVICE}: it stays what it is" in refused.refusal
    assert "401" not in refused.refusal
    # What is here already, and is to be registered, ends no other key.
    history = replace(history_of(HeldKey.OURS, KnownKeys.THIS_TAG), registered=False)
    ours = make_plan(board_of(HeldKey.OURS), GOAL, replace(history, other_keys=another))
    assert ours.has(ProvisioningStep.REGISTER)


@pytest.mark.parametrize(("held", "known"), CELLS, ids=lambda state: state.name)
def test_no_hint_leads_to_another_security_tag_unless_the_board_has_its_key_there(
    held: HeldKey, known: KnownKeys
) -> None:
    hint = make_plan(board_of(held), GOAL, history_of(held, known)).hint
    elsewhere = known in {KnownKeys.OTHER_TAG, KnownKeys.BOTH} and held is not HeldKey.OURS
    assert ("--security-tag" in hint) == elsewhere


@pytest.mark.contract("D2.2")
def test_a_device_id_of_another_board_is_refused_with_when_and_where_that_was_made() -> None:
    refused = make_plan(EMPTY, GOAL, BoardHistory(id_holders=STOLEN))
    assert DEVICE in refused.refusal
    assert STOLEN[0] in refused.refusal
    assert f"--take-over {DEVICE}" in refused.hint
    another = replace(GOAL, take_over=frozenset({"nrf-350457791234568"}))
    assert make_plan(EMPTY, another, BoardHistory(id_holders=STOLEN)).refusal


def test_a_retired_key_is_named_for_what_it_was() -> None:
    history = history_of(HeldKey.ANOTHER, KnownKeys.OTHER_TAG)
    history = replace(history, retired={STRANGE: "tag 16842753 took its place"})
    refused = make_plan(board_of(HeldKey.ANOTHER), GOAL, history)
    assert "was retired: tag 16842753 took its place" in refused.refusal


def test_what_was_allowed_stands_in_the_record_with_its_reason() -> None:
    history = history_of(HeldKey.NOTHING, KnownKeys.THIS_TAG)
    plan = make_plan(EMPTY, replace(GOAL, rekey=True, second_tag=True), history)
    assert plan.consent.startswith("--rekey: the ledger has a key of this board (made 2026-03-13")
    assert "--second-tag" not in plan.consent  # it was not needed
    assert make_plan(EMPTY, replace(GOAL, rekey=True), BoardHistory()).consent == ""


@pytest.mark.parametrize("known", ["", EMPTY.imei])
def test_an_erased_modem_may_be_a_clone(known: str) -> None:
    history = replace(history_of(HeldKey.NOTHING, KnownKeys.THIS_TAG), imei=known)
    plan = make_plan(board_of(HeldKey.NOTHING), GOAL, history)
    assert "the modem was erased, or it is a clone of that board" in plan.refusal
    assert plan.hint == "`--rekey` allows it"


def test_another_imei_tells_a_clone_from_an_erased_modem() -> None:
    history = replace(history_of(HeldKey.NOTHING, KnownKeys.THIS_TAG), imei="004400000000017")
    plan = make_plan(board_of(HeldKey.NOTHING), GOAL, history)
    assert "that board has the IMEI 004400000000017, so this is a clone of it" in plan.refusal
    assert plan.hint == (
        "keep this board apart; `--rekey` allows it, and the other one is locked out"
    )
    assert not make_plan(board_of(HeldKey.NOTHING), replace(GOAL, rekey=True), history).refusal
