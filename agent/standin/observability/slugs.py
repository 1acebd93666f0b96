"""The rules of identifiers (clause O1.1): 128 characters at most, and which ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.standin.schema import Schema

MAX_LENGTH = 128
SLUG_PATTERN = "^[-a-zA-Z0-9_]+$"
VERSION_PATTERN = "^[-a-zA-Z0-9_.+]+$"
_NUMBER = "(?:0|[1-9][0-9]*)"
_PART = "(?:0|[1-9][0-9]*|[0-9]*[-a-zA-Z][-0-9a-zA-Z]*)"
# The grammar of Semantic Versioning 2.0.0, clauses 2, 9 and 10. What the version pattern allows
# beyond it, an underscore, no Semantic Version has.
SEMVER_PATTERN = (
    rf"^{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-{_PART}(?:\.{_PART})*)?(?:\+[-0-9a-zA-Z]+(?:\.[-0-9a-zA-Z]+)*)?$"
)

SLUG: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": SLUG_PATTERN}
VERSION: Schema = {**SLUG, "pattern": VERSION_PATTERN}
RELEASE_VERSION: Schema = {**SLUG, "pattern": SEMVER_PATTERN}


def precedence(version: str) -> tuple[object, ...]:
    """Return what Semantic Versions are ordered by (clause 11): build metadata does not count."""
    core, _, pre = version.partition("+")[0].partition("-")
    numbers = tuple(int(part) for part in core.split("."))
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split("."))
    return (*numbers, (0, parts) if pre else (1, ()))
