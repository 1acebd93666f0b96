"""The bench in a browser: heard, scanned, walked by keys, read from afar, and drawn as recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from PIL import Image
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.keys import Keys

from agent.page.bench_feed import RunningBench
from agent.page.feed import AgentFeed
from agent.page.server import ServedPage
from tests.support.page.browsers import (
    assert_as_recorded,
    assert_nothing_moves,
    assert_nothing_wider,
    complaints,
    enter,
    first_paint,
    needs_axe,
    needs_chromium,
    prefer,
    resize,
    until,
    until_text,
    violations,
)
from tests.support.page.page_agent import FakeAgent, page_of
from tests.support.page.page_bench import FAILED, bench_of, end, morning, place, plug, record

NOW = datetime(2026, 11, 22, 6, 10, 2, tzinfo=UTC)
HOSTILE = "=cmd()<script>document.title='owned'</script>\x1b[31m"
CUT_OFF = """return [...document.querySelectorAll('main *')].filter((each) =>
  getComputedStyle(each).overflowY === 'auto' && each.scrollHeight > each.clientHeight
).map((each) => each.className)"""
ENDED = {name: value for name, value in FAILED.items() if name != "hint"}


@needs_chromium
@needs_axe
@pytest.mark.timeout(300)
async def test_an_operator_hears_a_failure_and_scans_from_anywhere(
    tmp_path: Path, driver: WebDriver
) -> None:
    running = bench_of(2, 2)
    plug(running, [place(1, 1), place(1, 2)])
    tones = "performance.getEntriesByName('tone').length"

    def opened(page: ServedPage) -> None:
        resize(driver, 1280)
        driver.get(page.link())
        until_text(driver, "Control on")
        until(driver, "location.hash === '' && location.pathname === '/bench'")
        until_text(driver, "Sound on")
        driver.find_element("tag name", "h1").click()

    def scanned() -> None:
        driver.execute_script("document.activeElement.blur()")
        driver.find_element("tag name", "body").send_keys("m" + "a1" + Keys.ENTER)
        until_text(driver, "ma1 is no slot of this tray")
        until_text(driver, "Sound on")  # m was no key of the page's
        driver.switch_to.active_element.send_keys("a1" + Keys.ENTER)
        until_text(driver, "A1 is tried again")

    async with page_of(tmp_path, running=running, control=True) as page:
        await asyncio.to_thread(opened, page)
        end(running, place(1, 1), **FAILED)
        await asyncio.to_thread(until, driver, f"{tones} === 1")
        await asyncio.to_thread(until_text, driver, "1 of 4 slots needs a hand")
        await asyncio.to_thread(scanned)
        assert complaints(driver) == []


@needs_chromium
@pytest.mark.timeout(300)
@pytest.mark.parametrize("control", [False, True])
async def test_the_bench_is_walked_by_keys_alone(
    tmp_path: Path, driver: WebDriver, *, control: bool
) -> None:
    read = "return document.activeElement.innerText || document.activeElement.name"

    def press(*keys: str) -> None:
        for key in keys:
            driver.switch_to.active_element.send_keys(key)

    def walked() -> list[str]:
        """Return what each press of Tab comes to, up to the theme, which is the last."""
        found: list[str] = []
        while not found or "system" not in found[-1]:
            press(Keys.TAB)
            found.append(str(driver.execute_script(read)).partition("\n")[0])
            ring = "getComputedStyle(document.activeElement).outlineWidth"
            assert driver.execute_script(f"return {ring}") == "3px", found[-1]
            assert len(found) < 30
        return found

    def walk(page: ServedPage) -> None:
        resize(driver, 1280)
        # After five seconds without a key the scan field has the focus, on a slow machine too soon.
        still = {"source": "performance.now = () => 0"}
        stilled = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", still)
        driver.get(page.link())
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", stilled)
        until_text(driver, "Sound o")
        ways = ["To the content", "Kits", "Bench", "Report"]
        acts = ["line", "operator", "lot", "Set"] if control else []
        hands = ["Hands needed: 3", "cellagent modem check", "cellagent run --print-udev"]
        assert walked() == [*ways, *acts, "Sound on", *hands, "system"]
        press(Keys.SHIFT + Keys.TAB, Keys.ENTER)
        until(driver, "/(Copied|Selected): cellagent run --print-udev/"
                      ".test(document.getElementById('says').innerText)")  # fmt: skip
        assert driver.execute_script("return getSelection().toString()") == hands[2]
        press(Keys.F2)
        driver.find_element("tag name", "body").send_keys("m")
        if control:
            assert driver.execute_script(read) == "line", "what is typed is a scan"
            until_text(driver, "Sound on")
            press("B2", Keys.ENTER)
            until_text(driver, "mB2 is no slot of this tray")
            press("B2", Keys.ENTER)
            until_text(driver, "B2 is tried again")
            return
        until_text(driver, "Sound off")
        press("?")
        until(driver, "document.getElementById('keys').open")
        press(Keys.ESCAPE)
        press("g", "r")
        until(driver, "location.pathname === '/report'")
        driver.find_element("tag name", "body").send_keys("gb")
        until(driver, "location.pathname === '/bench'")

    record(tmp_path, datetime.now(UTC))
    async with page_of(tmp_path, running=morning(), control=control) as page:
        await asyncio.to_thread(walk, page)
        assert complaints(driver) == []


@needs_chromium
@pytest.mark.timeout(300)
async def test_a_board_that_came_from_nowhere_is_shown_and_what_it_says_does_nothing(
    tmp_path: Path, driver: WebDriver
) -> None:
    running = bench_of(1, 1)
    running.bench.tray.layout = None
    record(tmp_path, datetime.now(UTC), **{**ENDED, "reason": HOSTILE})

    def look(page: ServedPage) -> None:
        driver.get(page.link())
        until_text(driver, "1 slot, none needs a hand")

    def hostile(page: ServedPage) -> None:
        until_text(driver, "4 slots")
        until_text(driver, "=cmd()<script>")
        driver.get(f"{page.url}/report")
        until_text(driver, "=cmd()<script>document.title='owned'</script>␛[31m")
        assert "owned" not in driver.title
        assert complaints(driver) == []

    async with page_of(tmp_path, running=running) as page:
        await asyncio.to_thread(look, page)
        plug(running, [place(2, 1), place(2, 2), place(2, 3)])
        end(running, place(2, 2), **{**FAILED, "reason": HOSTILE})
        await asyncio.to_thread(hostile, page)


@needs_chromium
@needs_axe
@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", [(4, 4), (8, 8)])
async def test_the_bench_and_its_report_break_no_rule_of_accessibility_at_any_size(
    tmp_path: Path, driver: WebDriver, size: tuple[int, int]
) -> None:
    running = morning() if size == (4, 4) else bench_of(*size)
    record(tmp_path, datetime.now(UTC), **ENDED)

    def look(page: ServedPage) -> None:
        driver.get(page.link())
        for path in ("/bench", "/report", "/report?period=all"):
            driver.get(page.url + path)
            until_text(driver, "Yield")
            for scheme in ("light", "dark"):
                prefer(driver, prefers_color_scheme=scheme)
                assert violations(driver) == [], path
                assert_nothing_wider(driver, path)
            assert_nothing_moves(driver)
        assert complaints(driver) == []

    async with page_of(tmp_path, running=running, control=True) as page:
        await asyncio.to_thread(look, page)


def eight_by_eight() -> RunningBench:
    running = bench_of(8, 8)
    places = [place(row, column) for row in range(1, 9) for column in range(1, 9)]
    plug(running, places)
    for each in places[:60]:
        end(running, each, **(FAILED if each.usb_place == "1-2.2" else {}))
    running.bench.begin(places[60])
    return running


@needs_chromium
async def test_paper_has_all_that_a_screen_scrolls_to(
    agent: FakeAgent, tmp_path: Path, driver: WebDriver
) -> None:
    for number in range(40):
        record(tmp_path, datetime.now(UTC), **ENDED)
        agent.print(f"line {number}")

    def look(page: ServedPage) -> None:
        for path, words in (("/report", "The newest 40 runs"), ("/kits/lift-4", "line 39")):
            enter(driver, page, path)
            until_text(driver, words)
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
            resize(driver, 720)
            assert driver.execute_script(CUT_OFF) == [], path
            assert driver.execute_script("return document.documentElement.scrollWidth") <= 720
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

    async with page_of(tmp_path, running=morning()) as page:
        await asyncio.to_thread(look, page)


@needs_chromium
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("tray", "least"), [(morning, (47, 47)), (eight_by_eight, (36, 28))], ids=["16", "64"]
)
async def test_names_and_words_of_a_tray_are_read_from_afar(
    tmp_path: Path, driver: WebDriver, tray: Callable[[], RunningBench], least: tuple[int, int]
) -> None:
    """16 minutes of arc at 2 m are 47 px of a 24 inch screen of 1920x1080 (ISO 9241-303).

    Of 64 slots names are read at 1.5 m and words at 1.2 m.
    """

    def sizes(page: ServedPage) -> tuple[float, ...]:
        resize(driver, 1920, 1080)
        driver.get(page.link())
        until_text(driver, "Yield")
        tall = driver.execute_script("return document.documentElement.scrollHeight")
        assert tall <= 1080, "the whole tray is seen without scrolling"
        cut = "[...document.querySelectorAll('.slot > *')].filter((each) => each.checkVisibility()"
        cut += " && each.getBoundingClientRect().bottom > each.parentElement."
        cut += "getBoundingClientRect().bottom).map((each) => each.textContent)"
        assert driver.execute_script(f"return {cut}") == []
        read = "Math.min(...[...document.querySelectorAll('.slot {}')].map("
        read += "(each) => parseFloat(getComputedStyle(each).fontSize)))"
        return tuple(driver.execute_script(f"return {read.format(of)}") for of in ("h2", ".w"))

    record(tmp_path, datetime.now(UTC))
    async with page_of(tmp_path, running=tray()) as page:
        found = await asyncio.to_thread(sizes, page)
    assert all(size >= wanted for size, wanted in zip(found, least, strict=True)), found


@needs_chromium
@pytest.mark.timeout(300)
async def test_a_failed_slot_keeps_its_fill_in_forced_colours(
    tmp_path: Path, driver: WebDriver
) -> None:
    fill = "getComputedStyle(document.querySelector('.slot.bad')).backgroundColor"

    def fills(page: ServedPage) -> list[str]:
        driver.get(page.link())
        until_text(driver, "FAIL")
        before = driver.execute_script(f"return {fill}")
        prefer(driver, forced_colors="active")
        until(driver, "matchMedia('(forced-colors: active)').matches")
        return [before, driver.execute_script(f"return {fill}")]

    async with page_of(tmp_path, running=morning()) as page:
        before, forced = await asyncio.to_thread(fills, page)
    assert before == forced != "rgb(255, 255, 255)"


@needs_chromium
@pytest.mark.timeout(300)
async def test_without_a_script_the_tray_is_the_recorded_picture(
    tmp_path: Path, driver: WebDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.page.server.AgentFeed", partial(AgentFeed, now=lambda: NOW))
    for number in range(40, 0, -1):
        ends = ENDED if number in {7, 23} else {}
        record(tmp_path, NOW - timedelta(minutes=number), **ends)

    def take(page: ServedPage) -> Image.Image:
        resize(driver, 1280, 800)
        driver.get(page.link())
        until_text(driver, "Yield")
        return first_paint(driver, f"{page.url}/bench")

    async with page_of(tmp_path, running=morning()) as page:
        assert_as_recorded(await asyncio.to_thread(take, page), "page-bench")
