"""The page as a browser shows it: each view, small and large, light and dark, by keys alone."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from browsers import (
    PATIENCE_S,
    assert_as_recorded,
    assert_nothing_moves,
    assert_nothing_wider,
    browser,
    complaints,
    first_paint,
    needs_axe,
    needs_chromium,
    prefer,
    resize,
    until,
    until_text,
    violations,
)
from page_agent import FakeAgent, page_of
from page_bench import morning
from page_fleet import fleet
from PIL import Image
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from statuses import NOW, kit, status

from agent.config.profile import PageSettings
from agent.daemon.recent import AT, DECISIONS, HTTP, NETWORK
from agent.daemon.snapshot import (
    AgentStatus,
    Cell,
    ConsoleStatus,
    Crash,
    FotaStatus,
    KitStatus,
    LastPosition,
    LikelyCause,
    LocationStatus,
    Place,
    Reading,
    State,
)
from agent.page.feed import AgentFeed
from agent.page.server import ServedPage

pytestmark = [needs_chromium, pytest.mark.timeout(300)]
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=alert(1)>\x1b[31m\u202e"
CAUSE = LikelyCause(
    "emm-15",
    "certain",
    "The network denies registration: no suitable cells in tracking area (EMM 15).",
    '+CEREG: 3,"0901","02024721",7,0,15',
    "Ask the SIM's provider whether LTE-M is in its plan here.",
)


def heard(name: str, level: int, **link: Any) -> KitStatus:
    """Return a kit with an hour of readings around a level, a cell and a position."""
    history = [
        Reading(
            NOW - timedelta(minutes=minute),
            rsrp_dbm=level + (minute * 7) % 5,
            snr_db=(level + 110) / 2 + minute % 3,
            supply_mv=3710,
            temperature_c=24,
        )
        for minute in range(50, -1, -1)
    ]
    cell = Cell(plmn="00101", phys_cell_id=247, earfcn=6400, band=20)
    facts = {"model": "nRF9161", "firmware": "mfw_nrf91x1_2.0.4", "registration": 1, **link}
    one = kit(name, reading=history[-1], history=history, cell=cell, **facts)
    place = one.concern(LocationStatus)
    at = NOW - timedelta(minutes=9)
    place.position = LastPosition(at.isoformat(), "Wi-Fi", 63.42, 10.39, 22, None, 0, 7, [], [])
    place.track = [Place(63.42 + n * 1e-4, 10.39 - n * n * 3e-5) for n in range(4, -1, -1)]
    return one


def six() -> AgentStatus:
    """Return one kit of each state, and one that crashed."""
    early = NOW - timedelta(minutes=38)
    denied = heard("dock-3", -97, state=State.TROUBLE, since=early, cause=CAUSE, registration=3)
    crashed = heard("lift-4", -118, state=State.WELL)
    crashed.state = State.ATTENTION
    console = crashed.concern(ConsoleStatus)
    console.state, console.faults = State.ATTENTION, 3
    console.crash = Crash(NOW - timedelta(minutes=2), "hard fault in sensor_fetch", "0x0002f41e")
    working = heard("gate-2", -86)
    fota = working.concern(FotaStatus)
    working.state = fota.state = State.WORKING
    fota.stage, fota.done, fota.total, fota.proof = "download", 412_000, 676_000, "size-checked"
    lent = kit("left", state=State.UNKNOWN, busy_with="lent to west flash (PID 8123)")
    return status(denied, kit("yard-1", state=State.TROUBLE), crashed, lent, working,
                  heard("right", -78))  # fmt: skip


def many() -> AgentStatus:
    """Return 64 kits of every state."""
    states = list(State)
    return status(*(kit(f"slot-{n:02}", state=states[n % 5]) for n in range(64)))


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    running = FakeAgent(tmp_path)
    running.tell(six())
    await running.start()
    yield running
    await running.stop()


async def looked(work: Callable[..., Any], *arguments: Any) -> Any:
    """Do what blocks in a thread: the page is served by this loop."""
    return await asyncio.to_thread(work, *arguments)


def enter(driver: WebDriver, page: ServedPage, path: str = "/kits") -> None:
    """Open a link, then a view; forget what was logged before."""
    resize(driver, 1280)
    driver.get(page.link())
    driver.get(page.url + path)
    driver.get_log("browser")


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
    ("path", "words"), [("/kits", "Live"), ("/kits/lift-4", "Live"), ("/bench", "First pass")]
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
        for word in ("need you", "Trouble", "Attention", "Live"):
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


async def test_what_a_kit_prints_or_is_called_is_shown_and_does_nothing(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    bad = kit("a", state=State.TROUBLE, model=HOSTILE, firmware=HOSTILE)
    bad.concerns[0].trouble = HOSTILE
    agent.tell(status(bad))

    def look(page: ServedPage) -> None:
        enter(driver, page, "/kits/a")
        until_text(driver, "BIG")
        until_text(driver, "<script>document.title='owned'</script>")
        until_text(driver, "a line of 10000003 characters")
        assert (
            driver.execute_script("return document.querySelectorAll('main script, main img')") == []
        )
        assert driver.title == "a: trouble · cellagent"
        assert complaints(driver) == []
        driver.get(f"{page.url}/kits")
        until_text(driver, "<img src=x onerror=alert(1)>␛[31m⟨U+202E⟩")
        assert complaints(driver) == []

    agent.print(HOSTILE)
    agent.print("BIG" + "x" * 10_000_000)
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


async def test_a_console_is_followed_and_a_pause_loses_nothing(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    async with page_of(tmp_path) as page:
        await looked(enter, driver, page, "/kits/right")
        agent.print("first")
        await looked(until_text, driver, "first")
        await looked(driver.execute_script, "document.getElementById('pause').click()")
        agent.print("second")
        await looked(until_text, driver, "2 lines kept")
        assert "second" not in await looked(driver.execute_script, _LINES)
        await looked(driver.execute_script, "document.getElementById('pause').click()")
        await looked(until_text, driver, "second")


async def test_what_a_console_shows_is_copied_and_a_moment_is_opened_by_keys(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    around = "document.querySelector('#around h2 time')?.dateTime"

    def look(page: ServedPage) -> None:
        enter(driver, page, "/kits/right")
        until_text(driver, "error: two")
        driver.find_element("id", "copy").click()
        until_text(driver, "Copied 2 lines")
        until(driver, "document.getElementById('copy').innerText === 'Copy'")
        field = driver.find_element("css selector", "#console input")
        field.send_keys(Keys.CONTROL + "v")
        pasted = until(driver, "document.querySelector('#console input').value")
        assert re.fullmatch(r"[0-9:]{8} one ?[0-9:]{8} error: two ?", pasted), pasted
        field.clear()
        press = driver.find_element("tag name", "body").send_keys
        press(Keys.ARROW_LEFT)
        opened = until(driver, around)
        assert driver.execute_script("return location.hash") == "#around"
        driver.find_element("tag name", "body").send_keys(Keys.ARROW_LEFT)
        until(driver, f"{around} < {opened!r}")
        driver.find_element("tag name", "body").send_keys(Keys.ARROW_RIGHT)
        until(driver, f"{around} === {opened!r}")
        assert complaints(driver) == []

    for text in ("one", "error: two"):
        agent.print(text)
    agent.happen(DECISIONS, "console: the kit crashed")
    async with page_of(tmp_path) as page:
        await looked(look, page)


_LINES = "return document.getElementById('lines').innerText"


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

        def link() -> str:
            done = subprocess.run(
                [sys.executable, "-m", "agent", "page", "--json"],
                env={**os.environ, **served.environment},
                capture_output=True,
                text=True,
                check=True,
            )
            return str(json.loads(done.stdout)["link"])

        with served.agent("--page", "127.0.0.1:0") as running:
            resize(driver, 1280, 3000)  # a card outside of the window has no innerText
            driver.get(link())
            until_text(driver, "The modem sees no SIM.")
            until_text(driver, "EMM 15")
            until_text(driver, "the kit crashed: hard fault")
            until_text(driver, "there is no port")
            driver.get(driver.current_url.replace("/kits", "/kits/lift-4"))
            until_text(driver, "***** HARD FAULT *****")  # from before the page was looked at
            until(driver, "/AT [1-9]/.test(document.getElementById('lane-at').textContent)")
            driver.find_element("css selector", "#decisions a").click()
            until_text(driver, "Around ")
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
