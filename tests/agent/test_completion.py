"""Each shell's completion answers with our commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.shell_completion import shell_complete

from agent.cli.tree import root
from at.ports.usb import UsbPort


def complete(instruction: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "agent"],
        env={**os.environ, "_CELLAGENT_COMPLETE": instruction, **environment},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def test_bash_completes_a_command_by_its_beginning() -> None:
    answer = complete("bash_complete", COMP_WORDS="cellagent pro", COMP_CWORD="1")
    assert answer.split() == ["plain,provision"]


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("config set provisioning.registration p", "plain,public-key"),
        ("config set credentials.keyring t", "plain,true"),
        ("config set provisioning.certificate_days 3", "file,3"),
        ("config set hosts.ca_file ca", "file,ca"),
        ("config set no.such x", "file,x"),
        ("config set kit.port /dev/ttyACM", "plain,/dev/ttyACM0 plain,/dev/ttyACM1"),
        ("modem check --port /dev/ttyACM", "plain,/dev/ttyACM0 plain,/dev/ttyACM1"),
        ("provision run x /dev/ttyACM", "plain,/dev/ttyACM0 plain,/dev/ttyACM1"),
        ("provision run /tmp/ki", "file,/tmp/ki"),
    ],
)
def test_a_port_and_a_value_of_the_profile_are_completed(
    typed: str, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plugged = [UsbPort("/dev/ttyACM0"), UsbPort("/dev/ttyACM1"), UsbPort("/dev/ttyUSB0")]
    monkeypatch.setattr("at.ports.usb.system_ports", lambda: plugged)
    monkeypatch.setenv("COMP_WORDS", f"cellagent {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
    assert shell_complete(root, {}, "cellagent", "_CELLAGENT_COMPLETE", "bash_complete") == 0
    assert capsys.readouterr().out.split() == answer.split()


def test_powershell_completes_a_command_by_its_beginning() -> None:
    answer = complete("powershell_complete", COMP_WORDS="cellagent pro", COMP_WORD="pro")
    assert [line.split("\t")[0] for line in answer.splitlines()] == ["provision"]


def test_powershell_is_left_to_look_for_files() -> None:
    answer = complete("powershell_complete", COMP_WORDS="cellagent modem decode ca", COMP_WORD="ca")
    assert not answer.strip()


@pytest.mark.parametrize(
    ("shell", "words", "current", "answer"),
    [
        ("bash", "--fault = no-si", "5", "plain,no-sim"),  # as bash divides it
        ("fish", "--fault=no-si", "--fault=no-si", "plain,--fault=no-sim"),
        ("powershell", "--fault=no-si", "--fault=no-si", "--fault=no-sim\t"),
    ],
)
def test_a_value_behind_an_equals_sign_is_completed_and_its_option_stays(
    shell: str, words: str, current: str, answer: str
) -> None:
    asked = {"COMP_WORDS": f"cellagent modem virtual {words}"}
    asked["COMP_WORD" if shell == "powershell" else "COMP_CWORD"] = current
    # The older click writes a line each for fish, which its own script reads.
    assert complete(f"{shell}_complete", **asked).replace("\n", ",").startswith(f"{answer},")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_the_script_names_our_program(shell: str) -> None:
    script = subprocess.run(
        [sys.executable, "-m", "agent", "completion", shell],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "cellagent" in script
    told = subprocess.run(
        [sys.executable, "-m", "agent", "completion", shell, "--json"],
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert json.loads(told) == {"shell": shell, "script": script}
