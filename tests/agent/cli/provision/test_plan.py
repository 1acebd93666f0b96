"""`cellagent provision plan`: the steps that a board still needs, for people and for programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agent.config.write import set_value, write_profile
from tests.support.commands.command_line import cellagent, completed

NO_SERVICE = ("--registration", "none", "--no-proof")


def test_a_fresh_kit_needs_a_key_and_the_plan_writes_nothing(tmp_path: Path) -> None:
    state = tmp_path / "kit.state"
    port = f"virtual:{state}"
    plan = completed("provision", "plan", port, *NO_SERVICE, "--json")
    assert plan.returncode == 0, plan.stderr
    board = json.loads(plan.stdout)
    assert [step["step"] for step in board["steps"]] == ["gate", "identity", "key", "verify"]
    assert (board["writes"], board["refusal"], board["exit"]) == (1, None, 0)
    assert "what the boards attest is not checked: `cellagent config set" in plan.stderr
    again = json.loads(completed("provision", "plan", port, *NO_SERVICE, "--json").stdout)
    assert again["writes"] == 1


def test_a_person_sees_numbered_steps_and_the_number_of_writes(tmp_path: Path) -> None:
    port = f"virtual:{tmp_path / 'kit.state'}"
    lines = completed("provision", "plan", port, *NO_SERVICE).stdout.splitlines()
    assert lines[0].startswith(f"{port}: ")
    assert [line.split()[0] for line in lines[1:-1]] == ["1.", "2.", "3.", "4."]
    assert lines[-1] == "  1 credential write"


def test_the_board_is_the_kit_of_the_profile_unless_others_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = (f"virtual:{tmp_path / name}" for name in ("own", "other"))
    set_value("kit.port", own, profile="custom")
    for named, planned in (((), own), ((other,), other), (("--port", other), other)):
        plan = completed("provision", "plan", *named, *NO_SERVICE, "--json")
        assert json.loads(plan.stdout)["board"]["port"] == planned, plan.stderr
    everything = completed("provision", "plan", "--all", *NO_SERVICE)
    assert (everything.returncode, own in everything.stderr) == (3, False)
    assert "no board was found: `cellagent ports`" in everything.stderr
    monkeypatch.setenv("CELLAGENT_PORT", other)
    everything = completed("provision", "plan", "--all", *NO_SERVICE)
    assert (everything.returncode, other in everything.stderr) == (3, False)
    monkeypatch.delenv("CELLAGENT_PORT")
    set_value("kit.port", "", profile="custom")
    for name in ("left", "right"):
        set_value(f"kits.{name}.port", f"virtual:{tmp_path / name}", profile="custom")
    several = completed("provision", "plan", *NO_SERVICE)
    assert (several.returncode, "name the boards, or say --all" in several.stderr) == (2, True)
    by_option = completed("provision", "plan", "--port", "right", *NO_SERVICE, "--json")
    monkeypatch.setenv("CELLAGENT_PORT", "right")
    by_environment = completed("provision", "plan", *NO_SERVICE, "--json")
    for plan in (by_option, by_environment):
        assert json.loads(plan.stdout)["board"]["port"] == f"virtual:{tmp_path / 'right'}"


def test_old_firmware_is_refused_in_the_plan_as_in_a_run() -> None:
    plan = completed(
        *("modem", "virtual", "--tcp", "127.0.0.1:0", "--model", "nrf9160"),
        *("--firmware", "1.2.7", "--", sys.executable, "-m", "agent"),
        *("provision", "plan", *NO_SERVICE, "--json"),
    )
    board = json.loads(plan.stdout.splitlines()[-1])
    assert "1.2.7" in board["refusal"]
    assert (board["writes"], plan.returncode) == (0, 4)


def test_another_number_of_boards_than_expected_is_refused() -> None:
    plan = completed("provision", "plan", "virtual:", *NO_SERVICE, "--expect", "2")
    assert plan.returncode == 4
    assert "1 board found, 2 expected" in plan.stderr


async def test_each_port_that_is_named_is_a_board_however_it_is_named(private_home: Path) -> None:
    """The last one was the only one, and the others were left out in silence."""
    both = await cellagent("provision", "plan", *NO_SERVICE, "/dev/none1", "--port", "/dev/none2")
    assert "/dev/none1" in both.out
    assert "/dev/none2" in both.out
    twice = await cellagent("provision", "plan", "--port", "/dev/none1", "--port", "/dev/none2")
    assert (twice.code, twice.out) == (2, "")
    assert "--port names 2 kits: /dev/none1, /dev/none2" in twice.err
    assert "try: `cellagent provision plan --port /dev/none1`" in twice.err
    blank = await cellagent("provision", "plan", "--port", "/dev/no kit", "--port", "/dev/none2")
    assert "try: `cellagent provision plan --port '/dev/no kit'`" in blank.err


async def test_a_board_may_be_named_as_a_kit_of_the_table(private_home: Path) -> None:
    """The Tab key offers these names, and the run looked for a port of such a name."""
    write_profile(
        "lab", {"kits": {"left": {"port": "/dev/none1"}, "right": {"port": "/dev/none2"}}}, {}
    )
    plan = await cellagent("provision", "plan", "left", "right", *NO_SERVICE, "--profile", "lab")
    assert "there is no port /dev/none1" in plan.out
    assert "there is no port /dev/none2" in plan.out


async def test_a_plan_says_into_which_project_a_board_comes(private_home: Path) -> None:
    account = {"organization": "acme", "project": "kits"}
    hosts = {"device_cloud": "http://127.0.0.1:9"}
    settings = {"registration": "attestation", "into": "project"}
    values = {"hosts": hosts, "account": account, "provisioning": settings}
    write_profile("lab", values, {"organization_token": "oat_0123456789"})
    plan = await cellagent("provision", "plan", "virtual:", "--profile", "lab", "--json")
    [register] = [one for one in plan.lines[0]["steps"] if one["step"] == "register"]
    assert register["words"].startswith("registration by attestation into acme/kits, which gives")
