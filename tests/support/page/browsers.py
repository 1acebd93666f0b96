"""Chromium without a window, driven by selenium and Debian's chromedriver, on loopback alone."""

import asyncio
import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageStat
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.support.ui import WebDriverWait

from agent.page.server import ServedPage

PATIENCE_S = 60.0
_PICTURES = Path(__file__).resolve().parents[3] / "docs" / "pictures"
AXE = Path(__file__).resolve().parents[3] / ".peers/npm/node_modules/axe-core/axe.min.js"
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
)
"""Without them it asks the network for things of its own."""
needs_chromium = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")),
    reason="needs Chromium and its driver: `sudo ./scripts/setup`",
)
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="needs axe-core, which `./scripts/peers` installs"
)
_RUN_AXE = """
const done = arguments[0];
axe.run({ resultTypes: ["violations"] }).then(({ violations }) => done(violations.map(
  ({ id, nodes }) => `${id}: ${nodes.map(({ html, any }) =>
    html.slice(0, 200) + " " + any.map(({ message }) => message).join("; ")).join(" | ")}`)));
"""


@contextlib.contextmanager
def browser(trace: str = "") -> Iterator[WebDriver]:
    """Start a browser with a profile of its own; end it with the block.

    Its log "performance" has the events of the categories that `trace` names.
    """
    folder = tempfile.mkdtemp()
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for word in (*_QUIET, f"--user-data-dir={folder}"):
        options.add_argument(word)
    options.enable_bidi = True
    logs = {"browser": "ALL"}
    if trace:
        logs["performance"] = "ALL"
        options.add_experimental_option("perfLoggingPrefs", {"traceCategories": trace})
    options.set_capability("goog:loggingPrefs", logs)
    # It outlives a test, whose HOME is its own; and it writes beside its profile, too.
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), folder)
    service = Service(shutil.which("chromedriver"), env={**os.environ, **homes})
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        driver.quit()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def person(driver: WebDriver) -> Iterator[None]:
    """Give a browser a window with no cookies and no storage; both go with the block.

    It costs a fraction of a browser's start, and nothing is left of who was there before.
    """
    before = driver.current_window_handle
    context = driver.browser.create_user_context()
    try:
        driver.switch_to.window(driver.browsing_context.create("tab", user_context=context))
        driver.get_log("browser")
        yield
    finally:
        driver.switch_to.window(before)
        driver.browser.remove_user_context(context)


async def looked(work: Callable[..., Any], *arguments: Any) -> Any:
    """Do what blocks in a thread: the page is served by this loop."""
    return await asyncio.to_thread(work, *arguments)


def enter(driver: WebDriver, page: ServedPage, path: str = "/kits") -> None:
    """Open a link, then a view; forget what was logged before."""
    resize(driver, 1280)
    driver.get(page.link())
    driver.get(page.url + path)
    driver.get_log("browser")


def resize(driver: WebDriver, width: int, height: int = 900) -> None:
    """Give the page a window of so many pixels."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def assert_nothing_wider(driver: WebDriver, path: str) -> None:
    """Check that the page scrolls sideways in no window, from the smallest of WCAG to 4k."""
    for width in (320, 360, 1280, 1920, 3840):
        resize(driver, width)
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width, f"{path} at {width} px"


def assert_nothing_moves(driver: WebDriver) -> None:
    """Check that nothing is animated: who asks for reduced motion sees what all see."""
    moving = """return [...document.querySelectorAll('*')].filter((each) => {
      const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(each);
      return transitionDuration !== '0s' || animationName !== 'none' || scrollBehavior !== 'auto';
    }).length + document.getAnimations().length"""
    assert driver.execute_script(moving) == 0


def prefer(driver: WebDriver, **features: str) -> None:
    """Say what the person prefers: `prefers_color_scheme="dark"`, `forced_colors="active"`."""
    named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": named})


def until(driver: WebDriver, script: str) -> Any:
    """Wait until an expression of the page is true; return its value."""
    wait = WebDriverWait(driver, PATIENCE_S, poll_frequency=0.05)
    return wait.until(lambda each: each.execute_script(f"return {script}"))


def until_text(driver: WebDriver, words: str) -> None:
    """Wait until the page shows the words."""
    until(driver, f"document.body.innerText.includes({words!r})")


def violations(driver: WebDriver) -> list[str]:
    """Return what axe-core finds wrong."""
    if not driver.execute_script("return 'axe' in window"):
        driver.execute_script(AXE.read_text())
    found: list[str] = driver.execute_async_script(_RUN_AXE)
    return found


def complaints(driver: WebDriver) -> list[str]:
    """Return what the browser logged: blocked by the policy, not found, thrown."""
    return [str(each["message"]) for each in driver.get_log("browser")]


def first_paint(driver: WebDriver, address: str) -> Image.Image:
    """Return the picture of a page in which no script is run."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(address)
        return Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def assert_as_recorded(taken: Image.Image, name: str) -> None:
    """Compare a picture to that of the documentation, or write that with WRITE_PAGE_PICTURES."""
    file = _PICTURES / f"{name}.png"
    if os.environ.get("WRITE_PAGE_PICTURES"):
        taken.quantize(256).save(file, optimize=True)  # of fewer colours one state lost its own
    recorded = Image.open(file).convert("RGB")
    assert taken.size == recorded.size
    difference = ImageStat.Stat(ImageChops.difference(taken, recorded)).mean
    assert max(difference) < 4, "of 255, on average: fonts differ a little from machine to machine"
