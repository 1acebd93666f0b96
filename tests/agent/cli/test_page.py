"""Where the live page is served: an option comes before the profile."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from agent.cli import run
from agent.cli.page import DEFAULT_LISTEN, page_settings
from agent.config import load
from agent.config.write import set_value

OF_THE_PROFILE = "127.0.0.1:9999"


@pytest.mark.usefixtures("private_home")
@pytest.mark.parametrize(
    ("words", "alone", "beside"),
    [
        ([], "", OF_THE_PROFILE),
        (["--page"], DEFAULT_LISTEN, OF_THE_PROFILE),
        (["--page", DEFAULT_LISTEN], DEFAULT_LISTEN, DEFAULT_LISTEN),
        (["--page", "127.0.0.1:0"], "127.0.0.1:0", "127.0.0.1:0"),
    ],
)
def test_an_address_that_is_given_is_taken_though_the_profile_has_another(
    words: list[str], alone: str, beside: str
) -> None:
    listen = run.command.make_context("run", words).params["listen"]
    assert page_settings(load(), listen).listen == alone
    set_value("page.listen", OF_THE_PROFILE, profile="custom")
    assert page_settings(load(), listen).listen == beside


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM there")
@pytest.mark.usefixtures("private_home")
def test_what_serves_the_page_ends_with_0_when_it_is_told_to() -> None:
    """As a service it had failed each time that it was stopped."""
    words = ("page", "--listen", "127.0.0.1:0")
    with subprocess.Popen(
        [sys.executable, "-m", "agent", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as page:
        assert page.stdout is not None
        assert b"http://127.0.0.1" in page.stdout.readline()
        page.send_signal(signal.SIGTERM)
        assert page.wait(20) == 0
