from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent.fota.allowed_hosts import AllowedHosts, checked_target
from agent.fota.download.downloader import Downloader, DownloadRequest
from agent.fota.download.ranges import DownloadInterrupted
from agent.fota.download.requests import DownloadNetwork
from agent.http.download_targets import SourceRefused
from tests.support.fota.download_server import Fault, file_server
from tests.support.harness.manual_clock import ManualClock

if TYPE_CHECKING:
    pass
from tests.support.fota.download_calls import CONTENT, STAND_IN, fetched, wanted


async def test_a_redirect_is_followed_only_to_where_the_rule_allows(tmp_path: Path) -> None:
    async with file_server(CONTENT) as server, file_server(CONTENT) as other:
        server.faults = [Fault(status=302, headers={"location": f"{other.url}/b.bin"})]
        await fetched(server, tmp_path)
        assert other.requests[0][":line"] == "GET /b.bin HTTP/1.1"
        (tmp_path / "image.bin").unlink()
        for place in ("http://192.168.1.1/", "file:///etc/passwd", "https://evil.com/", ""):
            server.faults = [Fault(status=307, headers={"location": place})]
            with pytest.raises(SourceRefused):
                await fetched(server, tmp_path)
        server.default = Fault(status=308, headers={"location": "/loop"})
        with pytest.raises(SourceRefused, match="more than 5 times"):
            await fetched(server, tmp_path)


async def test_the_address_that_was_checked_is_the_one_connected_to(tmp_path: Path) -> None:
    asked: list[str] = []

    async def once(host: str, port: int) -> list[str]:
        asked.append(host)
        # A second look would lead elsewhere: there is none.
        return ["127.0.0.1"] if len(asked) == 1 else ["192.168.0.1"]

    async with file_server(CONTENT) as server:
        loader = Downloader(DownloadNetwork(STAND_IN, resolve=once), clock=ManualClock())
        target = checked_target(f"http://localhost:{server.port}/a", STAND_IN)
        await loader.fetch(wanted(server, tmp_path, target=target))
        await loader.close()
        assert server.requests[0]["host"] == f"localhost:{server.port}"
    assert asked == ["localhost"]


async def test_the_next_address_is_tried_where_one_takes_no_connection(tmp_path: Path) -> None:
    async def two(host: str, port: int) -> list[str]:
        return ["::1", "127.0.0.1"]  # a service that listens on IPv4 alone

    async with file_server(CONTENT) as server:
        loader = Downloader(DownloadNetwork(STAND_IN, resolve=two), clock=ManualClock())
        target = checked_target(f"http://localhost:{server.port}/a", STAND_IN)
        done = await loader.fetch(wanted(server, tmp_path, target=target))
        assert done.size_bytes == len(CONTENT)
    with pytest.raises(DownloadInterrupted, match=r"localhost:\d+ \(127\.0\.0\.1\): nothing"):
        await loader.probe_size(target)
    await loader.close()


async def test_where_a_host_cannot_be_reached_another_way_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async with file_server(CONTENT) as server:
        network = DownloadNetwork(STAND_IN, another_way="take the other way")
        loader = Downloader(network, clock=ManualClock())
        target = checked_target("http://localhost:1/a", STAND_IN)
        with monkeypatch.context() as patched:
            patched.setattr(socket, "getaddrinfo", unknown)
            with pytest.raises(DownloadInterrupted, match="localhost cannot be resolved") as away:
                await loader.fetch(wanted(server, tmp_path, target=target))
        assert away.value.hint == "take the other way"
        await loader.close()
        closed = Downloader(DownloadNetwork(STAND_IN, another_way="this"), clock=ManualClock())
        with pytest.raises(DownloadInterrupted) as away:
            await closed.fetch(wanted(server, tmp_path, target=target))
        assert away.value.hint.endswith("this")
        await closed.close()


async def test_a_name_that_leads_inside_is_not_connected_to(tmp_path: Path) -> None:
    async def inside(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    public = AllowedHosts(hosts=("firmware.example.com",))
    loader = Downloader(DownloadNetwork(public, resolve=inside), clock=ManualClock())
    target = checked_target("https://firmware.example.com/a", public)
    with pytest.raises(SourceRefused, match="this machine"):
        await loader.fetch(DownloadRequest(target, tmp_path / "image.bin", 10))
    await loader.close()


async def test_the_environment_steers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with file_server(CONTENT) as server:
        await fetched(server, tmp_path)
