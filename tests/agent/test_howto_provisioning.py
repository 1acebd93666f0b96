"""The settings that docs/howto/provisioning.md shows; tests/test_pages.py types its commands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from agent.config.parse import profile_from

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "provisioning.md"
SETTINGS = re.findall(r"(?ms)^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"))


def test_the_settings_that_it_shows_are_read() -> None:
    assert len(SETTINGS) == 4
    for text in SETTINGS:
        table = tomllib.loads(text)["profiles"]["bench"]
        assert profile_from(table, "bench") is not None
