"""A kit's console in a browser: followed, paused and copied; what it prints does nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.keys import Keys

from agent.daemon.recent import DECISIONS
from agent.daemon.snapshot import State
from agent.page.server import ServedPage
from tests.support.page.browsers import complaints, enter, looked, needs_chromium, until, until_text
from tests.support.page.page_agent import FakeAgent, page_of
from tests.support.page.statuses import kit, status

pytestmark = [needs_chromium, pytest.mark.timeout(300)]
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=alert(1)>\x1b[31m\u202e"
NOTE_THE_BUTTON = """
  window.told = [];
  const note = () => told.push(document.getElementById('copy').innerText);
  new MutationObserver(note).observe(document.body, { subtree: true, childList: true });
"""
_LINES = "return document.getElementById('lines').innerText"


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
        driver.execute_script(NOTE_THE_BUTTON)  # what it says for a second may be over, else
        driver.find_element("id", "copy").click()
        until(driver, "told.includes('Copied 2 lines') && told.at(-1) === 'Copy'")
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
