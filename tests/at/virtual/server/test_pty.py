"""Clients open and close the terminal at any time, and its path is never another program's."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import termios
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from at.protocol.errors import PortError
from at.virtual.server.pty import PtyServer, serve_terminal
from tests.support.modem.served_kit import modem_virtual


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - the kernel's flags have no event
            await asyncio.sleep(0)


def exclusive(server: PtyServer) -> bool:
    answer = fcntl.ioctl(server._theirs, 0x80045440, b"\0\0\0\0")  # TIOCGEXCL
    return answer != b"\0\0\0\0"


async def take(path: Path) -> None:
    PtyServer(path, lambda _data: None).close()


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


async def test_a_terminal_that_is_plugged_in_stays_as_it_is_when_it_is_plugged_in_again(
    tmp_path: Path,
) -> None:
    with closing(PtyServer(tmp_path / "kit", lambda _data: None)) as server:
        client = os.open(server.link, os.O_RDWR | os.O_NOCTTY)
        server.plug_in()
        server.send(b"still there")
        assert os.read(client, 100) == b"still there"
        os.close(client)


async def test_what_is_printed_while_it_is_unplugged_is_in_no_file_that_was_opened_since(
    tmp_path: Path,
) -> None:
    with closing(PtyServer(tmp_path / "console", lambda _data: None)):
        server = PtyServer(tmp_path / "kit", lambda _data: None)
        client = os.open(server.link, os.O_RDWR | os.O_NOCTTY)
        server.send(b"plugged in")
        server.close()
        opened = os.open(tmp_path / "opened", os.O_RDWR | os.O_CREAT)
        os.dup2(opened, server._ours)
        server.send(b"unplugged")
        assert (tmp_path / "opened").read_bytes() == b""
        for each in {server._ours, opened, client}:
            os.close(each)


async def test_one_that_is_unplugged_while_it_hangs_up_is_closed_once(tmp_path: Path) -> None:
    server = PtyServer(tmp_path / "kit", lambda _data: None)
    client = os.open(server.link, os.O_RDWR | os.O_NOCTTY)
    server.send(b"unread")
    hanging_up = asyncio.create_task(server.hang_up(for_good=True))
    await asyncio.sleep(0)
    server.close()
    await hanging_up
    os.close(client)


async def test_nothing_that_was_printed_to_nobody_waits_for_the_next_client(tmp_path: Path) -> None:
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


async def test_the_clients_of_many_terminals_are_counted_by_one_inotify_instance(
    tmp_path: Path,
) -> None:
    def instances() -> int:
        return sum("inotify" in os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir())

    before = instances()
    servers = [PtyServer(tmp_path / f"kit-{n}", lambda _data: None) for n in range(150)]
    try:
        assert instances() == before + 1
        for server in servers:
            server.send(b"to nobody")
        flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK
        clients = [os.open(server.link, flags) for server in servers]
        for client, server in zip(clients, servers, strict=True):
            fcntl.ioctl(client, termios.TIOCEXCL)
            server.send(b"to somebody")
            assert os.read(client, 100) == b"to somebody"
            os.close(client)
        await eventually(lambda: not any(map(exclusive, servers)))
    finally:
        for server in servers:
            server.close()
    assert instances() == before


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
            # Whoever opens terminals now is given the number of the one that went: another test may
            # be.
            while not Path(device).exists():
                others += os.openpty()
            assert not link.exists()
            asyncio.run(take(link))
        finally:
            for other in others:
                os.close(other)


def _whole(path: Path) -> tuple[int, ...]:
    """What stands at `path`: its kind and rights, which file it is, its size and its last change.

    Not when it was last read: whoever looks at a link reads it.
    """
    found = path.lstat()
    return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns


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
        before = _whole(path)
        with pytest.raises(PortError, match=rf"cannot make .*{says}"):
            asyncio.run(take(path))
        assert _whole(path) == before


async def test_no_link_is_left_once_a_terminal_is_served_no_more(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        serve_terminal(stack, tmp_path / "kit", lambda _data: None)
        assert (tmp_path / "kit").is_char_device()
    assert not (tmp_path / "kit").is_symlink()
