"""`cellagent provision` with the device CA's key on a PKCS #11 token, as an operator runs it."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from agent.config.write import set_value
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import Done, cellagent
from tests.support.keys.operator_ca import openssl_verifies
from tests.support.keys.soft_token import PIN, WRONG_PIN, SoftToken, Spy, soft_token, spy_on
from tests.support.provisioning.tray import (
    flash_writes,
    key_in,
    ports,
    registered_keys,
    tray,
    tray_profile,
)

KEY = "provisioning.device_ca_key_file"


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SoftToken]:
    with soft_token(tmp_path, monkeypatch) as made:
        yield made


def ca_on(token: SoftToken, standin: StandIn, folder: Path, **settings: str) -> None:
    """Write a profile whose CA's key is on the token, and on it alone."""
    tray_profile(standin, folder, **settings)
    token.import_key(folder / "ca.key")
    (folder / "ca.key").unlink()
    set_value(KEY, token.uri(), profile="tray")


async def run(*arguments: str, pin: str = PIN, **environment: str) -> Done:
    pin_of = {"CELLAGENT_DEVICE_CA_PIN": pin} if pin else {}
    return await cellagent(
        "provision", "run", *arguments, "--set-clock", "--json",
        environment={**pin_of, **environment},
    )  # fmt: skip


def boards_of(done: Done) -> list[dict[str, Any]]:
    assert "summary" in done.lines[-1], done.out + done.err
    return done.lines[:-1]


def spied(token: SoftToken) -> Spy:
    """Put a spy between the agent and the token."""
    spy = spy_on(token)
    set_value(KEY, token.uri().replace(token.module, spy.module), profile="tray")
    return spy


@pytest.mark.contract("D10.8")
async def test_a_kit_gets_a_certificate_that_the_token_signed(
    token: SoftToken, standin: StandIn, tmp_path: Path
) -> None:
    ca_on(token, standin, tmp_path)
    with tray(tmp_path, 1) as kits:
        done = await run(*ports(kits))
        [line] = boards_of(done)
        assert (line["outcome"], line["writes"], done.code) == ("done", 3, 0), done.out + done.err
        assert registered_keys(standin)[line["device_id"]] == key_in(kits[0])
        again = await run(*ports(kits))
        assert boards_of(again)[0]["outcome"] == "unchanged"
    bulk = (await cellagent("provision", "export", "--as", "bulk")).out
    found = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", bulk, re.DOTALL)
    assert found is not None
    leaf = x509.load_pem_x509_certificate(found.group().encode())
    leaf.verify_directly_issued_by(
        x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    )
    openssl_verifies(tmp_path / "ca.pem", found.group())


async def test_a_wrong_pin_is_tried_once_for_a_whole_tray_and_nothing_is_written(
    token: SoftToken, standin: StandIn, tmp_path: Path
) -> None:
    ca_on(token, standin, tmp_path)
    spy = spied(token)
    with tray(tmp_path, 2) as kits:
        refused = await run(*ports(kits), pin=WRONG_PIN, **spy.environment)
        assert refused.code == 5
        error = refused.lines[-1]["error"]
        assert "bench refused the PIN from CELLAGENT_DEVICE_CA_PIN" in error["message"]
        assert spy.calls("C_Login") == 1
        assert [flash_writes(kit) for kit in kits] == [0, 0]
        # A call that is wrong in another way does not cost a try.
        assert (await run(*ports(kits), "--expect", "3", pin=WRONG_PIN)).code == 4
        assert spy.calls("C_Login") == 1


@pytest.mark.timeout(240)
async def test_sixteen_boards_under_watch_share_one_login(
    token: SoftToken, standin: StandIn, tmp_path: Path
) -> None:
    """And the token is never asked for the key itself: the spy sees every call."""
    ca_on(token, standin, tmp_path)
    spy = spied(token)
    with tray(tmp_path, 16) as kits:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agent", "provision", "run", *ports(kits)),
            *("--set-clock", "--json", "--watch"),
            env={**os.environ, **spy.environment, "CELLAGENT_DEVICE_CA_PIN": PIN},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        for _ in range(16):
            line = json.loads(await asyncio.wait_for(process.stdout.readline(), 120))
            assert line["outcome"] == "done", line
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 130
        assert len(registered_keys(standin)) == 16
    assert spy.calls("C_Login") == 1
    assert spy.calls("C_OpenSession") == 1
    assert spy.calls("C_SignInit") == 17  # the proof at the start, and one a board
    assert spy.calls("C_WrapKey") == 0
    assert "CKA_VALUE " not in spy.log.read_text(errors="replace")


async def test_a_token_that_is_pulled_fails_the_boards_that_are_left_and_a_rerun_resumes(
    token: SoftToken, standin: StandIn, tmp_path: Path
) -> None:
    ca_on(token, standin, tmp_path)
    kept = tmp_path / "kept"
    shutil.copytree(token.folder / "tokens", kept)
    # Slow enough that the token is gone before a board comes to its certificate.
    with tray(tmp_path, 2, "--fault", "slow=0.2") as kits:
        running = asyncio.create_task(run(*ports(kits)))
        await asyncio.to_thread(await_ledger)
        token.pull()
        failed = await running
        for line in boards_of(failed):
            assert (line["outcome"], line["step"], line["exit"]) == ("failed", "certificate", 1)
            assert "the token bench did not sign: it was taken out" in line["reason"]
            assert "run again" in line["try"]
        made = {key_in(kit) for kit in kits}
        shutil.copytree(kept, token.folder / "tokens", dirs_exist_ok=True)
        done = await run(*ports(kits))
        assert [line["outcome"] for line in boards_of(done)] == ["done", "done"], done.out
        assert {key_in(kit) for kit in kits} == made
        assert set(registered_keys(standin).values()) == made


def await_ledger() -> None:
    """Wait until the bench has its CA and opens its ledger."""
    ledger = Path(os.environ["CELLAGENT_STATE_DIR"]) / "ledger.sqlite"
    while not ledger.exists():
        time.sleep(0.01)


@pytest.mark.parametrize("verbosity", ["", "-v", "-vvv"])
async def test_no_pin_is_shown_at_any_verbosity(
    token: SoftToken, standin: StandIn, tmp_path: Path, verbosity: str
) -> None:
    ca_on(token, standin, tmp_path)
    pin_file = tmp_path / "pin"
    pin_file.write_text(f"{PIN}\n")
    pin_file.chmod(0o600)
    loud = [verbosity] if verbosity else []
    said = ""
    with tray(tmp_path, 2) as kits:
        for query, environment in (
            ("", {"CELLAGENT_DEVICE_CA_PIN": PIN}),
            ("", {"CELLAGENT_DEVICE_CA_PIN": WRONG_PIN}),
            (f"&pin-source=file:{pin_file}", {}),
        ):
            set_value(KEY, token.uri(query), profile="tray")
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "agent", "provision", "run", *ports(kits)),
                *("--set-clock", *loud),
                env={**os.environ, **environment},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            assert process.stdout is not None
            said += (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
            said += command_lines()
            said += (await asyncio.wait_for(process.stdout.read(), 60)).decode()
            assert await process.wait() == (5 if WRONG_PIN in environment.values() else 0), said
    for command in (("provision", "status", "--json"), ("config", "show"), ("provision", "export")):
        said += (await cellagent(*command, *loud)).out
    assert "2 boards" in said or "done" in said
    state = Path(os.environ["CELLAGENT_STATE_DIR"])
    kept = [state, Path(os.environ["XDG_CONFIG_HOME"])]
    files = [file for folder in kept for file in folder.rglob("*") if file.is_file()]
    assert state / "ledger.sqlite" in files
    said += "".join(file.read_bytes().decode("latin-1") for file in files)
    assert [canary for canary in (PIN, WRONG_PIN) if canary in said] == []


def command_lines() -> str:
    """Return the command lines of every process, as anyone on this machine may read them."""
    lines = b""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines += file.read_bytes()
        except OSError:
            continue  # it ended meanwhile
    return lines.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("typed", "code"),
    [(f"{PIN}\n", 0), (f"{WRONG_PIN}\n", 5), ("\x04", 5), ("\x03", 130)],
    ids=["right", "wrong", "nothing", "ctrl-c"],
)
async def test_the_pin_is_asked_for_on_a_terminal_without_an_echo(
    token: SoftToken, standin: StandIn, tmp_path: Path, typed: str, code: int
) -> None:
    if shutil.which("setsid") is None:
        pytest.skip("needs setsid: apt-get install util-linux")
    ca_on(token, standin, tmp_path)
    ours, theirs = pty.openpty()
    with tray(tmp_path, 1) as kits:
        process = await asyncio.create_subprocess_exec(
            *("setsid", "--ctty", "--wait", sys.executable, "-m", "agent"),
            *("provision", "run", *ports(kits), "--set-clock"),
            stdin=theirs, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        said = ""
        while "PIN of the token bench: " not in said:
            said += await asyncio.to_thread(read, ours)
        os.write(ours, typed.encode())
        while piece := await asyncio.to_thread(read, ours):
            said += piece
        assert await asyncio.wait_for(process.wait(), 60) == code, said
    os.close(ours)
    assert said.count("PIN of the token bench") == 1
    assert PIN not in said
    assert WRONG_PIN not in said
    assert "Traceback" not in said


def read(terminal: int) -> str:
    """Return what the far end wrote, "" once it is gone."""
    try:
        return os.read(terminal, 4096).decode("utf-8", "replace")
    except OSError:
        return ""


async def test_nobody_to_ask_is_exit_5_and_names_the_variable(
    token: SoftToken, standin: StandIn, tmp_path: Path
) -> None:
    ca_on(token, standin, tmp_path)
    with tray(tmp_path, 1) as kits:
        refused = await run(*ports(kits), pin="")
    assert refused.code == 5
    error = refused.lines[-1]["error"]
    assert error["try"].startswith("`cellagent config set device_ca_pin")
    assert error["try"].endswith("keeps it, or set CELLAGENT_DEVICE_CA_PIN")
    assert error["kind"] == "credentials"


@pytest.mark.parametrize(
    ("mode", "content", "says"),
    [(0o644, f"{PIN}\n", "others can read"), (0o600, "\n", "is empty"), (None, "", "cannot read")],
    ids=["shared", "empty", "absent"],
)
async def test_a_pin_file_that_cannot_be_used_is_named(
    token: SoftToken, standin: StandIn, tmp_path: Path, mode: int | None, content: str, says: str
) -> None:
    ca_on(token, standin, tmp_path)
    pin_file = tmp_path / "pin"
    if mode is not None:
        pin_file.write_text(content)
        pin_file.chmod(mode)
    set_value(KEY, token.uri(f"&pin-source={pin_file}"), profile="tray")
    refused = await run("/dev/ttyACM0", pin="")
    assert refused.code == 2
    error = refused.lines[-1]["error"]
    assert says in error["message"]
    assert str(pin_file) in error["message"]
