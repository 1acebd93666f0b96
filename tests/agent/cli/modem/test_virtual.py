"""`cellagent modem virtual`: what it refuses, its list of faults, and its end with CMD."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from at.virtual.faults import FAULTS
from tests.support.commands.command_line import completed


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "either --pty PATH or --tcp HOST:PORT\n  try: `cellagent modem virtual --pty"),
        (("--pty", "kit", "--tcp", "127.0.0.1:0"), 2, "either --pty PATH or --tcp HOST:PORT"),
        (("--tcp", "127.0.0.1:many"), 2, "not HOST:PORT"),
        (("--tcp", f"127.0.0.1:{'9' * 5000}"), 2, "not HOST:PORT"),
        (("--tcp", "0.0.0.0:0"), 4, "--tcp 0.0.0.0:0 --allow-remote`"),
        (("--tcp", ":0", "--model", "nrf52"), 2, "nrf52"),
        (("--tcp", ":0", "--firmware", "2.0"), 2, "no version of a firmware: '2.0'"),
        (("--tcp", ":0", "--provisioning", "http://127.0.0.1:1"), 2, "at-host has no provisioning"),
        (("--tcp", ":0", "--provisioning", "http://[::1"), 2, "no URL of a stand-in"),
        (("--tcp", ":0", "--provisioning", "http://192.0.2.1:80"), 2, "no URL of a stand-in"),
    ],
)
def test_a_wrong_call_says_why(arguments: tuple[str, ...], code: int, says: str) -> None:
    done = completed("modem", "virtual", *arguments)
    assert done.returncode == code, done.stderr
    assert says in done.stderr


def test_every_fault_is_listed_for_a_person_and_for_a_program() -> None:
    people = completed("modem", "virtual", "--fault", "help").stdout.splitlines()
    assert people[0].startswith("--fault NAME[=ARG]")
    named = [line for line in people[2:] if line[0] != " "]  # the others go on with one
    assert [line.split()[0].partition("=")[0] for line in named] == list(FAULTS)
    assert max(map(len, people)) <= 80
    programs = completed("modem", "virtual", "--fault", "help", "--json").stdout.splitlines()
    assert [json.loads(line)["fault"] for line in programs] == list(FAULTS)


def test_it_ends_with_the_exit_code_of_the_program_that_it_serves(tmp_path: Path) -> None:
    program = "import os, sys; sys.exit(7 if os.environ['CELLAGENT_PORT'] else 8)"
    done = completed(
        *("modem", "virtual", "--pty", str(tmp_path / "kit"), "--"),
        *(sys.executable, "-c", program),
    )
    assert done.returncode == 7
    assert json.loads(done.stdout)["port"] == str(tmp_path / "kit")
    assert not (tmp_path / "kit").is_symlink()


def test_a_program_that_goes_to_another_folder_finds_the_kit_all_the_same(tmp_path: Path) -> None:
    """As a test does in a folder of its own."""
    told = "import os; os.chdir('/'); print(os.path.exists(os.environ['CELLAGENT_PORT']))"
    serve = (
        "modem",
        "virtual",
        "--pty",
        "kit",
        "--console",
        "log",
        "--",
        sys.executable,
        "-c",
        told,
    )
    done = completed(*serve, folder=tmp_path)
    ready, found = done.stdout.splitlines()
    assert found == "True"
    ports = {"port": str(tmp_path / "kit"), "console": str(tmp_path / "log")}
    assert json.loads(ready) == {"ready": True, **ports}


def test_an_identity_key_is_written_over_a_former_one_alone(tmp_path: Path) -> None:
    """The file of a real kit's key, named by who takes the option for one that reads it, stays."""
    theirs, ours = tmp_path / "kit.key", tmp_path / "kit.pem"
    theirs.write_text("-----BEGIN PRIVATE KEY-----\n")
    for file, code in ((theirs, 4), (ours, 0), (ours, 0)):
        done = completed(
            *("modem", "virtual", "--pty", str(tmp_path / "kit"), "--identity-key", str(file)),
            *("--", "true"),
        )
        assert done.returncode == code, done.stderr
    assert theirs.read_text() == "-----BEGIN PRIVATE KEY-----\n"
