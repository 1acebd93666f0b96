"""`cellagent login`, with a stand-in as the service."""

from __future__ import annotations

import asyncio
import os
import pty
import shlex
import socket
import sys
from pathlib import Path

import pytest

from agent.config.write import set_default_profile, write_profile
from agent.files.private_files import make_private_folder
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import cellagent, private_text
from tests.support.commands.on_a_terminal import take_terminal


def profile_of(standin: StandIn) -> None:
    """Write a profile of the stand-in that holds no secret."""
    urls = dict.fromkeys(("device_cloud", "api"), standin.urls["device_cloud"])
    write_profile("lab", {"hosts": urls, "account": {"organization": "acme"}}, {})
    set_default_profile("lab")


async def test_what_is_accepted_is_kept_and_what_works_now_is_said(
    standin: StandIn, private_home: Path
) -> None:
    profile_of(standin)
    done = await cellagent("login", "api_key", stdin=standin.credentials["api_key"] + "\n")
    assert done.code == 0, done.err
    assert "cellagent device list --profile lab" in done.out
    assert standin.credentials["api_key"] not in done.out + done.err
    (path,) = (await cellagent("config", "path", "--json")).lines
    assert standin.credentials["api_key"] in private_text(path["secrets"])
    assert (await cellagent("device", "list")).code == 0


async def test_what_is_refused_is_not_kept(standin: StandIn, private_home: Path) -> None:
    profile_of(standin)
    done = await cellagent("login", "--json", stdin="api_key=canary-no-key-0001\n")
    (told,) = done.lines
    assert (done.code, told["accepted"], told["kept"]) == (5, False, None)
    assert "canary" not in done.out + done.err
    (shown,) = (await cellagent("config", "show", "api_key", "--json")).lines
    assert not shown["set"]


async def test_what_cannot_be_tried_is_kept_and_told(private_home: Path) -> None:
    write_profile("lab", {"hosts": {"device_cloud": "http://127.0.0.1:9"}}, {})
    words = ("login", "api_key", "--profile", "lab")
    done = await cellagent(*words, "--json", stdin="canary-a-key-0001\n")
    (told,) = done.lines
    assert (done.code, told["accepted"]) == (6, None)
    assert told["kept"]
    assert "canary" not in done.out + done.err
    done = await cellagent(*words, stdin="canary-a-key-0002\n")
    assert "the address is hosts.device_cloud of profile lab" in done.out
    assert "  to try it: cellagent device list --profile lab" in done.out
    assert "now works" not in done.out


async def test_a_running_agent_is_told_to_need_a_reload_for_what_is_kept(
    standin: StandIn, private_home: Path
) -> None:
    profile_of(standin)
    (path,) = (await cellagent("config", "path", "--json")).lines
    run = Path(path["state"], "run")
    make_private_folder(run)
    with socket.socket(socket.AF_UNIX) as of_an_agent:
        of_an_agent.bind(str(run / "lab.sock"))
        of_an_agent.listen()
        for key, code in ((standin.credentials["api_key"], 0), ("canary-no-key-0001", 5)):
            done = await cellagent("login", "api_key", stdin=key)
            told = "`cellagent reload --profile lab`" in done.err
            assert (done.code, told) == (code, code == 0), done.err


async def test_a_profile_without_services_and_lines_that_are_no_secrets_are_named(
    standin: StandIn, private_home: Path
) -> None:
    nothing = await cellagent("login", stdin="api_key=x")
    assert (nothing.code, "cellagent login --profile public" in nothing.err) == (2, True)
    profile_of(standin)
    wrong = await cellagent("login", stdin="canary-value\n")
    assert (wrong.code, "canary" in wrong.err) == (2, False)


@pytest.mark.parametrize("typed", ["api_key=canary-0001", "api_key canary-0001", "canary-0001"])
async def test_a_secret_is_no_argument_and_is_not_repeated(private_home: Path, typed: str) -> None:
    refused = await cellagent("login", *typed.split())
    assert (refused.code, "canary" in refused.err) == (2, False)
    assert "no argument of a command" in refused.err
    mistyped = await cellagent("login", "api-key")
    assert "did you mean `cellagent login api_key`?" in mistyped.err


FILE_KEYRING = """
from pathlib import Path
from keyring.backend import KeyringBackend

class InFiles(KeyringBackend):
    priority = 1
    def get_password(self, service, name):
        file = Path(__file__).with_name(name)
        return file.read_text() if file.exists() else None
    def set_password(self, service, name, value):
        Path(__file__).with_name(name).write_text(value)
    def delete_password(self, service, name):
        Path(__file__).with_name(name).unlink()

class Forgets(InFiles):
    def set_password(self, service, name, value):
        pass
"""


def keyring_in(folder: Path) -> dict[str, str]:
    """Return the environment in which the keyring is files in a folder."""
    pytest.importorskip("keyring", reason="pip install 'cellagent[keyring]'")
    (folder / "kept.py").write_text(FILE_KEYRING)
    return {
        "PYTHONPATH": f"{folder}{os.pathsep}{os.getcwd()}",  # noqa: PTH109 - a text
        "PYTHON_KEYRING_BACKEND": "kept.InFiles",
    }


def holding(folder: Path, text: str) -> list[Path]:
    return [file for file in folder.rglob("*.toml") if text in file.read_text()]


async def test_the_keyring_keeps_it_and_no_file_of_ours_has_it(
    standin: StandIn, private_home: Path, tmp_path: Path
) -> None:
    environment = keyring_in(tmp_path)
    profile_of(standin)
    key = standin.credentials["api_key"]
    done = await cellagent("login", "api_key", "--keyring", stdin=key, environment=environment)
    assert (done.code, "kept in the keyring" in done.out) == (0, True), done.err
    assert (tmp_path / "lab:api_key").read_text() == key
    assert not holding(private_home, key)
    assert (await cellagent("device", "list", environment=environment)).code == 0
    assert "takes precedence" not in done.err
    shown = await cellagent("config", "show", "api_key", environment=environment)
    assert shown.out.split()[-3:] == ["(set)", "keyring,", "lab:api_key"], shown.out
    await cellagent("config", "set", "api_key", stdin="canary-of-before\n")
    again = await cellagent("login", "api_key", "--keyring", stdin=key, environment=environment)
    assert "secrets.toml: lab.api_key takes precedence over it" in again.err
    line = again.err.partition("`")[2].partition("`")[0]
    assert (await cellagent(*shlex.split(line)[1:], environment=environment)).code == 0
    assert (await cellagent("device", "list", environment=environment)).code == 0
    environment["PYTHON_KEYRING_BACKEND"] = "kept.Forgets"
    (tmp_path / "lab:api_key").unlink()
    lost = await cellagent("login", "api_key", "--keyring", stdin=key, environment=environment)
    assert (lost.code, "does not keep what it is given" in lost.err) == (2, True)
    assert "without --keyring" in lost.err


async def test_a_user_key_that_was_ended_is_in_the_keyring_no_more(
    standin: StandIn, private_home: Path, tmp_path: Path
) -> None:
    environment = keyring_in(tmp_path)
    profile_of(standin)
    key, email = standin.credentials["user_api_key"], standin.credentials["user_email"]
    assert (await cellagent("config", "set", "account.email", email)).code == 0
    login = ("login", "user_api_key", "--keyring")
    done = await cellagent(*login, stdin=key, environment=environment)
    assert done.code == 0, done.err
    assert (tmp_path / "lab:user_api_key").exists()
    ended = await cellagent("observe", "user-key", "--delete", "--yes", environment=environment)
    assert ended.code == 0, ended.err
    assert not (tmp_path / "lab:user_api_key").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
async def test_what_is_typed_at_a_terminal_is_not_shown(
    standin: StandIn, private_home: Path
) -> None:
    profile_of(standin)
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "login", "api_key"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    shown = b""
    try:
        while b": " not in shown:  # the echo is off before it asks
            shown += await asyncio.to_thread(os.read, ours, 4096)
        os.write(ours, standin.credentials["api_key"].encode() + b"\n")
        while piece := await asyncio.to_thread(os.read, ours, 4096):
            shown += piece
    except OSError:
        pass  # the far end of the terminal is closed
    finally:
        os.close(ours)
    assert await process.wait() == 0, shown
    assert b"api_key: accepted" in shown
    assert standin.credentials["api_key"].encode() not in shown
