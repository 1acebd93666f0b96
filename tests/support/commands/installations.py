"""Installations of the built wheel that have some of the packages of this one, and no others."""

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[3]


def closure(requirements: list[str]) -> dict[str, metadata.Distribution]:
    """Return the distributions that pip would install here for some requirements, by name."""
    found: dict[str, metadata.Distribution] = {}
    seen: set[str] = set()
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        wanted = waiting.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        distribution = metadata.distribution(wanted.name)
        found[canonicalize_name(wanted.name)] = distribution
        for text in distribution.requires or ():
            needed = Requirement(text)
            extras = {"", *wanted.extras}
            if not needed.marker or any(needed.marker.evaluate({"extra": e}) for e in extras):
                needed.marker = None
                waiting.append(needed)
    return found


def built_wheel(folder: Path) -> Path:
    """Build the project's wheel into a folder."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    return next(folder.glob("*.whl"))


def requirements_of(wheel: Path, *extras: str) -> list[str]:
    """Return what a wheel asks for on this machine, with some of its extras."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        asked = metadata.PathDistribution(zipfile.Path(archive, name).parent).requires or []
    needed = [Requirement(text) for text in asked]
    wanted = [
        each
        for each in needed
        if not each.marker or any(each.marker.evaluate({"extra": e}) for e in ("", *extras))
    ]
    for each in wanted:
        each.marker = None
    return [str(each) for each in wanted]


class Installation:
    """An environment in `folder` with some distributions of this one, by links, and a wheel."""

    def __init__(self, folder: Path, distributions: dict[str, metadata.Distribution]) -> None:
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True
        )
        self.python = folder / "bin" / "python"
        self.packages = next((folder / "lib").glob("python3*")) / "site-packages"
        for distribution in distributions.values():
            tops = {PurePosixPath(file).parts[0] for file in distribution.files or ()}
            for top in tops - {"..", "__pycache__"}:
                (self.packages / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())

    def unpack(self, wheel: Path) -> None:
        """Install a wheel of plain Python."""
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.packages)
