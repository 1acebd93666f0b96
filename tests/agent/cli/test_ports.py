"""`cellagent ports` lists what is plugged in and what is configured, and asks only those."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli.ports import as_json
from agent.config.write import write_profile
from at.discovery import UsbPort, survey
from tests.support.commands.command_line import completed as cellagent
from tests.support.commands.command_line import objects

AGENT = [sys.executable, "-m", "agent"]


@pytest.mark.contract("C8")
def test_a_kit_that_the_environment_names_is_asked_and_told(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    ended = subprocess.run(
        [*AGENT, "modem", "virtual", "--pty", kit, "--", *AGENT, "ports", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    [ours] = [one for one in found if one.get("port") == str(kit) and "role" in one]
    assert set(ours) == {
        "port", "kit", "role", "answers", "dialect", "terminator", "baud", "firmware", "imei",
        "reason", "try",
    }  # fmt: skip
    assert (ours["role"], ours["answers"], ours["dialect"]) == ("at", True, "at-host")
    others = [one for one in found if "role" in one and one is not ours]
    assert not [one for one in others if one["answers"]]


def test_each_kit_of_the_profile_s_table_is_asked(tmp_path: Path) -> None:
    ports = [str(tmp_path / f"kit-{number}") for number in (1, 2)]
    write_profile("lab", {"kits": {Path(port).name: {"port": port} for port in ports}}, {})
    ask = [*AGENT, "ports", "--json", "--profile", "lab"]
    served = [*AGENT, "modem", "virtual", "--count", "2", "--pty", str(tmp_path / "kit"), "--"]
    ended = subprocess.run(
        [*served, "env", "-u", "CELLAGENT_PORT", *ask], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = [one for one in map(json.loads, ended.stdout.splitlines()) if one.get("answers")]
    assert [one["port"] for one in found] == ports


@pytest.mark.contract("C8")
def test_a_port_that_is_not_there_is_told_with_exit_code_3(tmp_path: Path) -> None:
    ended = subprocess.run(
        [*AGENT, "ports", "--json", "--port", tmp_path / "nothing"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 3
    [told] = [json.loads(line) for line in ended.stdout.splitlines()]
    assert told["answers"] is False
    assert told["reason"]


def test_ports_over_a_pty_have_the_fixed_shape(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    inner = [sys.executable, "-m", "agent", "ports", "--json", "--port", str(kit)]
    run = cellagent("modem", "virtual", "--pty", str(kit), "--", *inner)
    ready, port = objects(run)
    assert ready["ready"] is True
    assert list(port) == [
        *("port", "kit", "role", "answers", "dialect", "terminator", "baud"),
        *("firmware", "imei", "reason", "try"),
    ]
    assert (port["answers"], port["role"], port["kit"]) == (True, "at", None)
    assert run.returncode == 0


@pytest.mark.contract("C8")
async def test_a_port_that_was_not_probed_says_what_to_try() -> None:
    stranger = UsbPort("/dev/no-kit", 0x0403, 0x6001, "A1")
    [report] = await survey(listing=lambda: [stranger])
    told = as_json(report)
    assert told["try"] == "`cellagent ports --port /dev/no-kit`, or `cellagent ports --probe-all`"
    assert told["answers"] is False
    [headset] = await survey(listing=lambda: [UsbPort("/dev/cu.My headset")])
    assert "`cellagent ports --port '/dev/cu.My headset'`" in as_json(headset)["try"]
