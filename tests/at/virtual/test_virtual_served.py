"""The virtual modem as other programs meet it: on a terminal, killed, with a state file."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import serial

from at.driver.modem import Modem
from at.protocol.errors import PortBusy, PortError
from at.virtual.options import OptionError, VirtualOptions
from at.virtual.server.pty import PtyServer
from at.virtual.server.runner import make_modem
from at.virtual.state import StateFile
from at.virtual.transport import VirtualTransport

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def modem_virtual(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run `modem virtual`; give its process and its ready line."""
    server = subprocess.Popen(
        [sys.executable, "-m", "agent", "modem", "virtual", "--instant", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield server, json.loads(server.stdout.readline())
    finally:
        if server.poll() is None:
            server.kill()
        server.wait(60)
        server.stdout.close()


def ask(port: serial.Serial, line: bytes) -> bytes:
    port.write(line + b"\r")
    return port.read_until(b"OK\r\n")


def test_two_clients_come_one_after_the_other(tmp_path: Path) -> None:
    link = str(tmp_path / "kit")
    with modem_virtual("--pty", link) as (server, ready):
        assert ready == {"ready": True, "port": link}
        for turn in range(2):
            with closing(serial.Serial(link, 115200, timeout=60, exclusive=True)) as port:
                # The second sees what the first did: it is one modem.
                assert ask(port, b"AT+CFUN?") == b"+CFUN: %d\r\nOK\r\n" % (4 * turn)
                ask(port, b"AT+CFUN=4")
        server.terminate()
        assert server.wait(60) == 0
    assert not os.path.lexists(link)


def test_ctrl_c_ends_it_and_takes_the_link_away(tmp_path: Path) -> None:
    link = tmp_path / "kit"
    with modem_virtual("--pty", str(link)) as (server, _):
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
    assert not link.is_symlink()


def test_what_was_stored_survives_a_kill(tmp_path: Path) -> None:
    state = tmp_path / "state" / "kit.json"
    options = ("--pty", str(tmp_path / "kit"), "--state", str(state))
    with modem_virtual(*options) as (server, _):
        with closing(serial.Serial(str(tmp_path / "kit"), timeout=60)) as port:
            ask(port, b"AT%KEYGEN=7,2,1")
            ask(port, b'AT%CMNG=0,7,0,"test"')
            before = ask(port, b"AT%CMNG=1")
        server.kill()
        server.wait()
    assert state.stat().st_mode & 0o777 == 0o600
    assert state.parent.stat().st_mode & 0o777 == 0o700
    # The killed one left its link, which leads nowhere: the next takes its place.
    with (
        modem_virtual(*options) as _,
        closing(serial.Serial(str(tmp_path / "kit"), timeout=60)) as port,
    ):
        assert ask(port, b"AT%CMNG=1") == before


def test_a_command_beside_it_knows_the_port_and_gives_its_exit_code(tmp_path: Path) -> None:
    script = "import os; print(os.path.islink(os.environ['CELLAGENT_PORT'])); raise SystemExit(7)"
    link = tmp_path / "kit"
    with modem_virtual("--pty", str(link), "--", sys.executable, "-c", script) as (server, _):
        assert server.stdout is not None
        assert server.stdout.read() == "True\n"
        assert server.wait(60) == 7


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 2),
        (("--pty", "kit", "--tcp", "127.0.0.1:0"), 2),
        (("--tcp", "0.0.0.0:0"), 4),
        (("--tcp", "nonsense"), 2),
        (("--pty", "kit", "--fault", "nonsense"), 2),
        (("--pty", "kit", "--model", "nrf52"), 2),
        (("--pty", "kit", "--imei", "12"), 2),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agent", "modem", "virtual", "--json", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code
    assert json.loads(done.stdout)["error"]["exit"] == code


def test_a_state_file_of_another_kit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kit.json"
    path.write_bytes(make_modem(VirtualOptions()).kit.saved.encode())
    with closing_file(path) as flash, pytest.raises(OptionError, match="another kit"):
        make_modem(VirtualOptions(model="nrf9160"), flash)
    path.write_text("{")
    transport = VirtualTransport(str(path))
    for _ in range(2):  # a refusal lets the file go
        with pytest.raises(PortError, match="not the state"):
            _ = transport.modem


@contextmanager
def closing_file(path: Path) -> Iterator[StateFile]:
    flash = StateFile(path)
    try:
        yield flash
    finally:
        flash.release()


@pytest.mark.parametrize("where", ["--pty", "--port"])
def test_a_state_file_in_use_is_refused_and_its_holder_named(where: str, tmp_path: Path) -> None:
    state = tmp_path / "kit.json"
    with modem_virtual("--pty", str(tmp_path / "kit"), "--state", str(state)) as (server, _):
        command = (
            ("virtual", "--pty", str(tmp_path / "other"), "--state", str(state))
            if where == "--pty"
            else ("at", "--port", f"virtual:{state}", "AT%CMNG=3,7,0")
        )
        with closing(serial.Serial(str(tmp_path / "kit"), timeout=60)) as port:
            ask(port, b'AT%CMNG=0,7,0,"test"')
            before = state.read_bytes()
            refused = json_of("modem", command[0], "--json", *command[1:])
            assert refused["error"]["exit"] == 3
            assert refused["error"]["kind"] == "port-busy"
            assert f"(PID {server.pid})" in refused["error"]["message"]
            assert state.read_bytes() == before
            assert b"%CMNG: 7,0," in ask(port, b"AT%CMNG=1,7")
        server.kill()
        server.wait()
    assert (tmp_path / "kit.json.lock").stat().st_mode & 0o777 == 0o600
    with closing_file(state) as flash:
        saved = flash.load()
        assert saved is not None
        assert "7,0" in saved.credentials


def json_of(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "agent", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_a_busy_terminal_names_its_user_and_not_the_modem_behind_it(tmp_path: Path) -> None:
    link = str(tmp_path / "kit")
    hold = "import serial, sys; p = serial.Serial(sys.argv[1], exclusive=True); print(); input()"
    with (
        modem_virtual("--pty", link) as _,
        subprocess.Popen(
            [sys.executable, "-c", hold, link], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder,
    ):
        assert holder.stdout is not None
        holder.stdout.readline()
        refused = json_of("modem", "at", "--json", "--port", link, "AT")
        assert f"(PID {holder.pid})" in refused["error"]["message"]
        holder.communicate(b"\n", timeout=60)


async def test_a_kit_that_another_process_had_meanwhile_was_switched_off(tmp_path: Path) -> None:
    path = tmp_path / "kit.json"
    ours = Modem(VirtualTransport(str(path), instant=True))
    await ours.open()
    await ours.execute("AT+CFUN=4")
    await ours.close()
    same = VirtualTransport(str(path), instant=True)
    theirs = Modem(same)
    await theirs.open()
    await theirs.execute('AT%CMNG=0,7,0,"theirs"')
    with pytest.raises(PortBusy):
        await ours.open()
    await theirs.close()
    again = Modem(same)
    await again.open()
    assert (await again.execute("AT%CMNG=1,7")).lines
    await again.execute("AT+CFUN=4")
    await again.close()
    # Nobody wrote in between: it is the modem that it was.
    once_more = Modem(same)
    await once_more.open()
    assert (await once_more.execute("AT+CFUN?")).lines == ("+CFUN: 4",)
    await once_more.close()


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - the kernel's flags have no event
            await asyncio.sleep(0)


async def test_an_exclusive_mark_goes_with_the_client_that_made_it(tmp_path: Path) -> None:
    server = PtyServer(tmp_path / "kit", lambda _data: None)
    try:
        client = os.open(server.link, os.O_RDWR | os.O_NOCTTY)
        fcntl.ioctl(client, termios.TIOCEXCL)
        assert exclusive(server)
        os.close(client)
        await eventually(lambda: not exclusive(server))
    finally:
        server.close()


def exclusive(server: PtyServer) -> bool:
    answer = fcntl.ioctl(server._theirs, 0x80045440, b"\0\0\0\0")  # TIOCGEXCL
    return answer != b"\0\0\0\0"


async def test_nothing_that_was_printed_to_nobody_waits_for_the_next_client(
    tmp_path: Path,
) -> None:
    server = PtyServer(tmp_path / "kit", lambda _data: None)
    try:
        server.send(b"to nobody")
        client = os.open(server.link, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        server.send(b"to somebody")
        assert os.read(client, 100) == b"to somebody"
        server.send(b"unread")
        os.close(client)
        await eventually(lambda: server._clients is not None and server._clients.open == 0)
        client = os.open(server.link, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        with pytest.raises(BlockingIOError):
            os.read(client, 100)
        os.close(client)
    finally:
        server.close()


async def test_one_of_two_who_opened_it_at_once_goes_and_the_other_is_still_answered(
    tmp_path: Path,
) -> None:
    """The kernel tells of two equal openings as one: the other must not be forgotten."""
    with closing(PtyServer(tmp_path / "kit", lambda _data: None)) as server:
        first, second = (os.open(server.device, os.O_RDWR | os.O_NOCTTY) for _ in range(2))
        os.close(second)
        server.send(b"for the first\r\n")
        assert os.read(first, 100) == b"for the first\r\n"
        os.close(first)


async def test_settings_of_a_client_end_with_it(tmp_path: Path) -> None:
    got = bytearray()
    server = PtyServer(tmp_path / "kit", got.extend)
    try:
        client = os.open(server.link, os.O_RDWR | os.O_NOCTTY)
        settings = termios.tcgetattr(client)
        settings[3] |= termios.ECHO | termios.ICANON
        termios.tcsetattr(client, termios.TCSANOW, settings)
        os.close(client)
        await eventually(lambda: not termios.tcgetattr(server._theirs)[3] & termios.ECHO)
        client = os.open(server.link, os.O_RDWR | os.O_NOCTTY)
        os.write(client, b"AT\r\n\x00\xff\x03")
        await eventually(lambda: len(got) == 7)
        assert got == b"AT\r\n\x00\xff\x03"
        os.close(client)
    finally:
        server.close()


async def test_hanging_up_waits_until_what_was_printed_is_read(tmp_path: Path) -> None:
    server = PtyServer(tmp_path / "kit", lambda _data: None)
    client = os.open(server.link, os.O_RDWR | os.O_NOCTTY)
    server.send(b"last words")
    hanging_up = asyncio.ensure_future(server.hang_up(for_good=False))
    await asyncio.sleep(0)
    assert os.read(client, 100) == b"last words"
    await hanging_up
    assert os.read(client, 100) == b""
    os.close(client)
    client = os.open(server.link, os.O_RDWR | os.O_NOCTTY)
    server.send(b"back again")
    assert os.read(client, 100) == b"back again"
    os.close(client)
    await server.hang_up(for_good=True)
    assert not server.link.is_symlink()
    server.close()


async def take(path: Path) -> None:
    PtyServer(path, lambda _data: None).close()


@pytest.mark.parametrize("target", ["/proc/99999999/fd/7", "/dev/pts/99999999"])
async def test_a_link_that_a_killed_run_left_is_replaced(target: str, tmp_path: Path) -> None:
    link = tmp_path / "kit"
    link.symlink_to(target)
    await take(link)
    assert not link.is_symlink()


def test_the_link_of_a_killed_run_never_leads_to_somebody_elses_terminal(tmp_path: Path) -> None:
    link = tmp_path / "kit"
    with modem_virtual("--pty", str(link)) as (server, _):
        device = os.path.realpath(link)
        server.kill()
        server.wait()
        others: list[int] = []
        try:
            # Whoever opens terminals now is given the number of the one that went.
            while not others or os.ttyname(others[-1]) != device:
                others += os.openpty()
            assert not link.exists()
            asyncio.run(take(link))
        finally:
            for other in others:
                os.close(other)


@pytest.mark.parametrize("there", ["file", "folder", "link", "dangling", "terminal", "served"])
def test_a_path_that_is_taken_is_left_alone(there: str, tmp_path: Path) -> None:
    path = tmp_path / "kit"
    says = "already"
    with contextlib.ExitStack() as stack:
        match there:
            case "file":
                path.write_text("precious")
            case "folder":
                path.mkdir()
            case "link":
                (tmp_path / "precious").write_text("precious")
                path.symlink_to(tmp_path / "precious")
            case "dangling":
                path.symlink_to("/mnt/not-mounted/precious")
            case "terminal":
                for end in os.openpty():
                    stack.callback(os.close, end)
                path.symlink_to(os.ttyname(end))
            case _:
                server, _ = stack.enter_context(modem_virtual("--pty", str(path)))
                says = rf"\(PID {server.pid}\) serves"
        before = path.lstat()
        with pytest.raises(PortError, match=rf"cannot make .*{says}"):
            asyncio.run(take(path))
        assert path.lstat() == before
