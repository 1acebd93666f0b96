"""What the ledger says of a board counts for the tag, the device and the way it was noted for."""

from __future__ import annotations

from pathlib import Path

from agent.provisioning.boards.board import HeldCredential
from agent.provisioning.ledger import open_ledger
from agent.provisioning.planning.goal import Goal
from agent.provisioning.running.board_history import history_of, settlement
from at.commands.credentials import CredentialType
from tests.support.provisioning.ledgers import UUID, ended, run_of


def test_a_key_begun_in_one_tag_is_no_leave_to_empty_another(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.sqlite"), "one")
    ledger.claim(run_of())
    ledger.begin(UUID, "key", "10")
    assert history_of(ledger.know(UUID, UUID)(), Goal(10)).key_begun
    assert not history_of(ledger.know(UUID, UUID)(), Goal(11)).key_begun
    ledger.close()


def test_a_key_that_the_modem_refused_to_make_is_not_begun(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.sqlite"), "one")
    ledger.claim(run := run_of())
    ledger.begin(UUID, "key", "10")
    ledger.refused(UUID, "key", "523")
    ledger.conclude(ended(run, "failed", step="key", reason="523"))
    assert not history_of(ledger.know(UUID, UUID)(), Goal(10)).key_begun
    ledger.close()


def test_the_mode_before_a_run_that_was_cut_off_is_known_until_it_is_put_back(
    tmp_path: Path,
) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.sqlite"), "one")
    ledger.claim(run := run_of())
    assert history_of(ledger.know(UUID, UUID)(), Goal(10)).mode_before is None
    ledger.begin(UUID, "offline", "1")
    ledger.conclude(ended(run, "failed", step="key", reason="lost"))
    assert history_of(ledger.know(UUID, UUID)(), Goal(10)).mode_before == 1
    ledger.finish(UUID, "offline", "back to 1")
    assert history_of(ledger.know(UUID, UUID)(), Goal(10)).mode_before is None
    ledger.close()


def test_a_write_that_a_later_one_undid_counts_though_the_modem_lists_nothing_of_it(
    tmp_path: Path,
) -> None:
    """Cut off at a key that was made, at its deletion that was done, at a key that was not."""
    ledger = open_ledger(str(tmp_path / "ledger.sqlite"), "one")
    key = HeldCredential(10, CredentialType.CLIENT_PRIVATE_KEY, "AB" * 32)
    for step, detail, listed in (("key", "10", []), ("clear", "10:2", [key]), ("key", "10", [])):
        known = ledger.claim(run_of())()
        for change in settlement(known, listed):
            change(ledger)
        ledger.begin(UUID, step, detail, 1)
        ledger.release(UUID)
    known = ledger.claim(run_of())()
    for change in settlement(known, []):
        change(ledger)
    record = ledger.board(UUID)
    assert record is not None
    assert record.writes == 2
    assert not history_of(ledger.know(UUID, UUID)(), Goal(10)).key_begun
    ledger.close()
