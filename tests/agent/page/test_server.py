"""The page over a real socket and beside a real agent: what is served, sent on, and refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpx
import pytest

from agent.config.profile import PageSettings
from agent.daemon.control.socket import ControlSocket
from agent.daemon.recent import AT
from agent.daemon.snapshot import AgentStatus, State
from agent.errors import ConfigError, RefusedByRule, UsageError
from agent.page import kits
from agent.page.access import Guard
from agent.page.feed import AgentFeed
from agent.page.server import ServedPage, _config
from agent.page.view import View
from agent.page.views import Subject, Views
from tests.support.keys.key_files import self_signed
from tests.support.page.page_agent import FakeAgent, ledger_in, page_of
from tests.support.page.statuses import kit, status


@contextlib.asynccontextmanager
async def browser_at(page: ServedPage, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=page.url, follow_redirects=True, **settings) as browser:
        assert (await browser.get(page.link())).status_code == 200
        yield browser


class Stream:
    """The stream of changes, one difference after the other."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.aiter_lines()

    async def until(self, words: str) -> dict[str, Any]:
        """Return the first difference that holds the words."""
        async with asyncio.timeout(60):
            async for line in self._lines:
                if words in line:
                    found: dict[str, Any] = json.loads(line.removeprefix("data: "))
                    return found
        raise AssertionError("the stream ended")


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    running = FakeAgent(tmp_path)
    await running.start()
    yield running
    await running.stop()


async def until_shown(browser: httpx.AsyncClient, words: str) -> str:
    """Return the page of the kits once it holds the words."""
    async with browser.stream("GET", "/events", params={"path": "/kits"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        await Stream(answer).until(words)
    text = (await browser.get("/kits")).text
    assert words in text
    return text


async def test_the_first_paint_has_all_that_is_known_without_any_script(
    agent: FakeAgent, tmp_path: Path
) -> None:
    agent.tell(status(kit("dock", state=State.TROUBLE), kit("right")))
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        text = await until_shown(browser, "1 of 2 kits needs you")
        assert text.index("dock") < text.index("right")
        assert "its port went away" in text
        assert "Live" in text
        assert "Read only" in text
        text = (await browser.get("/kits?state=trouble&density=rows")).text
        assert ('id="rows"' in text, "kit-dock" in text, "kit-right" in text) == (True, True, False)


async def test_the_first_paint_waits_for_what_it_shows_and_no_longer(
    agent: FakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.page.views._KNOWN_S", 60.0)
    agent.print("before anybody looked")
    async with asyncio.timeout(50), page_of(tmp_path) as page, browser_at(page) as browser:
        assert "1 kit, all well" in (await browser.get("/kits")).text
        text = (await browser.get("/kits/a")).text
        assert "before anybody looked" in text
        assert "Console: 1 in the last hour" in text
        text = (await browser.get("/report")).text
        assert "is being read" not in text


async def test_who_stops_reading_is_sent_the_newest_later_and_slows_nobody_meanwhile(
    agent: FakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.page.server.PUSH_S", 0)
    told = 200

    def large(number: int) -> AgentStatus:
        kits = [kit(f"k{n}", state=State.TROUBLE, model="m" * 4000) for n in range(8)]
        for each in kits:
            each.concerns[0].trouble = f"state {number}. " + "x" * 4000
        return status(*kits)

    async with page_of(tmp_path) as page, browser_at(page) as browser:
        host, port = page.url.removeprefix("http://").split(":")
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        reader, writer = await asyncio.open_connection(sock=slow, limit=4096)
        (name, cookie), *_ = browser.cookies.items()
        head = f"GET /events HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {name}={cookie}\r\n\r\n"
        writer.write(head.encode())
        async with browser.stream("GET", "/events") as answer:
            stream = Stream(answer)
            for number in range(told):
                agent.tell(large(number))
                await stream.until(f"state {number}. ")  # the other one misses none
        sent = b""
        while f"state {told - 1}. ".encode() not in sent[-200_000:]:
            sent += await reader.read(65536)
        writer.close()
        assert sent.count(b"data: ") < told / 2


async def test_a_view_that_is_not_there_leads_back(agent: FakeAgent, tmp_path: Path) -> None:
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        for path, says in (
            ("/nowhere", "there is no page /nowhere"),
            ("/kits/nobody", "there is no kit nobody; there are: a<"),
            ("/kits/a/b", "there is no kit a/b"),
        ):
            answer = await browser.get(path)
            assert answer.status_code == 404
            assert says in answer.text
            assert 'href="/kits"' in answer.text
        agent.tell(status())
        await until_shown(browser, "No kit yet")
        assert "there are: none yet<" in (await browser.get("/kits/a")).text


async def test_changes_are_sent_as_they_come_and_nothing_else(
    agent: FakeAgent, tmp_path: Path
) -> None:
    agent.tell(status(kit("a"), kit("b")))
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        await until_shown(browser, "2 kits, all well")
        async with browser.stream("GET", "/events", params={"path": "/kits"}) as answer:
            stream = Stream(answer)
            first = await stream.until("kit-a")
            assert set(first["parts"]) == {"kit-a", "kit-b", "head", "live", "gone"}
            assert "says" not in first, "nothing has happened yet"
            agent.tell(status(kit("a", state=State.TROUBLE), kit("b")))
            then = await stream.until("kit-a")
            assert "kit-b" not in then["parts"]
            assert then["says"] == ["a: trouble, link: its port went away"]
            assert then["title"] == "1 of 2 kits needs you · cellagent"


async def test_an_agent_that_ends_and_comes_back_is_told(agent: FakeAgent, tmp_path: Path) -> None:
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        await until_shown(browser, "1 kit, all well")
        await agent.stop()
        text = await until_shown(browser, "Not live since")
        assert "Unknown" in text, "no state is known any more"
        await agent.start()
        await until_shown(browser, "Live ")
        await until_shown(browser, "1 kit, all well")


async def test_kits_that_have_not_changed_are_sent_once_and_those_that_went_are_gone(
    agent: FakeAgent, tmp_path: Path
) -> None:
    agent.tell(status(kit("a"), kit("b")), ["a", "b"])
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        await until_shown(browser, "2 kits, all well")
        agent.tell(status(kit("b", state=State.TROUBLE)), ["a", "b"])
        text = await until_shown(browser, "1 of 2 kits needs you")
        assert text.index("kit-b") < text.index("kit-a")
        agent.tell(status(), ["a"])
        assert "kit-b" not in await until_shown(browser, "1 kit, all well")


async def test_without_an_agent_it_says_what_to_start(tmp_path: Path) -> None:
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        assert "cellagent run" in await until_shown(browser, "the agent does not run")


async def test_what_is_not_there_and_what_is_not_a_file_of_the_page(
    agent: FakeAgent, tmp_path: Path
) -> None:
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        await until_shown(browser, "all well")
        for path in (
            "/nothing",
            "/kits/b",
            "/kits/b/signal.csv",
            "/kits/a/x",
            "/events/x",
            "/static/none.css",
            "/static/..%2Fserver.py",
            "/static/" + "a" * 300 + ".css",
            "/static/page.py",
        ):
            assert (await browser.get(path)).status_code == 404, path
        for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript")):
            answer = await browser.get(f"/static/{name}")
            assert answer.headers["content-type"].startswith(kind)


@pytest.mark.parametrize("called", ["a", "rack 1/dock #3", "wer? 50%"])
async def test_a_kit_is_opened_by_its_name_and_its_files_are_downloaded(
    agent: FakeAgent, tmp_path: Path, called: str
) -> None:
    agent.tell(status(kit(called)))
    address = kits.address(kit(called))
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        text = await until_shown(browser, "all well")
        assert f'href="{address}"' in text
        assert f"<h1>{called}</h1>" in (await browser.get(address)).text
        for name, kind, begins in (
            ("signal.csv", "text/csv", "at,"),
            ("signal.svg", "image/svg+xml", "<svg"),
            ("console.txt", "text/plain", ""),
        ):
            answer = await browser.get(f"{address}/{name}")
            assert answer.text.startswith(begins)
            saved_as = f"attachment; filename*=UTF-8''{quote(f'{called}-{name}', safe='')}"
            assert answer.headers["content-disposition"] == saved_as
            assert answer.headers["content-type"].startswith(kind)


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("console.txt", "before anybody looked"),
        ("recording.txt", "> AT+CGMR"),
        ("recording.txt?from=2026-01-01T10:00:00Z&to=", "> AT+CGMR"),
        ("recording.txt?from=2026-01-01T10:00:00", "> AT+CGMR"),
        ("?match=somebody", "0 of 1"),
        ("?level=error", "0 of 1"),
        ("?at=2026-01-01T10:00:00", "Around "),
    ],
)
async def test_a_file_of_a_kit_that_nobody_has_opened_holds_what_happened_to_it(
    agent: FakeAgent, tmp_path: Path, name: str, holds: str
) -> None:
    agent.print("before anybody looked")
    agent.happen(AT, "> AT+CGMR")
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        at = f"/kits/a{name if name.startswith('?') else f'/{name}'}"
        assert holds in (await browser.get(at)).text


@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59Z"]
)
async def test_a_moment_at_the_end_of_the_calendar_is_passed_over(
    agent: FakeAgent, tmp_path: Path, at: str
) -> None:
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        answer = await browser.get(f"/kits/a?at={at}")
        assert (answer.status_code, "<h1>a</h1>" in answer.text) == (200, True)


async def test_no_file_is_made_of_a_time_that_cannot_be_read_and_none_without_an_agent(
    agent: FakeAgent, tmp_path: Path
) -> None:
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        answer = await browser.get("/kits/a/recording.txt?from=2026-11-28T10:00:00+01:00")
        assert answer.status_code == 404
        assert "from=2026-11-28T10:00:00 01:00: write a time as" in answer.text
    async with page_of(tmp_path / "other") as page, browser_at(page) as browser:
        answer = await browser.get("/kits/a/console.txt")
        assert answer.status_code == 503
        assert "the agent does not run" in answer.text


async def test_no_file_is_made_of_a_kit_that_is_not_heard_yet(
    agent: FakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.page.views._FILE_S", 0.05)
    monkeypatch.setattr(agent, "_tell_moments", lambda *_: None)
    async with page_of(tmp_path) as page, browser_at(page) as browser:
        await until_shown(browser, "all well")
        answer = await browser.get("/kits/a/console.txt")
        assert answer.status_code == 503
        assert "what a does is not heard yet" in answer.text


async def test_who_looks_at_the_same_at_the_same_time_is_shown_the_same(tmp_path: Path) -> None:
    now = datetime(2026, 11, 22, tzinfo=UTC)
    here = ControlSocket(tmp_path / "none.sock")
    subject = Subject("lab", partial(ledger_in, tmp_path, writes=False))
    views = Views(subject, AgentFeed(here, lambda: now), here)

    def shown(**query: str) -> View:
        return views.view("/kits", query)

    first = shown(state="well", density="rows")
    assert shown(density="rows", state="well") is first
    assert shown() is not first
    views.wake()
    then = shown(state="well", density="rows")
    assert then is not first
    now += timedelta(seconds=1)
    assert shown(state="well", density="rows") is not then


async def test_the_token_of_a_link_is_in_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with page_of(tmp_path) as page:
        link = page.link()
        async with httpx.AsyncClient() as browser:
            await browser.get(link)
    token = link.partition("token=")[2]
    ours = [each for each in caplog.records if not each.name.startswith("http")]
    assert token not in "".join(each.getMessage() for each in ours)
    assert not [each for each in ours if each.name.startswith("uvicorn")]


async def test_open_streams_do_not_keep_the_server_from_ending(
    agent: FakeAgent, tmp_path: Path
) -> None:
    async with (
        page_of(tmp_path) as page,
        browser_at(page) as browser,
        browser.stream("GET", "/events") as answer,
    ):
        stream = Stream(answer)
        await stream.until("kit-a")
        page.end()
        with pytest.raises(AssertionError, match="the stream ended"):
            await stream.until("never")


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "example.com:1", "[::]:0"])
async def test_only_loopback_is_listened_on_unless_there_is_a_certificate(
    tmp_path: Path, listen: str
) -> None:
    with pytest.raises(RefusedByRule, match="nothing is encrypted"):
        async with page_of(tmp_path, PageSettings(listen=listen)):
            pass


async def test_a_port_that_is_taken_is_named_with_the_way_out(tmp_path: Path) -> None:
    async with page_of(tmp_path) as page:
        taken = page.url.removeprefix("http://")
        with pytest.raises(UsageError, match=taken):
            async with page_of(tmp_path / "other", PageSettings(listen=taken)):
                pass


async def test_with_a_certificate_it_is_encrypted_and_called_by_its_names(tmp_path: Path) -> None:
    path = tmp_path / "page.pem"
    path.write_bytes(self_signed("kits.example"))
    settings = PageSettings(listen="127.0.0.1:0", certificate_file=str(path))
    async with page_of(tmp_path, settings) as page:
        assert page.url.startswith("https://kits.example:")
        port = page.url.rpartition(":")[2]
        async with httpx.AsyncClient(verify=False) as browser:
            known = {"host": f"kits.example:{port}"}
            url = f"https://127.0.0.1:{port}/kits"
            assert (await browser.get(url, headers=known)).status_code == 401
            assert (await browser.get(url, headers={"host": "other"})).status_code == 421


def test_no_system_has_it_speak_an_old_tls(tmp_path: Path) -> None:
    path = tmp_path / "page.pem"
    path.write_bytes(self_signed("kits.example"))
    settings = PageSettings(listen="127.0.0.1:0", certificate_file=str(path))
    context = _config(cast("Guard", None), settings).ssl
    assert context is not None
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert {cipher["protocol"] for cipher in context.get_ciphers()} == {"TLSv1.2", "TLSv1.3"}


@pytest.mark.parametrize(
    "content",
    [b"", b"-----BEGIN CERTIFICATE-----\nx\n", self_signed("*.example", "")],
    ids=["empty", "damaged", "of many hosts"],
)
async def test_a_certificate_that_is_none_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "page.pem"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"page\.pem"):
        async with page_of(tmp_path, PageSettings(listen=":0", certificate_file=str(path))):
            pass


@pytest.mark.parametrize("certificate", [b"", self_signed("127.0.0.1")], ids=["plain", "TLS"])
async def test_connections_that_say_nothing_leave_the_program_its_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: bytes
) -> None:
    monkeypatch.setattr("agent.listening.MOST_CONNECTIONS", 4)
    (path := tmp_path / "page.pem").write_bytes(certificate)
    settings = PageSettings(listen="127.0.0.1:0", certificate_file=str(path) if certificate else "")
    async with page_of(tmp_path, settings) as page, contextlib.AsyncExitStack() as stack:
        port = int(page.url.rpartition(":")[2])
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(6)]
        for _, writer in silent:
            stack.callback(writer.close)
        async with asyncio.timeout(30):
            assert [await reader.read() for reader, _ in silent[:2]] == [b"", b""]
        assert not any(reader.at_eof() for reader, _ in silent[2:])
        async with httpx.AsyncClient(verify=False) as browser:
            assert (await browser.get(f"{page.url}/kits")).status_code == 401


@pytest.mark.parametrize("turns", [1, 10])
async def test_a_page_whose_end_is_cancelled_serves_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, turns: int
) -> None:
    before = asyncio.all_tasks()
    ends = asyncio.Event()

    async def serve() -> None:
        async with page_of(tmp_path) as page:
            async with httpx.AsyncClient() as browser:
                await browser.get(page.url)  # so it has begun
            ends.set()

    served = asyncio.create_task(serve())
    await ends.wait()
    for _ in range(turns):
        await asyncio.sleep(0)
    served.cancel()
    await asyncio.wait([served])
    assert asyncio.all_tasks() == before
    assert caplog.messages == []
