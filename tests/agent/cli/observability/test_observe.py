"""`cellagent observe` as it is run, against the stand-in."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import cellagent, private_text
from standin import StandIn


@pytest.mark.contract("O5.6", "O5.5")
async def test_resources_are_created_listed_changed_and_deleted(
    standin_profile: str, standin: StandIn
) -> None:
    assert (await cellagent("observe", "whoami")).out.startswith(standin.credentials["user_email"])
    made = await cellagent(
        "observe", "cohort", "create", "--field", "slug=beta", "--field", "name=B"
    )
    assert made.code == 0
    await cellagent("observe", "cohort", "update", "beta", "--from", "-", stdin='{"name": "B 2"}')
    shown = await cellagent("observe", "cohort", "show", "beta", "--json")
    assert shown.lines[0]["name"] == "B 2"
    listing = await cellagent("observe", "cohort", "list", "--sort", "-slug", "--json")
    assert "beta" in [cohort["slug"] for cohort in listing.lines]
    assert (await cellagent("observe", "cohort", "delete", "beta")).code == 0
    gone = await cellagent("observe", "cohort", "show", "beta", "--json")
    assert (gone.code, gone.lines[-1]["error"]["kind"]) == (1, "not-found")
    key = await cellagent("observe", "project-key", "--json")
    assert key.lines == [{"project_key": standin.credentials["project_key"]}]


@pytest.mark.contract("O5.5")
async def test_a_new_user_key_is_kept_and_not_shown(
    standin_profile: str, private_home: Path
) -> None:
    done = await cellagent("observe", "user-key", "--cycle", "--json")
    assert done.code == 0
    text = private_text(done.lines[0]["file"])
    kept = next(line for line in text.splitlines() if line.startswith("user_api_key"))
    assert kept.split('"')[1] not in done.out + done.err
    assert (await cellagent("observe", "whoami")).code == 0
