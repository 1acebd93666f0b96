"""What the ledger says of a board counts for the tag, the device and the way it was noted for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.provisioning.boards.board import HeldCredential
from agent.provisioning.ledger import BoardRecord, KeyRecord, open_ledger
from agent.provisioning.ledger.reader import BoardKnowledge
from agent.provisioning.ledger.records import KEY_COLUMNS, Registration
from agent.provisioning.planning.goal import Goal
from agent.provisioning.running.board_history import history_of, settlement
from at.commands.credentials import CredentialType
from tests.support.provisioning.ledgers import NOW, OTHER, UUID, ended, run_of


def test_a_key_begun_in_one_tag_is_no_leave_to_empty_another(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.sqlite"), "one")
    ledger.claim(run_of())
    ledger.begin(UUID, "key", "10")
    assert history_of(ledger.know(UUID, UUID)(), Goal(10), NOW).key_begun
    assert not history_of(ledger.know(UUID, UUID)(), Goal(11), NOW).key_begun
    ledger.close()


def test_a_key_that_the_modem_refused_to_make_is_not_begun(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.sqlite"), "one")
    ledger.claim(run := run_of())
    ledger.begin(UUID, "key", "10")
    ledger.refused(UUID, "key", "523")
    ledger.conclude(ended(run, "failed", step="key", reason="523"))
    assert not history_of(ledger.know(UUID, UUID)(), Goal(10), NOW).key_begun
    ledger.close()


def test_the_mode_before_a_run_that_was_cut_off_is_known_until_it_is_put_back(
    tmp_path: Path,
) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.sqlite"), "one")
    ledger.claim(run := run_of())
    assert history_of(ledger.know(UUID, UUID)(), Goal(10), NOW).mode_before is None
    ledger.begin(UUID, "offline", "1")
    ledger.conclude(ended(run, "failed", step="key", reason="lost"))
    assert history_of(ledger.know(UUID, UUID)(), Goal(10), NOW).mode_before == 1
    ledger.finish(UUID, "offline", "back to 1")
    assert history_of(ledger.know(UUID, UUID)(), Goal(10), NOW).mode_before is None
    ledger.close()


def test_a_write_that_a_later_one_undid_counts_though_the_modem_lists_nothing_of_it(
    tmp_path: Path,
) -> None:
    """Cut off at a key that was made, at its deletion that was done, at a key that was not."""
    ledger = open_ledger(str(tmp_path / "ledger.sqlite"), "one")
    key = HeldCredential(10, CredentialType.CLIENT_PRIVATE_KEY, "AB" * 32)
    for step, detail, listed in (("key", "10", []), ("clear", "10:2", [key]), ("key", "10", [])):
        found = ledger.claim(run_of())()
        for change in settlement(found, listed):
            change(ledger)
        ledger.begin(UUID, step, detail, 1)
        ledger.release(UUID)
    found = ledger.claim(run_of())()
    for change in settlement(found, []):
        change(ledger)
    record = ledger.board(UUID)
    assert record is not None
    assert record.writes == 2
    assert not history_of(ledger.know(UUID, UUID)(), Goal(10), NOW).key_begun
    ledger.close()


def key_of(number: int, tag: int | None, digest: str, *, retired: bool = False) -> KeyRecord:
    texts = dict.fromkeys(KEY_COLUMNS, "") | {"key_digest": digest}
    return KeyRecord(
        id=number,
        uuid=UUID,
        security_tag=tag,
        made_at=NOW,
        run=None,
        retired_at=NOW if retired else None,
        retired_because="another was made" if retired else "",
        change=0,
        **texts,
    )


def known(
    keys: Sequence[KeyRecord] = (), registrations: Sequence[Registration] = ()
) -> BoardKnowledge:
    return BoardKnowledge(BoardRecord(UUID), keys, (), (), registrations, ())


OURS, THEIRS = Registration(1, UUID, "public-key", True), Registration(7, OTHER, "claim", True)


@pytest.mark.parametrize(
    ("registrations", "prove", "registered", "alone"),
    [
        ([], True, False, True),
        ([OURS], False, True, True),
        ([replace(OURS, finished=False)], True, False, True),
        ([replace(OURS, method="onboard")], True, False, True),
        ([THEIRS], True, False, False),
        ([OURS, THEIRS], False, True, False),
        # Whether another's key took its place is not known: a proof finds out.
        ([OURS, replace(THEIRS, finished=False)], False, False, False),
        ([OURS, replace(THEIRS, finished=False)], True, True, False),
    ],
)
def test_a_key_is_registered_by_the_method_of_the_goal_unless_another_may_have_its_place(
    registrations: list[Registration], prove: bool, registered: bool, alone: bool
) -> None:
    history = history_of(known([key_of(1, 10, "AB")], registrations), Goal(10, prove=prove), NOW)
    assert (history.registered, history.alone) == (registered, alone)


def test_without_a_key_every_registration_of_the_device_is_another_s() -> None:
    history = history_of(known((), [replace(OURS, finished=True)]), Goal(10), NOW)
    assert (history.registered, history.alone) == (False, False)


def test_the_key_of_a_tag_is_the_one_made_last_and_retired_ones_are_told_by_their_digest() -> None:
    keys = [
        key_of(1, None, "aa"),
        key_of(2, 10, "bb"),
        key_of(3, 11, "cc"),
        key_of(4, 10, "dd", retired=True),
    ]
    history = history_of(known(keys, [Registration(3, UUID, "claim", True)]), Goal(10), NOW)
    assert history.key_digest == "bb"
    assert history.retired == {"DD": "another was made"}
    assert [(key.security_tag, key.same_device) for key in history.other_keys] == [(11, True)]


def test_a_key_of_an_older_ledger_is_found_by_its_digest_in_a_tag_that_no_other_has() -> None:
    keys = [key_of(1, None, "aa"), key_of(2, 11, "bb")]

    def listed(tag: int, digest: str) -> HeldCredential:
        return HeldCredential(tag, CredentialType.CLIENT_PRIVATE_KEY, digest)

    found = history_of(known(keys), Goal(12), NOW, [listed(12, "AA"), listed(11, "BB")])
    assert (found.key_digest, len(found.other_keys)) == ("aa", 1)
    elsewhere = history_of(known(keys), Goal(12), NOW, [listed(13, "AA")])
    assert (elsewhere.key_digest, [key.security_tag for key in elsewhere.other_keys]) == (
        "",
        [13, 11],
    )
    known_tag = history_of(known(keys), Goal(13), NOW, [listed(13, "BB")])
    assert [key.security_tag for key in known_tag.other_keys] == [11], "a copy is no move"
    taken = history_of(known(keys), Goal(12), NOW, [listed(11, "AA")])
    assert taken.key_digest == "aa", "it was in this tag, for all that is known"
