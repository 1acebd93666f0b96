"""A device id belongs to one board of the ledger, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

from datetime import timedelta

import pytest
from ledgers import NOW, OTHER, UUID, ended, opened, run_of

from agent.provisioning.ledger import BoardBusy, Ledger

DEVICE = "nrf-350457791234567"


def made(ledger: Ledger, uuid: str, registered_as: str = "", **columns: object) -> None:
    """Run a board to its end, with a new key that the service took."""
    run = run_of(uuid, **{"device_id": DEVICE, **columns})
    ledger.claim(run)
    ledger.finish_key(uuid, "key", "", f"PEM {uuid}", f"digest {uuid}", "another was made")
    ledger.finish_registration(
        uuid, "register", "", registered_key="k", registered_as=registered_as
    )
    ledger.conclude(ended(run, "done", step="proof"))
    ledger.release(uuid)


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
        second.claim(run_of(OTHER, device_id=DEVICE))
    second.claim(run_of(OTHER, device_id="nrf-another"))
    second.release(OTHER)
    first.close()  # as a station that died: its locks go with its connection
    second.claim(run_of(OTHER, device_id=DEVICE))
    second.close()


def test_a_board_that_is_refused_does_not_get_the_device_id_of_another(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    record = ledger.claim(run_of(OTHER, device_id=DEVICE))
    assert record.device_id == ""
    assert [one.uuid for one in ledger.boards_with(DEVICE)] == [UUID]
    ledger.close()


def test_a_device_id_that_was_taken_over_retires_the_other_boards_keys(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    made(ledger, OTHER)
    assert (live(ledger, UUID), live(ledger, OTHER)) == ([], [10])
    [old] = ledger.keys(UUID)
    assert DEVICE in old.retired_because
    assert OTHER in old.retired_because
    conflicts = {one.uuid: one.conflict for one in ledger.boards_with(DEVICE)}
    assert OTHER in conflicts[UUID]
    assert conflicts[OTHER] == ""
    ledger.close()


def test_a_registration_retires_the_keys_of_the_boards_other_tags(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    made(ledger, UUID, security_tag=101)
    assert live(ledger, UUID) == [101]
    ledger.close()


def test_a_key_that_no_registration_followed_leaves_the_other_tags_alone(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    ledger.claim(run_of(UUID, device_id=DEVICE, security_tag=101))
    ledger.finish_key(UUID, "key", "", "PEM", "digest", "another was made")
    assert live(ledger, UUID) == [10, 101]
    ledger.retire_others(UUID)
    assert live(ledger, UUID) == [101]
    ledger.close()


def test_a_run_that_comes_to_nothing_changes_no_device_id(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID)
    run = run_of(UUID, device_id=UUID)
    ledger.claim(run)
    ledger.conclude(ended(run, "refused", step="gate", reason="it may not"))
    ledger.release(UUID)
    assert [one.uuid for one in ledger.boards_with(DEVICE)] == [UUID]
    ledger.claim(run := run_of(UUID, device_id=UUID))
    ledger.conclude(ended(run, "unchanged", step="proof"))
    assert [one.uuid for one in ledger.boards_with(UUID)] == [UUID]
    ledger.close()


def test_a_key_that_was_registered_as_the_device_retires_whatever_id_its_board_has_now(
    address: str,
) -> None:
    ledger = opened(address)
    made(ledger, UUID, registered_as=f"onboard {DEVICE}")
    ledger.claim(run := run_of(UUID, device_id=UUID))  # with no registration
    ledger.conclude(ended(run, "unchanged", step="verify"))
    ledger.release(UUID)
    assert ledger.boards_with(DEVICE) == []
    made(ledger, OTHER, registered_as=f"public-key {DEVICE}")
    assert (live(ledger, UUID), live(ledger, OTHER)) == ([], [10])
    ledger.close()


def test_a_key_that_was_registered_as_another_device_since_lives(address: str) -> None:
    ledger = opened(address)
    made(ledger, UUID, registered_as=f"onboard {DEVICE}")
    made(ledger, UUID, device_id=UUID, registered_as=f"onboard {UUID}")
    made(ledger, OTHER, registered_as=f"onboard {DEVICE}")
    assert (live(ledger, UUID), live(ledger, OTHER)) == ([10], [10])
    ledger.close()


def test_the_last_board_of_a_device_id_is_known_whatever_the_stations_clocks_say(
    address: str,
) -> None:
    ledger = opened(address)
    made(ledger, UUID, began_at=NOW + timedelta(hours=1))
    made(ledger, OTHER)
    last = ledger.last_board_as(DEVICE)
    assert last is not None
    assert last.uuid == OTHER
    ledger.close()
