"""Slugs and versions: the rules for the names of resources (clause O1.1). Pure."""

from __future__ import annotations

import re

from agent.errors import UsageError

LONGEST = 128
_SLUG = re.compile(r"[-a-zA-Z0-9_]+", re.ASCII)
_VERSION = re.compile(r"[-a-zA-Z0-9_.+]+", re.ASCII)
# Semantic Versioning 2.0.0, items 2, 9 and 10: no leading zero in a number.
_NUMBER = r"(?:0|[1-9][0-9]*)"
_PRE = rf"(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRE}(?:\.{_PRE})*)?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)


def slug(value: str, what: str) -> str:
    """Return the slug of an organization, project, cohort, or a device's serial.

    Upper case is allowed: lower case with hyphens is custom, not a rule. Raises UsageError.
    """
    return _checked(value, what, _SLUG, "letters, digits, `-` and `_`")


def as_slug(text: str) -> str:
    """Return `text` as a slug: other characters become `-`, and LONGEST is kept."""
    return re.sub(r"[^-a-zA-Z0-9_]", "-", text)[:LONGEST]


def as_version(text: str) -> str:
    """Return `text` as a version: other characters become `-`, and LONGEST is kept."""
    return re.sub(r"[^-a-zA-Z0-9_.+]", "-", text)[:LONGEST]


def version_name(value: str, what: str) -> str:
    """Return a hardware version. Raises UsageError."""
    return _checked(value, what, _VERSION, "letters, digits, `-`, `_`, `.` and `+`")


def release_version(value: str) -> str:
    """Return the version of a release, which is a Semantic Version. Raises UsageError."""
    version_name(value, "release version")
    if not _SEMVER.fullmatch(value):
        raise UsageError(
            f"release version {value!r} is no Semantic Version",
            hint="it has the form 1.2.3, 1.2.3-rc.1 or 1.2.3+build",
        )
    return value


def _checked(value: str, what: str, rule: re.Pattern[str], allowed: str) -> str:
    if not rule.fullmatch(value):
        raise UsageError(f"{what} {value[:140]!r} may hold {allowed} only, and is not empty")
    if len(value) > LONGEST:
        raise UsageError(f"{what} {value[:40]!r}… has {len(value)} characters; at most {LONGEST}")
    return value
