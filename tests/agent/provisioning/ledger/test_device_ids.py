"""A device id belongs to one board of the ledger, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

import pytest

from agent.provisioning.ledger import BoardBusy, Ledger
from tests.support.provisioning.ledgers import (
    OTHER,
    UUID,
    boards_of,
    claimed_once_free,
    ended,
    opened,
    registrations_of,
    run_of,
)

DEVICE = "nrf-350457791234567"


def made(
    ledger: Ledger, uuid: str, method: str = "onboard", *, new_key: bool = True, **columns: object
) -> None:
    """Run a board to its end, with a key that the service took, or that no service was given."""
    run = run_of(uuid, **{"device_id": DEVICE, **columns})
    ledger.claim(run)
    if new_key:
        ledger.finish_key(uuid, "key", "", f"PEM {uuid}", f"digest {uuid}", "another was made")
    if method in {"claim", "none"}:
        ledger.hold_device_id(uuid, method)
    else:
        ledger.begin_registration(uuid, "register", "", method)
        name = f"{method} {run.device_id}"
        ledger.finish_registration(uuid, "register", "", method, registered_as=name)
    ledger.conclude(ended(run, "done", step="proof"))
    ledger.release(uuid)


def holders(ledger: Ledger, device_id: str) -> list[tuple[str, str, bool]]:
    return [(one.uuid, one.method, one.finished) for one in registrations_of(ledger, device_id)]


def live(ledger: Ledger, uuid: str) -> list[int | None]:
    return [key.security_tag for key in ledger.keys(uuid) if key.retired_at is None]


def test_two_boards_at_work_do_not_get_one_device_id_at_one_station(address: str) -> None:
    ledger = opened(address)
    ledger.claim(run_of(UUID, device_id=DEVICE))
    with pytest.raises(BoardBusy, match=f"device id {DEVICE}"):
        ledger.claim(run_of(OTHER, device_id=DEVICE))
    ledger.release(UUID)
    ledger.claim(run_of(OTHER, device_id=DEVICE))
    ledger.close()


def test_nor_do_two_boards_of_two_stations(cluster: str) -> None:
    first, second = opened(cluster), opened(cluster, "two")
    first.claim(run_of(UUID, device_id=DEVICE))
    with pytest.raises(BoardBusy, match="another station"):
        second.lock(run_of(OTHER, device_id=DEVICE))()
    second.claim(run_of(OTHER, device_id="nrf-another"))
    second.release(OTHER)
    first.lock(run_of(OTHER, device_id="nrf-third"))()  # nothing of the refusal is left on it
    first.release(OTHER)
    first.close()  # as a station that died: its locks go with its connection
    claimed_once_free(second, run_of(OTHER, device_id=DEVICE))
    second.close()


def test_a_board_that_is_refused_does_not_get_the_device_id_of_another(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    known = ledger.claim(run_of(OTHER, device_id=DEVICE))()
    assert known.record.device_id == ""
    assert [one.uuid for one in boards_of(ledger, DEVICE)] == [UUID]
    ledger.close()


def test_a_board_has_its_device_id_from_its_claim_on_and_another_from_its_registration(
    address: str,
) -> None:
    ledger = opened(address)
    assert ledger.claim(run_of(UUID, device_id=DEVICE))().record.device_id == DEVICE
    ledger.finish_key(UUID, "key", "", "PEM", "digest", "")
    ledger.release(UUID)
    assert ledger.claim(run_of(UUID, device_id="nrf-another"))().record.device_id == DEVICE
    ledger.begin_registration(UUID, "register", "", "onboard")
    ledger.finish_registration(UUID, "register", "", "onboard", registered_as="nrf-another")
    assert [one.device_id for one in boards_of(ledger)] == ["nrf-another"]
    ledger.close()


def test_a_device_id_that_was_taken_over_retires_the_other_boards_keys(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    made(ledger, OTHER)
    assert (live(ledger, UUID), live(ledger, OTHER)) == ([], [10])
    [old] = ledger.keys(UUID)
    assert DEVICE in old.retired_because
    assert OTHER in old.retired_because
    conflicts = {one.uuid: one.conflict for one in boards_of(ledger, DEVICE)}
    assert OTHER in conflicts[UUID]
    assert conflicts[OTHER] == ""
    ledger.close()


def test_a_registration_retires_the_keys_of_the_boards_other_tags(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    made(ledger, UUID, security_tag=101)
    assert live(ledger, UUID) == [101]
    ledger.close()


def test_a_key_that_no_service_was_given_leaves_the_other_tags_alone(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    made(ledger, UUID, "none", security_tag=101)
    assert live(ledger, UUID) == [10, 101]
    assert holders(ledger, DEVICE) == [(UUID, "onboard", True), (UUID, "none", True)]
    made(ledger, UUID, security_tag=101, new_key=False)
    assert live(ledger, UUID) == [101]
    ledger.close()


def test_a_board_whose_key_no_service_was_given_has_its_device_id(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID, "none")
    made(ledger, OTHER, "none")  # with leave to take it over
    assert (live(ledger, UUID), live(ledger, OTHER)) == ([], [10])
    assert holders(ledger, DEVICE) == [(OTHER, "none", True)]
    ledger.close()


def test_a_key_works_by_the_way_in_which_a_service_heard_of_it_last(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID, "none")
    made(ledger, UUID, "claim", new_key=False)
    assert holders(ledger, DEVICE) == [(UUID, "claim", True)]
    made(ledger, UUID, "none", new_key=False)  # no service: it knows what it knew
    assert holders(ledger, DEVICE) == [(UUID, "claim", True)]
    ledger.close()


def test_a_run_that_comes_to_nothing_changes_no_device_id(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    run = run_of(UUID, device_id=UUID)
    ledger.claim(run)
    ledger.conclude(ended(run, "refused", step="gate", reason="it may not"))
    ledger.release(UUID)
    assert [one.uuid for one in boards_of(ledger, DEVICE)] == [UUID]
    ledger.claim(run := run_of(UUID, device_id=UUID))
    ledger.conclude(ended(run, "unchanged", step="proof"))
    assert [one.uuid for one in boards_of(ledger, UUID)] == [UUID]
    ledger.close()


def test_a_key_that_works_as_two_devices_lives_until_both_are_taken(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    made(ledger, UUID, "public-key", new_key=False, device_id=UUID)
    made(ledger, OTHER)
    assert (live(ledger, UUID), live(ledger, OTHER)) == ([10], [10])
    assert holders(ledger, DEVICE) == [(OTHER, "onboard", True)]
    assert holders(ledger, UUID) == [(UUID, "public-key", True)]
    made(ledger, UUID, device_id=UUID, security_tag=101)
    assert live(ledger, UUID) == [101]
    ledger.close()


def test_what_is_left_of_two_devices_is_what_the_key_is_registered_as(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID, device_id=UUID)
    made(ledger, UUID, new_key=False)
    made(ledger, OTHER)
    [key] = ledger.keys(UUID)
    assert (key.retired_at, key.registered_as) == (None, f"onboard {UUID}")
    ledger.close()


def test_a_second_tag_as_another_device_retires_no_key(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    made(ledger, UUID, security_tag=101, device_id=UUID)
    assert live(ledger, UUID) == [10, 101]
    ledger.close()


def test_a_key_that_the_service_was_about_to_be_given_may_work_as_the_device(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    lost(ledger, OTHER, "onboard")
    assert holders(ledger, DEVICE) == [(UUID, "onboard", True), (OTHER, "onboard", False)]
    assert (live(ledger, UUID), live(ledger, OTHER)) == ([10], [10])
    made(ledger, UUID, new_key=False)
    assert (live(ledger, UUID), live(ledger, OTHER)) == ([10], [])
    ledger.close()


def lost(ledger: Ledger, uuid: str, method: str, tag: int = 10, *, new_key: bool = True) -> None:
    """Run a board until the service was asked: whether it took the key is not known."""
    ledger.claim(run_of(uuid, device_id=DEVICE, security_tag=tag))
    if new_key:
        ledger.finish_key(uuid, "key", "", f"PEM {uuid} {tag}", f"digest {uuid} {tag}", "")
    ledger.begin_registration(uuid, "register", "", method)
    ledger.release(uuid)


def test_a_key_that_was_claimed_and_is_claimed_by_commands_may_not_have_been_given(
    address: str,
) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    made(ledger, UUID, "claim", security_tag=101)  # without a proof, and so without commands
    lost(ledger, UUID, "claim", 101, new_key=False)
    assert holders(ledger, DEVICE) == [(UUID, "onboard", True), (UUID, "claim", False)]
    ledger.close()


def test_a_key_is_doubted_whose_board_keeps_a_device_id_that_another_was_about_to_get(
    address: str,
) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    lost(ledger, OTHER, "onboard")
    made(ledger, UUID, "none", new_key=False)  # with leave to take it back, and no service asked
    assert holders(ledger, DEVICE) == [(UUID, "onboard", False)]
    ledger.close()


def test_a_device_id_of_a_key_whose_place_was_taken_is_still_its_boards(address: str) -> None:
    """The service takes it as before, and a clone may hold it."""
    ledger = opened(address)
    made(ledger, UUID)
    made(ledger, UUID, device_id=UUID)  # with leave to make another in its place
    assert holders(ledger, DEVICE) == [(UUID, "onboard", True)]
    assert live(ledger, UUID) == [10]
    ledger.close()


@pytest.mark.parametrize("outcome", ["done", "unchanged"])
def test_a_conflict_ends_when_the_board_is_right_by_any_device_id(
    address: str, outcome: str
) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    made(ledger, OTHER)
    [lost] = [one for one in boards_of(ledger) if one.uuid == UUID]
    assert OTHER in lost.conflict
    ledger.claim(run := run_of(UUID, device_id=UUID))
    ledger.conclude(ended(run, outcome, step="verify"))
    found = {one.uuid: (one.device_id, one.conflict) for one in boards_of(ledger)}
    assert found == {UUID: (UUID, ""), OTHER: (DEVICE, "")}
    ledger.close()
