"""Versions as jobs, images and kits write them: their grammar, equality and order. Pure."""

import re
from dataclasses import dataclass

# "v2.0.1", "2.0.1+4" and "2.0.1.4" (MCUboot's build number), "2.0.1-rc1". A modem's revision
# ("mfw_nrf9160_1.3.6") has its own grammar, in at.protocol.firmware_version; the number in
# it is found here too.
_NUMBERED = re.compile(
    r"(?:^|[_-])v?(?P<core>\d{1,5}(?:\.\d{1,5}){1,2})(?:[.+](?P<build>\d{1,10}))?"
    r"(?P<suffix>[-+_.][A-Za-z0-9._+-]*)?$"
)


@dataclass(frozen=True, slots=True)
class Version:
    """major, minor, revision; `build` is None where the text names none."""

    core: tuple[int, int, int]
    build: int | None = None
    suffix: str = ""

    def __str__(self) -> str:
        """Return the version as imgtool writes it."""
        core = ".".join(map(str, self.core))
        return f"{core}+{self.build}" if self.build else core


def parse_version(text: str) -> Version | None:
    """Return the version that the text names, or None: then only equal texts are equal."""
    match = _NUMBERED.search(text.strip())
    if match is None:
        return None
    numbers = [int(part) for part in match["core"].split(".")]
    major, minor, revision = [*numbers, 0][:3]
    build = int(match["build"]) if match["build"] else None
    return Version((major, minor, revision), build, match["suffix"] or "")


def same_version(one: str, other: str, *, in_full: bool = False) -> bool:
    """Return whether two texts name one version; a build number counts where both name it.

    A suffix counts where both name one, with `in_full` and in a modem's revision also where one
    does. A text that holds no version ("nightly") is the same only as itself.
    """
    left, right = one.strip(), other.strip()
    if left.lower() == right.lower():
        return True
    first, second = parse_version(left), parse_version(right)
    if first is None or second is None or first.core != second.core:
        return False
    # "2.0.1-rc1" is not "2.0.1-rc2"; a text without suffix may be an image header's, which has no
    # room for one. The modem's maker tests updates with one from 2.0.4 to "2.0.4-FOTA-TEST".
    in_full = in_full or "mfw" in {left[:3].lower(), right[:3].lower()}
    suffixes = {first.suffix.lower(), second.suffix.lower()}
    if len(suffixes) > 1 and (in_full or "" not in suffixes):
        return False
    return first.build is None or second.build is None or first.build == second.build


def is_older(candidate: str, running: str) -> bool | None:
    """Return whether `candidate` is older than `running`; None where no order can be told."""
    first, second = parse_version(candidate), parse_version(running)
    if first is None or second is None:
        return None
    if first.core != second.core:
        return first.core < second.core
    if first.build is not None and second.build is not None:
        return first.build < second.build
    return False
