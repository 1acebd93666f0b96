"""`cellagent run` before it runs: the kits that are meant, and what the system needs for it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.cli.framework.session import Session
from agent.cli.run import _agent, _configure, _emit_new, _handle_signals
from agent.config import Configuration
from agent.config.kits import kits_of
from agent.config.load import load
from agent.config.write import set_value
from agent.daemon import agent as daemon
from agent.daemon.snapshot import LinkStatus, OutboxStatus
from agent.daemon.status import StatusRegistry
from agent.errors import UsageError
from at.ports import usb
from at.ports.usb import UsbPort
from tests.support.commands.command_line import completed


def test_a_port_on_the_command_line_means_that_kit_alone() -> None:
    for name in ("left", "right"):
        set_value(f"kits.{name}.port", f"/dev/tty{name}", profile="lab")
    everything = _configure(Session(profile_name="lab")).profile
    assert {kit.port for kit in kits_of(everything).values()} == {"/dev/ttyleft", "/dev/ttyright"}
    one = _configure(Session(profile_name="lab", port="/dev/ttyright")).profile
    assert {name: kit.port for name, kit in kits_of(one).items()} == {"right": "/dev/ttyright"}
    other = _configure(Session(profile_name="lab", port="/dev/ttyother")).profile
    assert {name: kit.port for name, kit in kits_of(other).items()} == {"kit": "/dev/ttyother"}


@pytest.mark.parametrize(
    ("port", "asked", "told"),
    [
        ("/dev/left", "", []),
        ("/dev/other", "", ["kit.port"]),
        ("/dev/third", "/dev/other", ["CELLAGENT_PORT"]),
    ],
)
async def test_a_kit_on_its_port_that_is_none_of_the_table_is_told_not_to_be_looked_after(
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    port: str,
    asked: str,
    told: list[str],
) -> None:
    class Ready(daemon.Agent):
        async def run(self, ready: Callable[[], None]) -> None:
            ready()

    monkeypatch.setattr(daemon, "Agent", Ready)
    set_value("kit.port", port, profile="lab")
    set_value("kits.left.port", "/dev/left", profile="lab")
    monkeypatch.setenv("CELLAGENT_PORT", asked)
    assert await _agent(Session(profile_name="lab"), None) == 0
    said = [line for line in caplog.messages if "is not looked after" in line]
    assert [line.partition(", ")[0] for line in said] == [f"the kit on {by}" for by in told]
    add = "`cellagent config set kits.NAME.port /dev/other --profile lab` adds it"
    assert all(add in each for each in said)


@pytest.mark.parametrize("key", ["port", "console_port"])
def test_two_kits_with_one_port_under_two_names_are_refused_where_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    serial = "001050900001"
    device, link = str(tmp_path / "ttyACM0"), tmp_path / "by-id"
    for name, port in (("left", str(link)), ("right", device), ("third", f"serial:{serial}")):
        set_value(f"kits.{name}.port", f"/dev/{name}", profile="lab")
        set_value(f"kits.{name}.{key}", port, profile="lab")
    link.symlink_to(device)
    plugged = [UsbPort(device, usb.SEGGER, serial=serial)]
    monkeypatch.setattr(usb, "system_ports", lambda: plugged)
    what = f"left and right have the same {key} .{link} is {device}.$"
    with pytest.raises(UsageError, match=what) as refused:
        _configure(Session(profile_name="lab"))
    assert f"config set kits.right.{key} " in refused.value.hint
    if key == "port":
        with pytest.raises(UsageError, match="left and right have the same port"):
            _ = Session(profile_name="lab", port=device).configuration
    assert load("lab").profile.kits, "where none is opened, no port is looked up"


def test_where_no_kit_is_named_it_is_the_only_one_that_is_plugged_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serial = "001050900001"
    plugged = [UsbPort("/dev/ttyACM0", usb.SEGGER, serial=serial)]
    monkeypatch.setattr(usb, "system_ports", lambda: plugged)
    assert _configure(Session()).profile.kit.port == f"serial:{serial}"


@pytest.mark.parametrize(
    ("option", "holds"), [("--print-unit", "ExecStart="), ("--print-udev", "ID_MM_DEVICE_IGNORE")]
)
def test_what_the_system_needs_for_it_is_printed_without_a_kit(option: str, holds: str) -> None:
    done = completed("run", option)
    assert (done.returncode, done.stderr) == (0, "")
    assert holds in done.stdout
    (told,) = map(json.loads, completed("run", option, "--json").stdout.splitlines())
    assert list(told.values()) == [done.stdout.rstrip()]


@pytest.mark.skipif(sys.platform == "win32", reason="the error of a closed pipe is POSIX's")
async def test_the_agent_goes_on_when_nobody_reads_its_changes_any_more_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reads, writes = os.pipe()

    class Running(daemon.Agent):
        def __init__(self, _read: Callable[[], Configuration]) -> None:
            self.registry = StatusRegistry()
            self.kits = {}
            self.page_link = None
            self.configuration = _configure(Session(port="virtual:"))

        async def run(self, ready: Callable[[], None]) -> None:
            ready()
            os.close(reads)
            for kind in (OutboxStatus, LinkStatus):
                self.registry.add_concern(kind)
                await asyncio.sleep(0.01)

    lost: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: lost.append(context))
    monkeypatch.setattr(daemon, "Agent", Running)
    with os.fdopen(writes, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert await _agent(Session(json=True), None) == 0
        gc.collect()
        assert not lost
        assert "no longer printed: [Errno 32]" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="its loop takes no signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_log_says_which_signal_ended_the_agent(
    caplog: pytest.LogCaptureFixture, number: signal.Signals
) -> None:
    caplog.set_level("INFO")
    stopped = asyncio.Event()
    received = _handle_signals(cast("daemon.Agent", SimpleNamespace(stop=stopped.set)))
    os.kill(os.getpid(), number)
    await stopped.wait()
    assert received == [number]
    assert caplog.messages == [f"it ends: {number.name}"]


@pytest.mark.skipif(sys.platform == "win32", reason="there only sockets tell")
def test_a_program_that_reads_no_further_line_does_not_stop_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = StatusRegistry()
    registry.add_concern(LinkStatus, "left").set_well()
    reads, writes = os.pipe()
    for end in (reads, writes):
        os.set_blocking(end, False)  # so that a write that would wait fails
    with os.fdopen(writes, "w") as stream, os.fdopen(reads, "rb", buffering=0) as reader:
        monkeypatch.setattr("sys.stdout", stream)
        with suppress(BlockingIOError):
            while os.write(writes, b"x" * 512):
                pass
        agent = cast("daemon.Agent", SimpleNamespace(registry=registry))
        told: dict[tuple[str, str], tuple[str, str | None]] = {}
        _emit_new(agent, told)
        assert told == {}
        while reader.read(1 << 20):
            pass
        _emit_new(agent, told)
        assert json.loads(reader.readline())["state"] == "well"
