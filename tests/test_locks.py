"""The locks are whole: nothing is resolved when one is installed, so what it lacks is missing then.

What a package asks for stands in its metadata, which is read of those that are installed here in
the version that the lock has.
"""

from __future__ import annotations

import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import environment  # noqa: E402 - its folder is no package

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
_RUNTIME = [
    *_PROJECT["project"]["dependencies"],
    *(each for extra in _PROJECT["project"]["optional-dependencies"].values() for each in extra),
]
_GROUPS = [
    each
    for group in _PROJECT["dependency-groups"].values()
    for each in group
    if isinstance(each, str)
]
_MACHINES = {
    "linux": {"sys_platform": "linux", "os_name": "posix", "platform_machine": "x86_64"},
    "darwin": {"sys_platform": "darwin", "os_name": "posix", "platform_machine": "arm64"},
    "darwin x86_64": {"sys_platform": "darwin", "os_name": "posix", "platform_machine": "x86_64"},
    "win32": {"sys_platform": "win32", "os_name": "nt", "platform_machine": "AMD64"},
}


def locked(lock: Path, machine: dict[str, str]) -> dict[str, str]:
    """Return the versions that a lock has for a machine, by the names of their packages."""
    pins = [
        Requirement(line.partition(" --hash")[0])
        for line in environment.requirements(lock)
        if "==" in line
    ]
    return {
        canonicalize_name(pin.name): next(iter(pin.specifier)).version
        for pin in pins
        if pin.marker is None or pin.marker.evaluate(machine)
    }


@cache
def needs(name: str, version: str) -> list[str]:
    """Return what a version of a package asks for; nothing is known of one for other systems."""
    try:
        return (metadata.requires(name) or []) if metadata.version(name) == version else []
    except metadata.PackageNotFoundError:
        return []


def missing(lock: Path, asked: list[str], machine: dict[str, str]) -> list[str]:
    """Return what is asked for, by the project or by a package of the lock, and not in the lock."""
    pins = locked(lock, machine)
    waiting = [("the project", text, frozenset[str]()) for text in asked]
    seen, found = set(waiting), []
    while waiting:
        asker, text, extras = waiting.pop()
        wanted = Requirement(text)
        if wanted.marker and not any(
            wanted.marker.evaluate({**machine, "extra": extra}) for extra in ("", *extras)
        ):
            continue
        name = canonicalize_name(wanted.name)
        if name == "cellagent":  # all that its extras ask for is asked for above
            continue
        if name not in pins or not wanted.specifier.contains(pins[name], prereleases=True):
            found.append(f"{asker} asks for {text}; the lock has {pins.get(name, 'none of it')}")
            continue
        more = {(name, each, frozenset(wanted.extras)) for each in needs(name, pins[name])} - seen
        seen |= more
        waiting += more
    return found


@pytest.mark.parametrize("machine", _MACHINES)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize(
    ("lock", "asked"),
    [(environment.RUNTIME, _RUNTIME), (environment.DEVELOPMENT, [*_RUNTIME, *_GROUPS])],
    ids=["runtime", "development"],
)
def test_what_a_package_of_the_lock_asks_for_is_in_it(
    lock: Path, asked: list[str], version: str, machine: str
) -> None:
    python = {"python_version": version, "python_full_version": f"{version}.9"}
    assert missing(lock, asked, _MACHINES[machine] | python) == []


def test_the_lock_for_development_has_all_of_the_other_one() -> None:
    runtime, development = (
        {line.split()[0] for line in environment.requirements(lock) if "==" in line}
        for lock in (environment.RUNTIME, environment.DEVELOPMENT)
    )
    assert runtime <= development
