"""Where the live page is served: an option comes before the profile."""

from __future__ import annotations

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
