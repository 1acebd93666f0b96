"""One browser for all tests of a worker, and in it a person of its own for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browsers import browser, person
from selenium.webdriver.chrome.webdriver import WebDriver


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
