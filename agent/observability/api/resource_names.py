"""The rules for the names of resources: slugs, versions, texts (clause O1.1). Pure."""

import re
from collections.abc import Callable, Mapping

from agent.errors import UsageError

LONGEST = 128
"""Characters of a name."""
_SLUG = re.compile(r"[-a-zA-Z0-9_]+", re.ASCII)
_VERSION = re.compile(r"[-a-zA-Z0-9_.+]+", re.ASCII)
# Semantic Versioning 2.0.0, items 2, 9 and 10: no leading zero in a number.
_NUMBER = r"(?:0|[1-9][0-9]*)"
_PRE = rf"(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRE}(?:\.{_PRE})*)?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)


def check_slug(what: str, value: object) -> str:
    """Return `value` if it is a legal slug: of an organization, project, cohort, or device serial.

    `value` may be anything from JSON. Upper case is allowed: lower case with hyphens is custom,
    not a rule. Raises UsageError, which begins with `what`.
    """
    return _checked(what, value, _SLUG, "letters, digits, `-` and `_`")


def check_version(what: str, value: object) -> str:
    """Return `value` if it is a legal version of hardware or software. Raises UsageError."""
    return _checked(what, value, _VERSION, "letters, digits, `-`, `_`, `.` and `+`")


def check_release_version(value: object, what: str = "release version") -> str:
    """Return `value` if it is a Semantic Version, as a release has. Raises UsageError."""
    version = check_version(what, value)
    if not _SEMVER.fullmatch(version):
        raise UsageError(
            f"{what} {version!r} is no Semantic Version",
            hint="it has the form 1.2.3, 1.2.3-rc.1 or 1.2.3+build",
        )
    return version


def _check_versions(what: str, value: object) -> None:
    # A list holds both ends of a delta release.
    for version in value if isinstance(value, list | tuple) else [value]:
        check_release_version(version, what)


def _check_least_version(what: str, value: object) -> None:
    if value != "":
        check_release_version(value, what)


_FIELDS: Mapping[str, Callable[[str, object], object]] = {
    "slug": check_slug,
    "cohort": check_slug,
    "device_serial": check_slug,
    "hardware_version": check_version,
    "version": lambda what, value: check_release_version(value, what),
    "release": _check_versions,
    "min_version": _check_least_version,
}
NAMES = frozenset(_FIELDS)
"""The fields of a resource that hold a name of one; such a name is a text, if of digits alone."""


def check_names(fields: Mapping[str, object]) -> None:
    """Check the names among the fields of a resource. Raises UsageError for a wrong one."""
    for field, value in fields.items():
        if field in NAMES and value is not None:
            _FIELDS[field](field, value)


def check_text(what: str, value: object) -> str:
    """Return `value` if it is a printable text of 1 to LONGEST characters. Raises UsageError."""
    text = _text(what, value)
    if not 1 <= len(text) <= LONGEST or not text.isprintable():
        raise UsageError(f"{what}: {text[:60]!r} is no text of 1 to {LONGEST} characters")
    return text


def to_slug(text: str) -> str:
    """Return `text` as a slug: other characters become `-`, and only LONGEST are kept."""
    return re.sub(r"[^-a-zA-Z0-9_]", "-", text)[:LONGEST]


def to_version(text: str) -> str:
    """Return `text` as a version: other characters become `-`, and only LONGEST are kept."""
    return re.sub(r"[^-a-zA-Z0-9_.+]", "-", text)[:LONGEST]


def _checked(what: str, value: object, rule: re.Pattern[str], allowed: str) -> str:
    text = _text(what, value)
    if not rule.fullmatch(text):
        raise UsageError(f"{what} {text[:140]!r} may hold {allowed} only, and is not empty")
    if len(text) > LONGEST:
        raise UsageError(f"{what} {text[:40]!r}… has {len(text)} characters; at most {LONGEST}")
    return text


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{what}: {'it is missing' if value is None else 'it is no text'}")
    return value
