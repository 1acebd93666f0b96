"""The virtual modem as other programs meet it: on a terminal, killed, with a state file."""

from __future__ import annotations

import asyncio
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

import pytest
import serial

from at.errors import PortError
from at.virtual.options import OptionError, Options
from at.virtual.pty_server import PtyServer
from at.virtual.serving import make_modem

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
        server.wait(10)
        server.stdout.close()


def ask(port: serial.Serial, line: bytes) -> bytes:
    port.write(line + b"\r")
    return port.read_until(b"OK\r\n")


def test_two_clients_come_one_after_the_other(tmp_path: Path) -> None:
    link = str(tmp_path / "kit")
    with modem_virtual("--pty", link) as (server, ready):
        assert ready == {"ready": True, "port": link}
        for turn in range(2):
            with closing(serial.Serial(link, 115200, timeout=10, exclusive=True)) as port:
                # The second sees what the first did: it is one modem.
                assert ask(port, b"AT+CFUN?") == b"+CFUN: %d\r\nOK\r\n" % (4 * turn)
                ask(port, b"AT+CFUN=4")
        server.terminate()
        assert server.wait(10) == 0
    assert not os.path.lexists(link)


def test_ctrl_c_ends_it_and_takes_the_link_away(tmp_path: Path) -> None:
    link = tmp_path / "kit"
    with modem_virtual("--pty", str(link)) as (server, _):
        server.send_signal(signal.SIGINT)
        assert server.wait(10) == 130
    assert not link.is_symlink()


def test_what_was_stored_survives_a_kill(tmp_path: Path) -> None:
    state = tmp_path / "state" / "kit.json"
    options = ("--pty", str(tmp_path / "kit"), "--state", str(state))
    with modem_virtual(*options) as (server, _):
        with closing(serial.Serial(str(tmp_path / "kit"), timeout=10)) as port:
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
        closing(serial.Serial(str(tmp_path / "kit"), timeout=10)) as port,
    ):
        assert ask(port, b"AT%CMNG=1") == before


def test_a_command_beside_it_knows_the_port_and_gives_its_exit_code(tmp_path: Path) -> None:
    script = "import os; print(os.path.islink(os.environ['CELLAGENT_PORT'])); raise SystemExit(7)"
    link = tmp_path / "kit"
    with modem_virtual("--pty", str(link), "--", sys.executable, "-c", script) as (server, _):
        assert server.stdout is not None
        assert server.stdout.read() == "True\n"
        assert server.wait(10) == 7


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
        timeout=20,
        check=False,
    )
    assert done.returncode == code
    assert json.loads(done.stdout)["error"]["exit"] == code


def test_a_state_file_of_another_kit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kit.json"
    path.write_bytes(make_modem(Options()).kit.saved.encode())
    with pytest.raises(OptionError, match="another kit"):
        make_modem(Options(model="nrf9160"), path)
    path.write_text("{")
    with pytest.raises(PortError, match="not the state"):
        make_modem(Options(), path)


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
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


def test_a_path_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kit").write_text("precious")

    async def serve() -> None:
        PtyServer(tmp_path / "kit", lambda _data: None)

    with pytest.raises(PortError, match="cannot make"):
        asyncio.run(serve())
    assert (tmp_path / "kit").read_text() == "precious"
