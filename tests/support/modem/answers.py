"""Answers and notices read through the catalogue, as JSON."""

from typing import Any

from at.commands.catalog import command_of
from at.protocol import notices
from at.protocol.values import as_json

SHA = "0123456789ABCDEF" * 4


def value_of(command: str, *lines: str) -> Any:
    """Return the value of an answer to a command text. Raises ParseError."""
    typed = command_of(command)
    assert typed is not None, f"no type reads the answer to {command}"
    return as_json(typed.parse(lines))


def notice_of(line: str) -> notices.Notice:
    """Return the typed notice of a line."""
    return notices.parse(line.partition(":")[0], line)


def notice_value(line: str) -> Any:
    """Return the value of the typed notice of a line."""
    return as_json(notice_of(line).value)  # type: ignore[attr-defined]


def assert_fields(found: dict[str, Any], part: dict[str, Any]) -> None:
    """Check that `found` has the fields of `part`."""
    assert {name: found[name] for name in part} == part
