"""What is advised after a mistake: the command that was meant, whole, and nothing that was not."""

from __future__ import annotations

import errno
import shlex
import socket
import sys
from pathlib import Path

import pytest

from agent.cli.framework.command import run_command_line
from agent.cli.framework.hints import hold_hint, named, pasteable_hint, usual_hint
from agent.cli.framework.session import Session
from agent.cli.tree import root
from agent.config.write import set_default_profile, write_profile
from agent.daemon.control.socket import socket_folder
from agent.errors import BadAnswer, RateLimited
from agent.files.paths import state_dir
from agent.files.private_files import make_private_folder
from at.protocol.errors import LinkLost


@pytest.mark.parametrize(
    ("typed", "advised"),
    [
        # an option, or its value
        ("modem check --prt virtual:", "did you mean `cellagent modem check --port virtual:`?"),
        ("modem check --por=virtual:", "did you mean `cellagent modem check --port=virtual:`?"),
        ("provision run --exp 2 x", "did you mean `cellagent provision run --expect 2 x`?"),
        ("provision run -al x", "it has: --all, --expect, --security-tag, --certificate,"),
        ("modem jwt --key 1", "did you mean `cellagent modem jwt --key-type 1`?"),
        ("modem jwt --verbos", "did you mean `cellagent modem jwt --verbose`?"),
        ("provision migrate --all", "it has: --json, --profile, --verbose"),
        ("provision status --outcome=fialed", "did you mean `cellagent provision status --outcom"),
        ("provision report --by=stations", "mean `cellagent provision report --by=station`?"),
        ("provision run --tray 8x8 x", "profile: `cellagent config set provisioning.tray VALUE`"),
        ("provision run --label-pattern A x", "`cellagent config set provisioning.label_pattern"),
        ("modem at --tray 8x8", "it has: --timeout, --baud, --dialect, --terminator, --json,"),
        ("modem why --log kit.log", "did you mean `cellagent modem why kit.log`?"),
        ("modem why --log=kit.log", "did you mean `cellagent modem why kit.log`?"),
        ("modem check --options", "it has: --json, --profile, --port, --verbose"),
        ("modem check --port", "as in `cellagent modem check --port /dev/ttyACM0`"),
        ("modem check --verbose=3", "as in `cellagent modem check --port /dev/ttyACM0`"),
        ("hold sh -c true", "those of your own command come after --: `cellagent hold kit -- nrf"),
        ("modem check --point x", "it has: --json, --profile, --port, --verbose"),
        ("modem at --port a --port b AT", "`cellagent modem at AT --port a`"),
        ("provision status --limit 0", "as in `cellagent provision status --outcome failed`"),
        ("completion ksh", "did you mean `cellagent completion zsh`?"),
        ("completion", "as in `cellagent completion bash >> ~/.bashrc`"),
        # a command
        ("modem chek --port a", "did you mean `cellagent modem check --port a`?"),
        ("modem check x", "as in `cellagent modem check --port /dev/ttyACM0`"),
        ("config get kit.port", "did you mean `cellagent config show kit.port`?"),
        ("config ls", "did you mean `cellagent config list`?"),
        ("config rm kit.port", "did you mean `cellagent config unset kit.port`?"),
        ("observe event rm 3", "did you mean `cellagent observe event delete 3`?"),
        ("help modem", "did you mean `cellagent modem --help`?"),
        ("version", "did you mean `cellagent --version`?"),
        ("check --port a", "`cellagent modem check --port a` or `cellagent fota check --port a`?"),
        ("chekc --port a", "`cellagent modem check --port a` or `cellagent fota check --port a`?"),
        ("fota term x", "did you mean `cellagent modem term x`?"),
        ("provision doctor", "did you mean `cellagent doctor`?"),
        ("provision fota", "did you mean `cellagent fota`?"),
        ("list", "it has: ports, modem, console, scan,"),
        ("modem jot", "it has: check, why, on, off,"),
        ("fota jot", "it has: abandon, check, offer, pull, status"),
        ("fota jobs", "it has: abandon, check, offer, pull, status"),
        # the order
        ("--profile p modem check", "come after the command: `cellagent modem check --profile p`"),
        ("-v modem check", "come after the command: `cellagent modem check -v`"),
        ("modem --port=a check", "come after the command: `cellagent modem check --port=a`"),
        ("--profile p modem at -- --port", "`cellagent modem at --profile p -- --port`"),
        ("-v", "options come after the command; it has: ports, modem,"),
        ("provision --all run", "options come after the command; it has: plan, run, status,"),
    ],
)
def test_a_mistake_is_answered_with_the_command_that_was_meant(
    typed: str, advised: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["cellagent", *shlex.split(typed)])
    assert run_command_line(root) == 2
    said, _, hint = capsys.readouterr().err.partition("\n  try: ")
    assert said.startswith("cellagent: ")
    assert advised in hint
    assert "\n" not in hint.removesuffix("\n")


@pytest.mark.parametrize(
    ("typed", "there", "advised"),
    [
        ("one two", ["one two"], "did you mean `cellagent modem decode 'one two' --json`?"),
        ("one two three", ["one two three"], "cellagent modem decode 'one two three' --json`?"),
        ("one two three", ["one two"], "mean `cellagent modem decode 'one two' three --json`?"),
        ("one two", [], "`ls .` shows what is there"),
        ("one", [], "`ls .` shows what is there"),
    ],
)
def test_blanks_that_divided_a_path_are_seen_by_the_file_that_is_there(
    typed: str,
    there: list[str],
    advised: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in there:
        (tmp_path / name).touch()
    words = ["modem", "decode", *typed.split(), "--json"]
    monkeypatch.setattr(sys, "argv", ["cellagent", *words])
    assert run_command_line(root) == 2
    assert advised in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "hint", "message", "whole"),
    [
        ("a b", "`--x 1` does", "", "`cellagent a b --x 1` does"),
        ("a b --x 2", "`--x 1` does", "", "`cellagent a b --x 1` does"),
        ("a --x=2 b", "`--x 1` does", "", "`cellagent a b --x 1` does"),
        ("a --y -- c --x 2", "`--x 1`", "", "`cellagent a --y --x 1 -- c --x 2`"),
        ("a --take-over d", "`--take-over d --x`", "", "`cellagent a --take-over d --x`"),
        ("a --take-over d", "`--take-over e`", "", "`cellagent a --take-over d --take-over e`"),
        ("a --take-over", "`--take-over d`", "", "`cellagent a --take-over --take-over d`"),
        ("use pubic", "did you mean 'public'?", "'pubic'", "did you mean `cellagent use public`?"),
        ("a --b=no", "did you mean 'now'?", "no 'no'", "did you mean `cellagent a --b=now`?"),
        ("a --b=c=no", "did you mean 'c=yes'?", "'c=no'", "did you mean `cellagent a --b=c=yes`?"),
        ("use zz", "did you mean 'public'?", "'zz'", "did you mean `cellagent use public`?"),
        ("a /no/no", "did you mean 'yes'?", "no here", "did you mean 'yes'?"),
        ("a", "did you mean 'b'?", "nothing typed", "did you mean 'b'?"),
        (
            *("a", "", "kit.port: is wrong"),
            "`cellagent config set kit.port VALUE`, or `cellagent config unset kit.port`",
        ),
        ("a", "", "kit.nothing: is wrong", ""),
        ("a", "", "a key kit.port: is wrong", ""),
    ],
)
def test_a_hint_becomes_a_whole_command(
    typed: str, hint: str, message: str, whole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["cellagent", *typed.split()])
    assert pasteable_hint(hint, message, Session()) == whole


def test_a_key_to_set_is_that_of_the_kit_in_use() -> None:
    write_profile("lab", {"kits": {"left": {"port": "COM1"}, "right": {"port": "COM2"}}}, {})
    hint = "`cellagent config set kit.device_id ID`"
    for port, key in (("COM2", "kits.right.device_id"), ("COM9", "kit.device_id")):
        session = Session(profile_name="lab", port=port)
        assert session.profile.kit.port == port
        whole = f"`cellagent config set {key} ID --profile lab`"
        assert pasteable_hint(hint, "", session) == whole


@pytest.mark.parametrize("by", ["option", "environment", "board"])
def test_a_mistyped_kit_is_answered_with_the_one_that_the_profile_has(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_profile("lab", {"kits": {"left": {"port": "COM1"}, "right": {"port": "COM2"}}}, {})
    message, hint = "there is no port rigth", "is it plugged in?"
    session = Session(profile_name="lab", port="rigth" if by == "option" else None)
    monkeypatch.setenv("CELLAGENT_PORT", "rigth" if by == "environment" else "")
    words = ["rigth"] if by == "board" else ["--port", "rigth"]
    monkeypatch.setattr(sys, "argv", ["cellagent", "a", *words])
    assert pasteable_hint(hint, message, session) == hint  # the profile was not read
    assert session.loaded.name == "lab"
    whole = f"did you mean `{shlex.join(['cellagent', 'a', *words[:-1], 'right'])} --profile lab`?"
    assert pasteable_hint(hint, message, session) == whole
    assert pasteable_hint(hint, "there is no port COM3", session) == hint
    assert pasteable_hint(hint, "there is no port rightt", session) == hint  # nobody typed it


def test_a_hint_has_the_port_and_the_profile_of_the_command() -> None:
    check, login = "`cellagent modem check`", "`cellagent login api_key`"
    assert pasteable_hint(check, "", Session()) == check
    given = Session(port="COM3", profile_name="lab")
    assert pasteable_hint(check, "", given) == "`cellagent modem check --profile lab --port COM3`"
    assert pasteable_hint(check, "", given, ["COM4"]) == (
        "`cellagent modem check --port COM4 --profile lab`"
    )
    assert pasteable_hint(login, "", Session()) == login
    write_profile("the lab", {}, {})
    set_default_profile("the lab")
    reads = Session()
    assert reads.loaded.name == "the lab"
    assert pasteable_hint(login, "", reads) == "`cellagent login api_key --profile 'the lab'`"
    for said in ("`cellagent login --profile x`", "`cellagent config set a b --profile x`"):
        assert pasteable_hint(said, "", reads) == said
    assert named("the profile, the profiles", reads) == "profile the lab, the profiles"
    assert named("in the profile", Session()) == "in the profile"


def test_what_brings_no_hint_of_its_own_has_the_usual_one(tmp_path: Path) -> None:
    assert usual_hint(LinkLost("gone")) == "is it still plugged in? `cellagent ports` lists what is"
    assert usual_hint(BadAnswer("no JSON")) == "`cellagent doctor` checks the way to the service"
    assert "asks to wait 5 s, until" in usual_hint(RateLimited("429", retry_after_s=5))
    assert usual_hint(RateLimited("429")) == ""
    assert usual_hint(ValueError("x")) == ""
    folder = tmp_path / "my kits"
    folder.mkdir()
    for number in (errno.EACCES, errno.EPERM):
        shows = usual_hint(OSError(number, "", str(folder)))
        assert shows == f"`ls -ld '{folder}'` shows whose it is and what this user may do there"
    # As for a file in a home that this user may not enter.
    hidden = OSError(errno.EACCES, "", str(folder / ".config" / "config.toml"))
    assert usual_hint(hidden).startswith(f"`ls -ld '{folder}'` shows whose it is")
    folder.rmdir()
    assert usual_hint(OSError(errno.ENOTDIR, "", str(folder))).startswith(f"`ls {tmp_path}` shows")
    assert usual_hint(OSError(errno.EACCES, "")) == ""
    assert usual_hint(OSError(errno.ECONNREFUSED, "", str(folder))) == ""


@pytest.mark.skipif(sys.platform == "win32", reason="its agents listen on loopback ports")
def test_an_agent_may_have_the_port_where_one_listens() -> None:
    assert hold_hint() == ""
    folder = socket_folder(state_dir())
    make_private_folder(folder)
    with socket.socket(socket.AF_UNIX) as of_an_agent:
        of_an_agent.bind(str(folder / "lab.sock"))
        of_an_agent.listen()
        assert "`cellagent hold -- COMMAND` lets COMMAND have it" in hold_hint()
        folder.chmod(0o777)  # anybody may have put it there
        assert hold_hint() == ""
        folder.chmod(0o700)
    assert hold_hint() == "", "one that was killed leaves its socket"
