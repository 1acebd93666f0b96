"""The page as a browser shows it: each view, small and large, light and dark, by keys alone."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from PIL import Image
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from agent.config.profile import PageSettings
from agent.daemon.recent import AT, DECISIONS, HTTP, NETWORK
from agent.daemon.snapshot import KitStatus, Reading, State
from agent.page.feed import AgentFeed
from agent.page.server import ServedPage
from tests.support.page.browsers import (
    PATIENCE_S,
    assert_as_recorded,
    assert_nothing_moves,
    assert_nothing_wider,
    browser,
    complaints,
    enter,
    first_paint,
    looked,
    needs_axe,
    needs_chromium,
    prefer,
    resize,
    until,
    until_text,
    violations,
)
from tests.support.page.page_agent import FakeAgent, page_of
from tests.support.page.page_bench import morning
from tests.support.page.page_fleet import fleet
from tests.support.page.page_kits import many
from tests.support.page.statuses import NOW, kit, status

pytestmark = [needs_chromium, pytest.mark.timeout(300)]


@needs_axe
async def test_no_view_breaks_a_rule_of_accessibility_or_scrolls_sideways(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    def look(page: ServedPage, paths: tuple[str, ...], words: str) -> None:
        for path in paths:
            enter(driver, page, path)
            until_text(driver, words)
            for scheme in ("light", "dark"):
                prefer(driver, prefers_color_scheme=scheme)
                assert violations(driver) == [], path
                assert_nothing_wider(driver, path)
            assert_nothing_moves(driver)
            assert complaints(driver) == [], path

    async with page_of(tmp_path) as page:
        agent.print("<err> os: ***** BUS FAULT *****")
        await looked(look, page, ("/kits", "/kits/lift-4", "/kits?state=well"), "Live")
        agent.tell(many())
        await looked(look, page, ("/kits", "/kits?density=cards"), "of 64 kits")
        await agent.stop()
        await looked(look, page, ("/kits",), "Not live since")
    async with page_of(tmp_path / "other") as page:
        await looked(look, page, ("/kits",), "cellagent run")


@needs_axe
@pytest.mark.parametrize(
    ("path", "words"),
    [("/kits", "6 kits need you"), ("/kits/lift-4", "Console live"), ("/bench", "First pass")],
)
async def test_of_a_server_that_went_away_no_state_is_shown_until_it_is_back(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver, path: str, words: str
) -> None:
    states = "[...document.querySelectorAll('main .i use')].map((use) => use.href.baseVal)"
    only_unknown = f"new Set({states}).size === 1 && {states}[0] === '#i-unk'"

    def seen() -> str:
        return str(driver.execute_script("return document.body.innerText"))

    def gone() -> None:
        until_text(driver, "Not live since")
        assert driver.execute_script(f"return {only_unknown}")
        assert driver.title.startswith("Not live since")
        for word in ("need you", "Trouble", "Attention", "Live", "since 22 Nov"):
            assert word not in seen()
        for scheme in ("light", "dark"):
            prefer(driver, prefers_color_scheme=scheme)
            assert violations(driver) == []

    running = morning()
    async with page_of(tmp_path, running=running) as page:
        await looked(enter, driver, page, path)
        await looked(until_text, driver, words)
        before, title = await looked(seen), driver.title
    await looked(gone)
    again = PageSettings(listen=urlsplit(page.url).netloc)
    async with page_of(tmp_path, again, running=running):
        await looked(until, driver, "!('gone' in document.documentElement.dataset)")
        await looked(until, driver, f"!({only_unknown})")
        await looked(until_text, driver, words)
        then, now = (re.sub(r"\d+ ?|s\b", "", text) for text in (before, await looked(seen)))
        assert then == now, "but for what counts the seconds"
        assert driver.title == title


async def test_a_kit_is_live_whatever_signs_its_name_has(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    agent.tell(status(kit("rack 1/dock #3? 50%")))

    def opened(page: ServedPage) -> None:
        enter(driver, page)
        until(driver, "'script' in document.documentElement.dataset")
        driver.switch_to.active_element.send_keys("j", Keys.ENTER)
        until(driver, "document.querySelector('h1').innerText === 'rack 1/dock #3? 50%'")

    async with page_of(tmp_path) as page:
        await looked(opened, page)
        agent.print("printed later")
        await looked(until_text, driver, "printed later")
        assert complaints(driver) == []
        agent.tell(status(kit("of another name")))
        await looked(until_text, driver, "or no longer has what it shows")
        agent.tell(status(kit("rack 1/dock #3? 50%")))
        await looked(until, driver, "!('gone' in document.documentElement.dataset)")


async def test_a_stream_that_is_silent_is_not_live_and_is_asked_again(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.page.server.CLOCK_S", 3600)
    later = "const now = performance.now.bind(performance); performance.now = () => now() + 20000"

    def look(page: ServedPage) -> None:
        enter(driver, page)
        until_text(driver, "3 of 6 kits need you")
        until(driver, "'script' in document.documentElement.dataset")
        driver.execute_script(later)
        until_text(driver, "Not live since")
        until_text(driver, "3 of 6 kits need you")
        assert "Not live" not in driver.title

    async with page_of(tmp_path) as page:
        await looked(look, page)


async def test_the_page_is_walked_by_keys_alone(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    def press(*keys: str) -> None:
        for key in keys:
            driver.switch_to.active_element.send_keys(key)

    def focused() -> str:
        return str(driver.switch_to.active_element.text)

    def walk(page: ServedPage) -> None:
        enter(driver, page)
        until(driver, "'script' in document.documentElement.dataset")
        press("j", "j")
        second = focused()
        press("j", "k")
        assert focused() == second
        press(Keys.ENTER)
        until(driver, f"document.querySelector('h1').innerText === {second!r}")
        until(driver, "'script' in document.documentElement.dataset")
        press("/")
        assert driver.switch_to.active_element.get_attribute("name") == "match"
        press("p", Keys.ESCAPE)
        assert not driver.execute_script("return 'paused' in document.documentElement.dataset")
        press("p")
        until(driver, "document.getElementById('pause').innerText === 'Go on'")
        press("?")
        until(driver, "document.getElementById('keys').open")
        press(Keys.ESCAPE)
        until(driver, "!document.getElementById('keys').open")
        press(Keys.ESCAPE)
        until(driver, "location.pathname === '/kits'")
        press(Keys.TAB)
        assert focused() == "To the content"

    async with page_of(tmp_path) as page:
        await looked(walk, page)


async def test_64_kits_that_change_all_the_time_are_shown_as_they_are_and_leave_nothing_behind(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    names = [f"slot-{number:02}" for number in range(64)]
    kinds = {State.WELL: "ok", State.TROUBLE: "bad"}

    def changed(number: int) -> KitStatus:
        """Return what a kit has become by its next change; by the fifth each was in trouble."""
        turn, at = divmod(number, len(names))
        newest = Reading(NOW + timedelta(seconds=number), rsrp_dbm=-70 - at, snr_db=turn)
        state = State.TROUBLE if (at + turn) % 5 == 0 else State.WELL
        return kit(names[at], state=state, since=newest.at, reading=newest)

    def until_shown(turn: int) -> None:
        rows = "[...document.querySelectorAll('.row')].map((row) => row.id + row.className).sort()"
        of_turn = map(changed, range(64 * turn, 64 * (turn + 1)))
        expected = sorted(f"kit-{each.name}row {kinds[each.state]}" for each in of_turn)
        until(driver, f"JSON.stringify({rows}) === {json.dumps(expected)!r}.replaceAll(', ', ',')")

    def nodes() -> float:
        driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        found = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(float(each["value"]) for each in found if each["name"] == "Nodes")

    def no_more_than(before: float) -> None:
        WebDriverWait(driver, PATIENCE_S).until(lambda _: nodes() <= 1.05 * before)
        kept = "return performance.getEntriesByType('measure').length"
        assert driver.execute_script(kept) == 0
        assert complaints(driver) == []

    async with page_of(tmp_path) as page:
        agent.tell(status(*map(changed, range(64))), names)
        await looked(enter, driver, page)
        await looked(driver.execute_cdp_cmd, "Performance.enable", {})
        before = 0.0
        for turn in range(12):
            for number in range(64 * turn, 64 * (turn + 1)):
                agent.tell(status(changed(number)), names)
                await asyncio.sleep(0)
            await looked(until_shown, turn)
            before = before if turn > 4 else await looked(nodes)
        await looked(no_more_than, before)


async def test_a_long_name_has_room_in_a_row_on_a_phone(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    name = "greenhouse-north-row-17-gateway"
    agent.tell(status(kit(name, state=State.ATTENTION)))

    def lines(page: ServedPage) -> float:
        enter(driver, page, "/kits?density=rows")
        until_text(driver, name)
        resize(driver, 360)
        of_name = "getComputedStyle(document.querySelector('.row .name'))"
        return float(
            driver.execute_script(
                f"return parseFloat({of_name}.height) / parseFloat({of_name}.lineHeight)"
            )
        )

    async with page_of(tmp_path) as page:
        assert await looked(lines, page) < 3


async def test_two_browsers_see_a_change_and_the_agent_end_and_come_back(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    with browser() as other:
        async with page_of(tmp_path) as page:
            for each in (driver, other):
                await looked(enter, each, page)
                await looked(until_text, each, "3 of 6 kits need you")
            agent.tell(status(kit("new", state=State.TROUBLE)))
            for each in (driver, other):
                await looked(until_text, each, "1 of 1 kit needs you")
            await agent.stop()
            for each in (driver, other):
                await looked(until_text, each, "Not live since")
            await agent.start()
            for each in (driver, other):
                await looked(until, each, "document.getElementById('gone').hidden")
                await looked(until_text, each, "Live")


@pytest.mark.parametrize(("name", "path"), [("kits", "/kits"), ("kit", "/kits/lift-4")])
async def test_without_a_script_the_first_paint_is_the_recorded_picture(
    agent: FakeAgent,
    tmp_path: Path,
    driver: WebDriver,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    path: str,
) -> None:
    monkeypatch.setattr("agent.page.server.AgentFeed", partial(AgentFeed, now=lambda: NOW))
    agent.recent.clock = NOW.timestamp
    for text in ("> AT%XMONITOR", "< %XMONITOR: 1", "< OK"):
        agent.happen(AT, text)
    agent.happen(HTTP, "POST /v1/location/ground-fix 200, 38 ms")
    agent.happen(NETWORK, "registered, home network")
    agent.happen(DECISIONS, "console: the kit crashed: hard fault", "warning")
    agent.print("<inf> sensor: temperature 31.4 C, signal -119 dBm")
    agent.print("<err> os: ***** BUS FAULT *****")

    def take(page: ServedPage) -> Image.Image:
        enter(driver, page, path)
        until_text(driver, "BUS FAULT" if name == "kit" else "need you")
        taken = first_paint(driver, page.url + path)
        prefer(driver, prefers_reduced_motion="reduce")
        assert first_paint(driver, page.url + path) == taken
        return taken

    async with page_of(tmp_path) as page:
        assert_as_recorded(await looked(take, page), f"page-{name}")


def test_a_fleet_with_faults_is_shown_by_the_agent_itself(
    tmp_path: Path, driver: WebDriver
) -> None:
    with fleet(tmp_path) as served:
        with served.agent("--page", "127.0.0.1:0") as running:
            served.crash()
            resize(driver, 1280, 3000)  # a card outside of the window has no innerText
            driver.get(served.command("page")["link"])
            until_text(driver, "the kit crashed: hard fault")
            until_text(driver, "4 of 6 kits need you")  # the services know the other two
            until_text(driver, "The modem sees no SIM.")
            until_text(driver, "EMM 15")
            until_text(driver, "there is no port")
            driver.get(driver.current_url.replace("/kits", "/kits/lift-4"))
            until_text(driver, "***** HARD FAULT *****")  # from before the page was looked at
            until(driver, "/AT [1-9]/.test(document.getElementById('lane-at').textContent)")
            # At once: the list grows, and what is under a pointer moves.
            until(driver, "(a => a && !a.click())(document.querySelector('#decisions a'))")
            until_text(driver, "Around ")
            clock = "document.getElementById('clock').textContent"
            painted = driver.execute_script(f"return {clock}")
            until(driver, f"{clock} !== {painted!r}")  # its script runs, and is told the time
            at = urlsplit(driver.current_url).netloc
            running.kill()
        until_text(driver, "Not live since")
        with served.agent("--page", at):
            # It comes back by itself, with what the new agent knows.
            until(driver, "!document.body.innerText.includes('Not live since')")
            driver.get(f"http://{at}/kits")
            until_text(driver, "EMM 15")


async def test_who_reads_the_page_in_the_dark_prints_it_in_black(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    def printed(page: ServedPage) -> str:
        enter(driver, page)
        driver.execute_script("document.documentElement.dataset.theme = 'dark'")
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        return str(driver.execute_script("return getComputedStyle(document.body).color"))

    async with page_of(tmp_path) as page:
        assert await looked(printed, page) == "rgb(20, 24, 28)"


async def test_a_chart_is_saved_as_a_picture(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    saved = folder / "right-signal.png"

    def save(page: ServedPage) -> None:
        enter(driver, page, "/kits/right")
        allow = {"behavior": "allow", "downloadPath": str(folder)}
        driver.execute_cdp_cmd("Page.setDownloadBehavior", allow)
        driver.find_element("link text", "as PNG").click()
        WebDriverWait(driver, PATIENCE_S).until(lambda _: saved.is_file())
        assert complaints(driver) == []

    async with page_of(tmp_path) as page:
        await looked(save, page)
    with Image.open(saved) as picture:
        assert picture.size == (1920, 960)
        assert len(picture.convert("RGB").getcolors(1 << 21) or []) > 5
