"""The tables of docs/howto/stand-in.md; tests/test_pages.py types its commands."""

from __future__ import annotations

from pathlib import Path

from agent.standin.control import CHANGES
from agent.standin.fault_kinds import FAULTS
from agent.standin.state import Settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "stand-in.md"


def test_the_page_lists_every_fault_and_every_wish() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, kind in FAULTS.items():
        assert f"| `{name}` | {kind.help} |" in text
    for name in (*CHANGES, *Settings.__slots__):
        assert f"`{name}`" in text
