"""A port that cannot be opened: why, and who holds it, as /proc or ModemManager's list says."""

from __future__ import annotations

import asyncio
import errno
import grp
import os
import pwd
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from at.ports import holders, usb
from at.ports.holders import holder_of, opening_error
from at.ports.usb import UsbPort
from at.protocol.errors import PortForbidden
from tests.support.location.network_manager import (
    MOCK,
    MOCK_TOOL,
    REFUSALS_OF_A_BUS,
    bus_that_says,
    gdbus,
    private_bus,
    running,
    wait_for_name,
)
from tests.support.modem.pty_far_end import PtyFarEnd

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs a PTY: run it on Linux or macOS")
NAME = "org.freedesktop.ModemManager1"
ROOT = "/org/freedesktop/ModemManager1"
MODEM = f"{NAME}.Modem"


@contextmanager
def mocked_modem_manager(folder: Path, *ports: str) -> Iterator[str]:
    """Serve a modem that has `ports`, the first its primary one; yield the address of the bus."""
    with private_bus(folder) as address:
        environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": address}
        mock = [*MOCK_TOOL, "--system", "--is-object-manager", NAME, ROOT, NAME]
        with running(mock, environment):
            wait_for_name(address, NAME)
            listed = ", ".join(f"('{port}', uint32 3)" for port in ports)
            properties = f"{{'PrimaryPort': <'{ports[0]}'>, 'Ports': <[{listed}]>}}"
            gdbus(
                address, NAME, ROOT, f"{MOCK}.AddObject", f"{ROOT}/Modem/0", MODEM, properties, "[]"
            )
            yield address


def test_without_a_modem_manager_it_is_another_users_process(tmp_path: Path) -> None:
    assert holder_of(os.devnull, tmp_path) == "another user's process"


@POSIX
async def test_the_holder_is_named_though_it_is_another_process() -> None:
    with PtyFarEnd() as far:
        code = "import os, sys; os.open(sys.argv[1], os.O_RDWR); print(flush=True); input()"
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, far.path, stdin=-1, stdout=-1
        )
        assert other.stdout is not None
        await other.stdout.readline()
        try:
            assert f"(PID {other.pid})" in holder_of(far.path)
        finally:
            other.kill()
            await other.wait()


def put_process(proc: Path, pid: str, port: str, *, far_end: bool) -> None:
    """Put a process into `proc` that has a port open, and that port's or another's far end."""
    terminal = os.minor(Path(port).stat().st_rdev) + (not far_end)
    for folder in ("fd", "fdinfo"):
        (proc / pid / folder).mkdir(parents=True)
    (proc / pid / "comm").write_text("picocom\n")
    (proc / pid / "fd" / "3").symlink_to(port)
    (proc / pid / "fdinfo" / "4").write_text(f"pos:\t0\ntty-index:\t{terminal}\n")


@pytest.mark.skipif(sys.platform != "linux", reason="the numbers are Linux's")
async def test_the_far_end_of_a_pseudo_terminal_is_not_who_holds_it(tmp_path: Path) -> None:
    with PtyFarEnd() as far:
        put_process(tmp_path, "4242", far.path, far_end=True)
        assert holder_of(far.path, tmp_path) == "another user's process"
        put_process(tmp_path, "4243", far.path, far_end=False)
        assert holder_of(far.path, tmp_path) == "picocom (PID 4243)"


DEVICE = "/dev/null"  # any device will do: nobody's files are looked at here


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc in which ModemManager runs as another user."""
    folder = tmp_path / "proc"
    (folder / "4242").mkdir(parents=True)
    (folder / "4242" / "comm").write_text("ModemManager\n")
    return folder


@pytest.mark.parametrize(
    ("ports", "holder"),
    [
        (["null", "ttyACM1"], "ModemManager (PID 4242)"),
        (["cdc-wdm0", "null"], "ModemManager (PID 4242)"),
        (["ttyACM0", "ttyACM1"], "another user's process"),
    ],
    ids=["its primary port", "another of its ports", "not on its list"],
)
def test_modem_manager_says_whether_it_has_the_port(
    ports: list[str], holder: str, proc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holders, "_ANSWER_S", 60.0)  # a busy machine may take its time
    with mocked_modem_manager(tmp_path, *ports) as address:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
        assert holder_of(DEVICE, proc) == holder


def test_a_modem_manager_that_does_not_answer_is_named_with_a_doubt(
    proc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path / 'nothing'}")
    assert holder_of(DEVICE, proc) == "ModemManager, perhaps (PID 4242)"
    with private_bus(tmp_path) as address:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
        assert holder_of(DEVICE, proc) == "ModemManager, perhaps (PID 4242)"


@pytest.mark.parametrize("why", REFUSALS_OF_A_BUS)
def test_a_bus_that_serves_nobody_leaves_a_doubt_and_no_traceback(
    why: str,
    proc: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with bus_that_says(tmp_path, REFUSALS_OF_A_BUS[why]) as address:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
        assert holder_of(DEVICE, proc) == "ModemManager, perhaps (PID 4242)"
    assert "Traceback" not in capfd.readouterr().err


@POSIX
@pytest.mark.parametrize(
    ("mode", "group", "named", "says"),
    [
        (0o660, "dialout", "dialout", "`sudo usermod -aG dialout $USER`, then log in again"),
        (0o660, "uucp", "uucp", "`sudo usermod -aG uucp $USER`, then log in again"),
        (0o660, "joined", "joined", "log out and in again"),
        (0o660, "own", "own", "in its group, own, already"),
        (0o660, "root", "", "a udev rule"),
        (0o660, "disk", "", "a udev rule"),
        (0o600, "dialout", "", "a udev rule"),
        (0o620, "tty", "", "a udev rule"),
    ],
)
def test_a_refused_permission_gets_advice_that_helps(
    mode: int, group: str, named: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 0 if group == "root" else 4242
    user = pwd.getpwuid(os.geteuid()).pw_name
    entry = grp.struct_group((group, "x", number, [user] if group == "joined" else []))
    monkeypatch.setattr(grp, "getgrgid", {number: entry}.__getitem__)
    monkeypatch.setattr(grp, "getgrnam", {group: entry}.__getitem__)
    monkeypatch.setattr(os, "getgroups", lambda: [number] if group == "own" else [])
    status = os.stat_result((mode, 0, 0, 1, 0, number, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "stat", lambda _path: status)
    error = opening_error("/dev/ttyACM7", "/dev/ttyACM7", PermissionError(13, "denied"))
    assert isinstance(error, PortForbidden)
    assert (error.group, says in error.hint) == (named, True)
    assert "-aG root" not in error.hint
    assert ('KERNEL=="ttyACM7", GROUP=' in error.hint) is (not named)


@POSIX
def test_a_user_without_a_name_is_told_how_a_container_gets_the_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = grp.struct_group(("dialout", "x", 4242, []))
    monkeypatch.setattr(grp, "getgrgid", lambda _number: entry)
    monkeypatch.setattr(grp, "getgrnam", lambda _name: entry)
    status = os.stat_result((0o660, 0, 0, 1, 0, 4242, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "stat", lambda _path: status)
    monkeypatch.setattr(os, "geteuid", lambda: 1_234_567)
    error = opening_error("/dev/ttyACM7", "/dev/ttyACM7", PermissionError(13, "denied"))
    assert "`--group-add dialout`" in error.hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("/dev/ttyACM0", "is it plugged in?"),
        ("/dev/ttyUSB3", "did you mean '/dev/ttyUSB0'?"),
        ("/dev/ttyUBS0", "did you mean '/dev/ttyUSB0'?"),
    ],
)
def test_a_port_that_is_named_as_its_kind_is_was_not_mistyped_for_another_kind(
    name: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = [UsbPort("/dev/ttyS0"), UsbPort("/dev/ttyUSB0")]
    monkeypatch.setattr(usb, "system_ports", lambda: there)
    error = opening_error(name, name, FileNotFoundError(2, "nothing"))
    assert error.hint == f"{hint} `cellagent ports` lists them"


def test_a_file_in_place_of_a_port_may_be_a_transcript(tmp_path: Path) -> None:
    file = tmp_path / "session.transcript"
    file.write_text("> AT\n< OK\n")
    error = opening_error(str(file), str(file), OSError(errno.ENOTTY, "no terminal"))
    assert f"did you mean 'replay:{file}'?" in error.hint
    error = opening_error("/dev/null", "/dev/null", OSError(errno.ENOTTY, "no terminal"))
    assert error.hint == "`cellagent ports` lists them"


@pytest.mark.parametrize("kind", ["socket://", "rfc2217://", ""])
def test_a_url_of_pyserial_and_a_bare_address_are_answered_with_ours(kind: str) -> None:
    url = f"{kind}127.0.0.1:4000"
    hint = opening_error(url, url, FileNotFoundError(2, "nothing")).hint
    assert "did you mean 'tcp://127.0.0.1:4000'?" in hint
