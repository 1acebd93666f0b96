"""The runner downloads what the kit requests, and stores its state before it replies."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from at.virtual.kit import Fetch, Fetched
from at.virtual.modem import Port
from at.virtual.options import VirtualOptions
from at.virtual.server.runner import ModemRunner, make_modem, send
from at.virtual.state import SavedState, StateFile
from at.virtual.transport import VirtualTransport
from tests.support.fota.signed_images import signed_image
from tests.support.harness.own_port import own_port


@contextmanager
def files(content: dict[str, bytes]) -> Iterator[str]:
    class Host(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = content.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Heard:
    """A receiver whose lines can be waited for."""

    def __init__(self) -> None:
        self._text = ""
        self._came = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._text += data.decode()
        self._came.set()

    def connection_lost(self, reason: Exception | None) -> None:
        pass

    async def line(self, text: str) -> None:
        async with asyncio.timeout(60):
            while text not in self._text:
                self._came.clear()
                await self._came.wait()
        self._text = self._text.partition(text)[2]


@pytest.mark.parametrize(
    ("path", "ends"), [("/app.bin", "#XFOTA: 4,0"), ("/no.bin", "#XFOTA: 1,1,1")]
)
async def test_the_kit_downloads_its_update_by_itself(path: str, ends: str, tmp_path: Path) -> None:
    image = signed_image(tmp_path, "3.0.0").read_bytes()
    transport = VirtualTransport(dialect="serial-modem", instant=True)
    heard = Heard()
    await transport.open(heard)
    with files({"/app.bin": image}) as url:
        transport.write(b"AT+CFUN=1\r")
        await heard.line("OK")
        transport.write(f'AT#XFOTA=1,"{url}{path}"\r'.encode())
        await heard.line(ends)
    if ends == "#XFOTA: 4,0":
        transport.write(b"AT#XRESET\r")
        await heard.line("Ready")
        await heard.line("#XFOTA: 5,0")
        assert transport.modem.kit.saved.app_version == "3.0.0"
    await transport.close()


async def test_a_request_elsewhere_or_cut_short_has_no_answer() -> None:
    with files({"/app.bin": b"image"}) as url:
        assert await send(Fetch(f"{url}/app.bin", print)) == Fetched(200, b"image")
        assert await send(Fetch(f"{url}/none", print)) == Fetched(404, b"")
        assert await send(Fetch(url.replace("http:", "https:") + "/app.bin", print)) is None
    assert await send(Fetch("http://192.0.2.1/app.bin", print)) is None
    with own_port() as nobodys:
        assert await send(Fetch(f"http://127.0.0.1:{nobodys}/app.bin", print)) is None


async def test_the_state_is_stored_before_the_reply_goes_out(tmp_path: Path) -> None:
    flash = StateFile(tmp_path / "kit.json")
    runner = ModemRunner(make_modem(VirtualOptions(instant=True), flash), flash)
    stored = []

    def send(data: bytes) -> None:
        stored.append((data, "7,0" in json.loads(flash.path.read_bytes())["credentials"]))

    runner.attach(Port.AT, send)
    runner.start()
    runner.receive(b'AT%CMNG=0,7,0,"x"\r')
    runner.receive(b"AT%CMNG=3,7,0\r")
    runner.stop()
    flash.release()
    assert stored == [(b"OK\r\n", True), (b"OK\r\n", False)]


def test_a_kit_with_a_state_is_flashed_with_the_serial_modem_that_is_named(tmp_path: Path) -> None:
    def started(**options: str) -> SavedState:
        flash = StateFile(tmp_path / "kit.json")
        try:
            saved = make_modem(VirtualOptions(**options), flash).kit.saved
            flash.store(saved)
            return saved
        finally:
            flash.release()

    first = started(model="nrf9161", firmware="2.0.1")
    assert (first.dialect, first.app_version) == ("at-host", "1.0.0")
    second = started(firmware="serial-modem-2.0.0")
    assert (second.dialect, second.app_version) == ("serial-modem", "2.0.0")
    assert (second.firmware, second.model) == ("mfw_nrf91x1_2.0.1", "nrf9161")
    assert started().app_version == "2.0.0"
