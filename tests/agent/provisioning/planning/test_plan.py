"""The plan does what is still needed, and overwrites nothing unasked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from agent.provisioning.boards.board import BoardState, HeldCredential
from agent.provisioning.boards.limits import Limit, Quantity
from agent.provisioning.planning.goal import CertificateSource, Goal, KeyOrigin, RegistrationMethod
from agent.provisioning.planning.plan import (
    BoardHistory,
    ProvisioningStep,
    make_plan,
    stored_digest,
)
from at.commands.credentials import CredentialType

CA_CHAIN = CredentialType.ROOT_CA
CLIENT_CERTIFICATE = CredentialType.CLIENT_CERTIFICATE
PRIVATE_KEY = CredentialType.CLIENT_PRIVATE_KEY
TAG = 16842753
CA, CERTIFICATE, KEY_DIGEST = "CA chain\n", "certificate\n", "AB" * 32
FRESH = BoardState("350457791234567", "uuid", "nRF9161-LACA", "mfw_nrf91x1_2.0.4", "", 0, False, ())
GOAL = Goal(TAG, CA, certificate=CertificateSource.OPERATOR_CA)
DONE = BoardHistory("public", KEY_DIGEST, CERTIFICATE, registered=True)
READY = structs.replace(
    FRESH,
    mode=1,
    credentials=(
        HeldCredential(TAG, CA_CHAIN, stored_digest(CA)),
        HeldCredential(TAG, PRIVATE_KEY, KEY_DIGEST),
        HeldCredential(TAG, CLIENT_CERTIFICATE, stored_digest(CERTIFICATE)),
    ),
)


@pytest.mark.contract("C10")
def test_a_fresh_board_gets_everything_in_order() -> None:
    made = make_plan(FRESH, GOAL, BoardHistory())
    assert [planned.step for planned in made.steps] == [
        ProvisioningStep.GATE, ProvisioningStep.IDENTITY, ProvisioningStep.OTHER_KEYS,
        ProvisioningStep.CA_CHAIN, ProvisioningStep.KEY, ProvisioningStep.CERTIFICATE,
        ProvisioningStep.WRITE, ProvisioningStep.VERIFY, ProvisioningStep.REGISTER,
        ProvisioningStep.PROOF,
    ]  # fmt: skip
    assert made.writes == 3
    assert made.restore_mode is None


def test_limits_are_judged_before_the_first_change_and_only_if_there_is_one() -> None:
    limits = (Limit(Quantity.SUPPLY, 3300), Limit(Quantity.RSRP, -110), Limit(Quantity.SIM, 1))
    goal = structs.replace(GOAL, limits=limits)
    online = structs.replace(FRESH, mode=1)
    made = make_plan(online, goal, BoardHistory())
    order = [planned.step.value for planned in made.steps]
    assert order[:5] == ["gate", "identity", "limits", "other-keys", "offline"]
    assert made.limits == limits
    assert "supply voltage at least 3300 mV, RSRP at least -110 dBm, a SIM" in made.steps[2].words
    assert make_plan(READY, goal, DONE).limits == ()
    lost = structs.replace(DONE, registered=False)
    assert make_plan(READY, goal, lost).limits == limits
    # Cut off after it went offline: what needs the radio was judged by the run that did so.
    cut = structs.replace(online, mode=4)
    assert make_plan(cut, goal, BoardHistory(mode_before=1)).limits == limits[:1]
    assert make_plan(cut, goal, BoardHistory()).limits == limits


def test_a_board_that_is_ready_gets_no_write_and_keeps_its_mode() -> None:
    made = make_plan(READY, GOAL, DONE)
    assert made.writes == 0
    assert not made.has(ProvisioningStep.OFFLINE)
    assert not made.has(ProvisioningStep.REGISTER)
    assert made.has(ProvisioningStep.PROOF)


@pytest.mark.parametrize(("mode", "back_to"), [(4, 1), (0, None), (1, None)])
def test_a_mode_that_a_cut_off_run_left_is_put_back_where_nobody_changed_it_since(
    mode: int, back_to: int | None
) -> None:
    board = structs.replace(READY, mode=mode)
    made = make_plan(board, GOAL, structs.replace(DONE, mode_before=1))
    assert made.restore_mode == back_to
    assert made.has(ProvisioningStep.RESTORE) == (back_to is not None)
    assert not made.has(ProvisioningStep.OFFLINE)
    assert make_plan(board, GOAL, DONE).restore_mode is None


def test_a_mode_that_a_run_by_commands_left_is_put_back_by_the_next_one_that_writes() -> None:
    goal = structs.replace(GOAL, registration=RegistrationMethod.CLAIM, prove=True)
    online = structs.replace(FRESH, mode=1, has_client=True)
    made = make_plan(online, goal, BoardHistory(mode_before=0))
    assert (made.refusal, made.writes, made.restore_mode) == ("", 3, 0)


def test_a_device_id_that_is_taken_over_is_registered_anew() -> None:
    goal = structs.replace(GOAL, take_over=frozenset({GOAL.device_id(READY.uuid, READY.imei)}))
    made = make_plan(READY, goal, structs.replace(DONE, id_holders=("board 2",)))
    assert (made.refusal, made.writes, made.has(ProvisioningStep.REGISTER)) == ("", 0, True)


def test_a_board_that_is_online_goes_offline_for_writes_and_back() -> None:
    made = make_plan(structs.replace(FRESH, mode=1), GOAL, BoardHistory())
    assert made.has(ProvisioningStep.OFFLINE)
    assert made.steps[-1].step is ProvisioningStep.RESTORE
    assert made.restore_mode == 1


@pytest.mark.contract("D1.3")
def test_old_firmware_stops_the_plan_before_anything() -> None:
    made = make_plan(
        structs.replace(FRESH, refusal="1.2.0 is older than 1.3"), GOAL, BoardHistory()
    )
    assert made.steps == ()
    assert "1.2.0" in made.refusal


@pytest.mark.contract("D10.2")
@pytest.mark.parametrize("kind", [CA_CHAIN, CLIENT_CERTIFICATE, PRIVATE_KEY])
def test_what_is_there_is_replaced_only_when_named(kind: int) -> None:
    board = structs.replace(FRESH, credentials=(HeldCredential(TAG, kind, "CD" * 32),))
    refused = make_plan(board, GOAL, BoardHistory())
    assert refused.steps == ()
    assert f"--replace {TAG}:{kind}" in refused.hint
    told = structs.replace(GOAL, replace=frozenset({(TAG, kind)}))
    made = make_plan(board, told, BoardHistory())
    assert made.delete == ((TAG, kind),)
    assert made.writes == 4


@pytest.mark.contract("D10.2")
def test_a_refusal_names_all_that_must_go_also_what_was_allowed_already() -> None:
    kinds = (PRIVATE_KEY, CLIENT_CERTIFICATE)
    board = structs.replace(
        FRESH,
        credentials=tuple(HeldCredential(TAG, kind, "CD" * 32) for kind in kinds),
        certificate_algorithm="RSA",
    )
    goal = structs.replace(GOAL, certificate=CertificateSource.OPERATOR_CA)
    for told in ((), (PRIVATE_KEY,), (CLIENT_CERTIFICATE,)):
        replace = frozenset((TAG, kind) for kind in told)
        refused = make_plan(board, structs.replace(goal, replace=replace), BoardHistory())
        assert refused.refusal.startswith("RSA-provisioned: ")
        for kind in kinds:
            assert f"--replace {TAG}:{kind}" in refused.hint


@pytest.mark.contract("D10.2")
@pytest.mark.parametrize(
    ("algorithm", "what"),
    [
        ("RSA", "an RSA client certificate"),
        ("EC", "an elliptic-curve client certificate"),
        ("", "a client certificate, of which kind the modem does not show,"),
    ],
)
def test_a_certificate_that_is_in_the_way_is_named_by_its_kind(algorithm: str, what: str) -> None:
    held = (HeldCredential(TAG, CLIENT_CERTIFICATE, "CD" * 32),)
    board = structs.replace(FRESH, credentials=held, certificate_algorithm=algorithm)
    assert f"tag {TAG} holds {what} " in make_plan(board, GOAL, BoardHistory()).refusal


def test_a_key_that_we_began_to_make_and_lost_is_made_again() -> None:
    board = structs.replace(FRESH, credentials=(HeldCredential(TAG, PRIVATE_KEY, "CD" * 32),))
    made = make_plan(board, GOAL, BoardHistory(key_begun=True))
    assert made.delete == ((TAG, PRIVATE_KEY),)
    assert made.has(ProvisioningStep.KEY)


def test_a_key_that_we_began_to_make_and_never_made_is_no_leave_for_another() -> None:
    """The run settles by the modem's list that none was made: the plan must not promise more."""
    known = BoardHistory("public", KEY_DIGEST, key_begun=True)
    assert make_plan(FRESH, GOAL, known).reason_code == "rekey"
    assert make_plan(FRESH, structs.replace(GOAL, rekey=True), known).has(ProvisioningStep.KEY)


def test_a_key_that_was_changed_by_someone_else_is_not_taken_for_ours() -> None:
    changed = tuple(
        HeldCredential(TAG, PRIVATE_KEY, "CD" * 32) if held.type == PRIVATE_KEY else held
        for held in READY.credentials
    )
    assert (
        "does not know"
        in make_plan(structs.replace(READY, credentials=changed), GOAL, DONE).refusal
    )


def test_a_board_that_was_emptied_gets_a_new_key_and_a_new_registration_when_told() -> None:
    refused = make_plan(FRESH, GOAL, DONE)
    assert (refused.steps, refused.reason_code) == ((), "rekey")
    made = make_plan(FRESH, structs.replace(GOAL, rekey=True), DONE)
    assert made.has(ProvisioningStep.KEY)
    assert made.has(ProvisioningStep.CERTIFICATE)
    assert made.has(ProvisioningStep.REGISTER)


def test_a_certificate_that_was_issued_and_not_written_is_only_written() -> None:
    held = tuple(one for one in READY.credentials if one.type != CLIENT_CERTIFICATE)
    made = make_plan(structs.replace(READY, credentials=held), GOAL, DONE)
    assert not made.has(ProvisioningStep.CERTIFICATE)
    assert made.has(ProvisioningStep.WRITE)
    assert made.writes == 1


def test_a_modem_key_signs_no_certificate_of_its_own() -> None:
    with pytest.raises(ValueError, match="operator-ca or none"):
        Goal(TAG, certificate=CertificateSource.SELF_SIGNED)


@pytest.mark.contract("D2.2")
def test_the_device_id_is_the_uuid_or_a_prefix_with_the_imei() -> None:
    assert GOAL.device_id("u-1", "350457791234567") == "u-1"
    prefixed = structs.replace(GOAL, id_prefix="nrf-")
    assert prefixed.device_id("u-1", "350457791234567") == "nrf-350457791234567"


@given(
    mode=st.sampled_from([0, 1, 2, 4, 20, 21, 30, 31, 40, 41, 44]),
    held=st.lists(
        st.builds(
            HeldCredential,
            st.sampled_from([TAG, 42]),
            st.integers(0, 4),
            st.sampled_from(["CD" * 32, KEY_DIGEST, stored_digest(CA), stored_digest(CERTIFICATE)]),
        ),
        unique_by=lambda one: (one.tag, one.type),
    ),
    known=st.sampled_from(
        [BoardHistory(), DONE, BoardHistory(key_begun=True), BoardHistory("public", KEY_DIGEST)]
    ),
    replace=st.frozensets(st.tuples(st.just(TAG), st.integers(0, 2))),
    certificate=st.sampled_from([CertificateSource.OPERATOR_CA, CertificateSource.NONE]),
    registration=st.sampled_from(RegistrationMethod),
    origin=st.sampled_from(KeyOrigin),
)
def test_a_plan_never_deletes_what_was_not_named_and_never_writes_online(
    mode: int,
    held: list[HeldCredential],
    known: BoardHistory,
    replace: frozenset[tuple[int, int]],
    certificate: CertificateSource,
    registration: RegistrationMethod,
    origin: KeyOrigin,
) -> None:
    board = structs.replace(FRESH, mode=mode, credentials=tuple(held))
    prove = registration is not RegistrationMethod.CLAIM
    goal = Goal(TAG, CA, origin, certificate, registration, replace, prove=prove)
    made = make_plan(board, goal, known)
    if made.refusal:
        assert made.writes == 0
        return
    own_orphan = {(TAG, PRIVATE_KEY)} if known.key_begun else set()
    assert set(made.delete) <= replace | own_orphan
    assert all(board.held(*place) is not None for place in made.delete)
    if made.writes and mode in {1, 2, 21}:
        assert made.has(ProvisioningStep.OFFLINE)
        assert made.restore_mode == mode
    order = list(ProvisioningStep)
    positions = [order.index(planned.step) for planned in made.steps]
    assert positions == sorted(positions)
