"""Who may see the page: by a link that works once, from its own address, by its cookie."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse

from agent.errors import ConfigError
from agent.page.access import COOKIE_S, LINK_S, Guard, Links, signing_key

HOST = "127.0.0.1:8642"


class Clocks:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def made() -> tuple[Links, Clocks]:
    clocks = Clocks()
    return Links(b"k" * 32, clock=clocks, calendar=clocks), clocks


def client(links: Links, *, scheme: str = "http", cookie: str | None = None) -> httpx.AsyncClient:
    shown = PlainTextResponse("shown")
    app = Guard(
        shown, links, [HOST, "localhost:8642"], scheme, lambda: PlainTextResponse("refused", 401)
    )
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url=f"{scheme}://{HOST}",
        cookies={"cellagent-8642": cookie} if cookie else None,
    )


def test_a_link_is_exchanged_once_and_in_time() -> None:
    links, clocks = made()
    first, second = links.new(), links.new()
    for wrong in ("", first[:-1], f"{first}x", "\udcff"):
        assert links.exchange(wrong) is None, "it is none, and takes none away"
    cookie = links.exchange(first)
    assert cookie is not None
    assert links.knows(cookie)
    assert links.exchange(first) is None, "it was used"
    clocks.now += LINK_S + 1
    assert links.exchange(second) is None, "it is too old"


def test_of_many_links_the_oldest_works_no_more() -> None:
    links, _ = made()
    first = links.new()
    others = [links.new() for _ in range(8)]
    assert links.exchange(first) is None
    assert all(links.exchange(other) for other in others)


def test_a_cookie_is_known_after_a_restart_and_not_for_ever() -> None:
    links, clocks = made()
    cookie = links.exchange(links.new()) or ""
    again = Links(b"k" * 32, calendar=clocks)
    assert again.knows(cookie)
    assert not again.knows(links.act_token()), "what allows acts is no cookie"
    assert not Links(b"other" * 8, calendar=clocks).knows(cookie)
    clocks.now += COOKIE_S + 1
    assert not again.knows(cookie)


@pytest.mark.parametrize("cookie", ["", ".", "1e9.", "nan.00", "9999999999.00", "é.é"])
def test_a_cookie_that_was_made_up_is_not_known(cookie: str) -> None:
    assert not made()[0].knows(cookie)


def test_a_token_for_acts_is_no_cookie_whatever_stands_before_it() -> None:
    links, _ = made()
    token = links.act_token()
    assert links.may_act(token)
    for written in (token, f"acts {token}", f"sees {token}"):
        assert not links.knows(written)


async def test_a_link_becomes_a_cookie_that_scripts_and_other_sites_do_not_get() -> None:
    links, _ = made()
    token = links.new()
    async with client(links) as browser:
        answer = await browser.get("/", params={"token": token})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert f"Max-Age={COOKIE_S};" in cookie
        assert token not in cookie
        assert (await browser.get("/kits")).text == "shown"
        assert (await browser.get("/", params={"token": token})).status_code == 401
    async with client(links, scheme="https") as browser:
        answer = await browser.get("/", params={"token": links.new()})
        assert "Secure" in answer.headers["set-cookie"]


async def test_without_the_cookie_only_style_and_script_are_served() -> None:
    links, _ = made()
    async with client(links) as browser:
        for path in ("/kits", "/events", "/", "/?token=x", "/report.csv"):
            assert (await browser.get(path)).status_code == 401, path
        posted = await browser.post("/", params={"token": links.new()})
        assert (posted.status_code, "set-cookie" in posted.headers) == (401, False)
        assert (await browser.get("/static/page.css")).text == "shown"
        assert (await browser.get("/kits", headers={"cookie": 'x="'})).status_code == 401


async def test_another_host_or_origin_is_refused_before_anything_else() -> None:
    links, _ = made()
    cookie = links.exchange(links.new())
    async with client(links, cookie=cookie) as browser:
        assert (await browser.get("/kits")).status_code == 200
        for host in ("evil.example:8642", "127.0.0.1", "127.0.0.1:80", ""):
            assert (await browser.get("/kits", headers={"host": host})).status_code == 421
        own = {"host": "LOCALHOST:8642", "origin": "http://localhost:8642"}
        assert (await browser.get("/kits", headers=own)).status_code == 200
        for origin in ("http://evil.example", "null", "https://127.0.0.1:8642"):
            answer = await browser.get("/kits", headers={"origin": origin})
            assert answer.status_code == 403


async def test_every_answer_forbids_what_the_page_does_not_need() -> None:
    links, _ = made()
    async with client(links) as browser:
        for answer in (await browser.get("/kits"), await browser.get("/x", headers={"host": "e"})):
            policy = dict(
                one.strip().split(" ", 1)
                for one in answer.headers["content-security-policy"].split(";")
            )
            nothing = dict.fromkeys(("default-src", "base-uri", "frame-ancestors"), "'none'")
            own = ("script-src", "style-src", "img-src", "connect-src", "form-action")
            assert policy == nothing | dict.fromkeys(own, "'self'")
            for name in ("cross-origin-opener-policy", "cross-origin-resource-policy"):
                assert answer.headers[name] == "same-origin"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["cache-control"] == "no-store"


def test_the_key_of_the_cookies_is_private_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "page.key"
    key = signing_key(path)
    assert len(key) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    assert signing_key(path) == key
    path.chmod(0o644)
    with pytest.raises(ConfigError):
        signing_key(path)
