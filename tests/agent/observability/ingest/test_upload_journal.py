"""The record of an upload on disk: kept, damaged, removed."""

from __future__ import annotations

import os
import time

import pytest

from agent.files.trusted_places import UntrustedPlace
from agent.observability.ingest.upload_journal import (
    RETENTION_S,
    UploadJournal,
    journal_name,
    remove_old_records,
)


def test_a_damaged_journal_costs_an_upload_from_the_beginning(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b'{"place": 7')
    journal = UploadJournal(path)
    assert (journal.progress, journal.committed) == (None, "")
    journal.mark_committed("2026-01-01T00:00:00Z")
    assert UploadJournal(path).committed == "2026-01-01T00:00:00Z"


def test_old_journals_are_forgotten(tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    for path in (old, new):
        path.write_bytes(b"{}")
    os.utime(old, (0, 0))
    os.utime(new, (now := time.time() - RETENTION_S + 3600.0, now))
    remove_old_records(tmp_path)
    assert list(tmp_path.iterdir()) == [new]
    remove_old_records(tmp_path / "nothing")


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a folder has no such mode")
def test_a_journal_that_others_could_change_is_not_read(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(UntrustedPlace):
        UploadJournal(tmp_path / "shared" / "x.json")


def test_another_file_or_place_has_another_journal():
    assert journal_name("a", 1) != journal_name("a", 2)
    assert journal_name("a", 1) == journal_name("a", 1)
