"""One browser for all tests of a worker, in it a person of its own for each, and an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver

from tests.support.page.browsers import browser, person
from tests.support.page.page_agent import FakeAgent
from tests.support.page.page_kits import six


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@pytest.fixture(scope="session")
def chromium() -> Iterator[WebDriver]:
    with browser() as started:
        yield started


@pytest.fixture
def driver(chromium: WebDriver) -> Iterator[WebDriver]:
    """Return a browser that nobody has used."""
    with person(chromium):
        yield chromium


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    """Return an agent that has six kits."""
    running = FakeAgent(tmp_path)
    running.tell(six())
    await running.start()
    yield running
    await running.stop()
