"""Terminal programs of others on the virtual modem, driven through a terminal of their own."""

from __future__ import annotations

import http.server
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands.typist import PATIENCE_S, at_the_keyboard
from tests.support.modem.served_kit import PEERS, ServedKit

pytestmark = pytest.mark.peer
Serve = Callable[..., ServedKit]


@pytest.mark.skipif(shutil.which("picocom") is None, reason="no picocom: scripts/setup installs it")
@pytest.mark.contract("C8")
def test_picocom_speaks_to_the_modem_twice(serve: Serve) -> None:
    kit = serve()
    for _ in range(2):
        with at_the_keyboard("picocom", "-b", "115200", str(kit.port)) as person:
            person.reads(b"Terminal ready")
            person.types(b"AT+CGMR\r")
            person.reads(b"mfw_nrf91x1_2.0.4\r\nOK\r\n")
            person.types(b"\x01\x18")  # Ctrl-A Ctrl-X


def test_miniterm_speaks_to_the_modem(serve: Serve) -> None:
    kit = serve("--dialect", "serial-modem")
    command = (sys.executable, "-m", "serial.tools.miniterm", "--raw", "--eol", "CR")
    with at_the_keyboard(*command, str(kit.port), "115200") as person:
        person.reads(b"Miniterm")
        person.types(b"AT#XSMVER\r")
        person.reads(b"\r\nOK\r\n")
        person.types(b"\x1d")  # Ctrl-]
    assert b'#XSMVER: "v1.0.0"' in person.screen


@pytest.mark.skipif(shutil.which("socat") is None, reason="no socat: scripts/setup installs it")
def test_socat_speaks_to_the_modem(serve: Serve) -> None:
    kit = serve()
    done = subprocess.run(
        ["socat", "-t1", "-", f"FILE:{kit.port},raw,echo=0"],
        input=b"AT+CGSN\r",
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout == f"{kit.saved()['imei']}\r\nOK\r\n".encode()


@pytest.mark.skipif(
    not (PEERS / "memfault").exists(), reason="no .peers here: ./scripts/peers makes it"
)
@pytest.mark.contract("O5.1")
def test_memfaults_console_takes_the_chunks_off_the_console(serve: Serve, tmp_path: Path) -> None:
    serve("--console", str(tmp_path / "console"))
    with chunk_host() as (url, posted):
        command = ("--url", url, "--project-key", "test-project-key", "console")
        port = ("--device-serial", "TEST", "--port", str(tmp_path / "console"))
        with at_the_keyboard(str(PEERS / "memfault"), *command, *port) as person:
            person.reads(b"Quit")
            person.types(b"mflt export\r")
            person.reads(b"Success")
            person.types(b"\x1d")  # Ctrl-]
    assert b"virtual-app" in posted[0]


@contextmanager
def chunk_host() -> Iterator[tuple[str, list[bytes]]]:
    """Take what is posted, on loopback."""
    posted: list[bytes] = []

    class Host(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", posted
        server.shutdown()
        thread.join()
