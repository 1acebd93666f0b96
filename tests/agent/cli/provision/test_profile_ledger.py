"""When a command opens its ledger, and when it makes one: both kinds of ledger."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from agent.cli.provision.profile_ledger import early_ledger
from agent.config.load import load
from agent.config.write import set_value
from agent.provisioning.ledger import open_ledger
from agent.provisioning.ledger.postgresql import PostgresqlDatabase
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import Done, cellagent
from tests.support.provisioning.tray import tray_profile


def is_made(ledger: str) -> bool:
    """Return whether a server has tables of a ledger, or there is its file."""
    if "://" not in ledger:
        return Path(ledger).exists()
    with closing(PostgresqlDatabase(ledger, "")) as database:
        return database.version() is not None


async def provision(*arguments: str, **environment: str) -> Done:
    return await cellagent("provision", *arguments, environment=environment)


async def test_a_shared_ledger_is_open_before_the_command_has_checked_what_is_asked(
    shared_ledger: str,
) -> None:
    open_ledger(shared_ledger, "one").close()
    set_value("provisioning.ledger", shared_ledger, profile="far")
    with early_ledger(load("far")) as ledger:
        await ledger.opened()
    ledger.close()


async def test_the_tables_of_a_new_ledger_are_made_once_the_command_has_checked_what_is_asked(
    tmp_path: Path, ledger: str, caplog: pytest.LogCaptureFixture
) -> None:
    set_value("provisioning.ledger", ledger or str(tmp_path / "new.sqlite"), profile="new")
    with early_ledger(load("new")) as early:
        assert (await provision("status", "--profile", "new")).code == 0  # the early one has looked
        assert not early.is_open
    await early.opened()
    early.close()
    assert "the ledger is new, and knows the key of no board" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "code", "kind"),
    [(["--expect", "2"], 4, "refused"), (["--labels", "/dev/null"], 1, "folder-unusable")],
)
async def test_nothing_of_a_ledger_is_made_where_the_command_is_refused(
    standin: StandIn, tmp_path: Path, ledger: str, wrong: list[str], code: int, kind: str
) -> None:
    address = ledger or str(tmp_path / "new.sqlite")
    tray_profile(standin, tmp_path, ledger=address)
    refused = await provision("run", "/dev/ttyACM0", *wrong, "--json")
    assert (refused.code, refused.lines[-1]["error"]["kind"]) == (code, kind)
    assert not is_made(address)
