"""`cellagent provision export`: the ledger for people and for programs."""

from __future__ import annotations

import csv
import io
import json

import pytest
from command_line import completed

from agent.provisioning.exports import COLUMNS


@pytest.mark.usefixtures("two_boards")
def test_an_export_holds_the_boards_of_one_outcome_in_each_form() -> None:
    table = completed("provision", "export", "--outcome", "done").stdout
    assert [row["device_id"] for row in csv.DictReader(io.StringIO(table))] == ["nrf-11a"]
    objects = completed("provision", "export", "--as", "json").stdout.splitlines()
    assert {json.loads(line)["outcome"] for line in objects} == {"done", "refused"}
    for form in ("bulk", "nordic"):
        done = completed("provision", "export", "--as", form)
        assert done.returncode == 0, done.stderr


def test_an_empty_ledger_is_a_heading_alone() -> None:
    heading = completed("provision", "export").stdout.splitlines()
    assert [len(heading), heading[0].split(",")[0] in COLUMNS] == [1, True]
