"""How every command ends: its exit code, its error, and no secret in either."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli import tree
from agent.cli.framework.command import OfflineCommand, agent_command
from agent.cli.framework.session import Session
from agent.cli.main import main
from agent.cli.tree import LazyGroup
from agent.config.write import set_default_profile, write_profile
from agent.standin.device_cloud import seed
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import Done, cellagent
from tests.support.harness import virtual_time


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("observe", "event", "create", "--field", "a=1"), 2, "report event"),
        (("-v",), 2, "options come after the command; it has: ports, modem"),
        (("observe", "trace", "create", "--field", "a=1"), 2, "report coredump FILE`"),
        (("observe", "release", "show", "1.2"), 2, "Semantic Version"),
        (("observe", "event", "list", "--filter", "since=2026-01-01"), 2, "not a valid time"),
        (("observe", "cohort", "create"), 2, "no fields"),
        (("observe", "cohort", "create", "--field", "x"), 2, "NAME=VALUE"),
        (("observe", "cohort", "create", "--from", "-"), 2, "no JSON"),
        (("device", "write", seed.BLE, "nope", "00"), 1, "no characteristic"),
        (("device", "write", seed.BLE, seed.LED_CHARACTERISTIC, "256,0"), 2, "no bytes"),
        (("device", "show", ".."), 2, "cannot be a device id"),
        (("device", "show", "x", "--profile", "smi"), 2, "`cellagent device show x --profile sim`"),
        (("device", "list", "--transform", "{{"), 1, "400"),
        (("device", "tag", "x", "caf\udce9"), 2, r"'caf\udce9' is no text in UTF-8"),
        (("config", "set", "kit.slot", "caf\udce9"), 2, "is no text in UTF-8"),
        (("provision", "status", "caf\udce9"), 2, "is no text in UTF-8"),
    ],
)
async def test_a_mistake_ends_with_its_code_and_says_what_to_do(
    standin_profile: str, arguments: tuple[str, ...], code: int, named: str
) -> None:
    done = await cellagent(*arguments)
    assert done.code == code
    assert named in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("words", ["modem", "report event"])
async def test_an_example_is_one_line_in_a_narrow_terminal_too(words: str) -> None:
    done = await cellagent(*words.split(), "--help", environment={"COLUMNS": "40"})
    assert done.out.splitlines()[-1].startswith(f"  Example: cellagent {words} ")


@pytest.mark.parametrize(
    "words",
    ["modem why", "modem import", "modem decode", "modem replay --tcp localhost:0",
     "report coredump", "fota offer", "assist decode", "device onboard kit-1"],
)  # fmt: skip
async def test_a_file_that_is_not_there_is_wrong_usage_and_its_folder_can_be_listed(
    words: str, tmp_path: Path
) -> None:
    for absent in (tmp_path / "absent", tmp_path / "no" / "such" / "folder"):
        done = await cellagent(*words.split(), str(absent))
        assert (done.code, f"try: `ls {tmp_path}` shows what is there" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("typed", "line", "options"),
    [(["+CEREG: 5,1"], "'+CEREG: 5,1'", ""), (["%XSIM:", "1", "-v"], "'%XSIM: 1'", " -v")],
)
async def test_a_line_in_place_of_a_file_is_given_on_standard_input(
    typed: list[str], line: str, options: str
) -> None:
    done = await cellagent("modem", "decode", *typed)
    assert done.code == 2
    meant = f"`echo {line} | cellagent modem decode -{options}`"
    assert f"try: a line comes on standard input: {meant}" in done.err


@pytest.mark.parametrize(
    "words", ["report event --from=AT+CFUN?", "report event --from AT+X", "report coredump AT+X"]
)
async def test_no_line_is_given_to_what_reads_no_standard_input(words: str) -> None:
    done = await cellagent(*words.split())
    assert (done.code, "try: `ls .` shows what is there" in done.err) == (2, True)


async def test_a_service_that_cannot_be_reached_is_exit_6_and_a_bad_key_exit_5(
    standin_profile: str,
) -> None:
    nobody = {"CELLAGENT_API_KEY": "no-such-key-of-the-test"}
    refused = await cellagent("device", "account", "--json", environment=nobody)
    assert (refused.code, refused.lines[-1]["error"]["kind"]) == (5, "credentials")
    write_profile("dead", {"hosts": {"device_cloud": "http://127.0.0.1:1"}}, {"api_key": "abcdef"})
    dead = await cellagent("device", "account", "--profile", "dead", "--json")
    assert (dead.code, dead.lines[-1]["error"]["kind"]) == (6, "unreachable")
    assert (
        "`cellagent cloud serve --listen 127.0.0.1:1 --write-profile dead`"
        in dead.lines[-1]["error"]["try"]
    )


@pytest.mark.parametrize("verbosity", [(), ("-v",), ("--json", "-vvv")])
async def test_no_secret_is_shown_at_any_verbosity(
    standin_profile: str, standin: StandIn, verbosity: tuple[str, ...]
) -> None:
    secrets = {
        name: value
        for name, value in standin.credentials.items()
        if name not in {"user_email", "service_key_file"}
    }
    wrong = {"CELLAGENT_API_KEY": "canary-wrong-key-0123", "CELLAGENT_ORG_TOKEN": "oat_canary-0123"}
    runs: list[Done] = []
    for arguments in (
        ("device", "list"),
        ("device", "show", "no such device"),
        ("observe", "cohort", "list"),
        ("config", "show", "--all"),
    ):
        runs.append(await cellagent(*arguments, *verbosity))
        runs.append(await cellagent(*arguments, *verbosity, environment=wrong))
    canaries = [*secrets.values(), *wrong.values()]
    for run in runs:
        for canary in canaries:
            assert canary not in run.out + run.err
        assert "Traceback" not in run.err
    if "-vvv" in verbosity:
        assert any("DEBUG" in run.err for run in runs)


async def test_a_message_names_the_profile_that_it_speaks_of_and_how_it_is_changed(
    private_home: Path,
) -> None:
    kits = {"left": {"port": "COM1"}, "right": {"port": "COM2"}}
    write_profile("lab", {"kits": kits, "location": {"wifi": "none"}}, {})
    set_default_profile("lab")
    assert "profile lab has 2 kits" in (await cellagent("modem", "signal")).err
    off = (await cellagent("scan", "wifi")).err
    assert "switched off in profile lab" in off
    assert "`cellagent config set location.wifi auto --profile lab`" in off


@pytest.mark.parametrize("group", [(), ("modem",), ("observe", "event")])
async def test_a_group_alone_is_answered_with_its_help_and_nothing_else(
    private_home: Path, group: tuple[str, ...]
) -> None:
    alone, asked = await cellagent(*group), await cellagent(*group, "--help")
    assert (alone.code, alone.err.strip()) == (2, asked.out.strip())


async def test_help_as_a_command_is_answered_with_the_option(private_home: Path) -> None:
    done = await cellagent("help", "modem", "at")
    assert (done.code, "did you mean `cellagent modem at --help`?" in done.err) == (2, True)
    assert "did you mean `cellagent modem --help`?" in (await cellagent("modem", "help")).err


@pytest.mark.parametrize(("lasts_s", "objects"), [(0.5, 100_000), (1.5, 2000)])
def test_a_command_that_lasts_collects_garbage_and_a_short_one_does_not(
    monkeypatch: pytest.MonkeyPatch, lasts_s: float, objects: int
) -> None:
    usual = gc.get_threshold()
    monkeypatch.setattr(sys, "argv", ["cellagent", "lasting"])
    monkeypatch.setattr(asyncio, "run", virtual_time.run)
    monkeypatch.setattr(gc, "freeze", lambda: None)  # this process goes on
    found = []

    @agent_command("cellagent lasting", OfflineCommand)
    async def lasting(_session: Session) -> None:
        await asyncio.sleep(lasts_s)
        found.append(gc.get_threshold()[0])

    monkeypatch.setattr(tree, "root", LazyGroup(table={"lasting": lasting}))
    try:
        with pytest.raises(SystemExit):
            main()
    finally:
        gc.set_threshold(*usual)
    assert found == [objects]


@pytest.mark.parametrize(
    ("gone", "code", "arguments"),
    [
        ("stderr", 2, ("status", "no-such-board")),
        ("stdout", 3, ("plan", "/dev/no-such-port", "--registration", "none", "--no-proof")),
    ],
)
def test_a_failure_keeps_its_exit_code_where_nobody_reads_what_it_says(
    private_home: Path, gone: str, code: int, arguments: tuple[str, ...]
) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, gone: writes}
    command = [sys.executable, "-m", "agent", "provision", *arguments]
    done = subprocess.run(command, check=False, timeout=60, **streams)
    os.close(writes)
    assert done.returncode == code
    assert b"Traceback" not in (done.stderr or b"")


def test_a_line_is_in_a_pipe_before_the_next_one_is_waited_for() -> None:
    """`modem signal --watch 5 | tee signal.log` showed nothing for half an hour."""
    words = ("modem", "signal", "--watch", "3600", "--port", "virtual:")
    with subprocess.Popen([sys.executable, "-m", "agent", *words], stdout=subprocess.PIPE) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline().startswith(b"operator")
        watch.terminate()


async def test_a_path_that_its_blanks_divided_is_offered_in_quotes(tmp_path: Path) -> None:
    log = tmp_path / "my kit.log"
    log.touch()
    begin, end = str(log).split(" ")
    done = await cellagent("modem", "import", begin, end, "--output", "x")
    assert done.code == 2
    assert f"did you mean `cellagent modem import '{log}' --output x`?" in done.err
