"""Make what is published of a commit, in `dist`: wheel, sdist, materials, licences, digests.

Everything is built twice, in two places, and refused unless both are the same to the byte. The
wheel is then installed alone, with what the hashed lock names, and has to run the demo. The man
page and the completions of the shells are inside.

`./scripts/release VERSION`, on `main`, makes that of a commit with the version and the changelog's
date. Branch, tag and `dist` change once all of it has passed; until then nothing does. Without
VERSION it makes it of what HEAD is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import distributions
from operator import itemgetter
from pathlib import Path
from typing import Any

import environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = environment.ROOT
CHANGELOG = ROOT / "CHANGELOG.md"
CYCLONEDX = ROOT / ".peers" / "bin" / "cyclonedx-py"
UNPUBLISHED = "(not yet published)"
_HEADING = re.compile(rf"^## \S+ {re.escape(UNPUBLISHED)}$", re.MULTILINE)
BRANCH = "main"
MANUAL = "reference/generated/commands"
"""The page of the documentation that is the man page, too."""
COMPLETIONS = {
    "bash": "share/bash-completion/completions/cellagent",
    "fish": "share/fish/vendor_completions.d/cellagent.fish",
    "zsh": "share/zsh/site-functions/_cellagent",
}


def main(arguments: list[str]) -> int:
    told = argparse.ArgumentParser(prog="scripts/release", description=__doc__)
    told.add_argument("version", nargs="?", help="such as 0.3.0; commits and tags it")
    told.add_argument("--dist", type=Path, default=ROOT / "dist", help="where to write")
    told.add_argument("--build-only", action="store_true", help="wheel and sdist, not installed")
    given = told.parse_args(arguments)
    if git("status", "--porcelain"):
        sys.exit("there are changes that no commit holds: `git status` lists them")
    if given.version:
        _refuse_unfit(given.version)
    if not given.build_only and not CYCLONEDX.is_file():
        sys.exit("cyclonedx-py writes the bill of materials: `./scripts/peers` installs it")
    try:
        with tempfile.TemporaryDirectory(prefix="release-") as name:
            return _release(given, Path(name))
    except KeyboardInterrupt:
        sys.exit("\nstopped: nothing is released")
    except subprocess.CalledProcessError as error:
        words = " ".join(map(str, error.cmd))
        sys.exit(f"nothing is released: exit code {error.returncode} of {words}")


def _release(given: argparse.Namespace, folder: Path) -> int:
    with _committed(given.version, folder / "commit") as commit:
        one, other = (_built(commit, folder / place) for place in ("one", "the-other"))
        for first, second in zip(one, other, strict=True):
            if (first.name, first.read_bytes()) != (second.name, second.read_bytes()):
                sys.exit(f"{first.name} is not the same when it is built again")
        made = one
        if not given.build_only:
            made = [*one, *_tried(next(each for each in one if each.suffix == ".whl"), folder)]
        sums = folder / "SHA256SUMS"
        sums.write_text(
            "".join(
                f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in made
            )
        )
        if given.version:
            # Both or none: a Ctrl-C, which git would get as well, comes too late from here on.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            git("merge", "--quiet", "--ff-only", commit)
            git("tag", "--annotate", f"v{given.version}", "--message", f"cellagent {given.version}")
    given.dist.mkdir(parents=True, exist_ok=True)
    for each in (*made, sums):
        shutil.copy(each, given.dist)
    print(sums.read_text(), end="")
    if given.version:
        print(f"to publish it: git push origin {BRANCH} v{given.version}", file=sys.stderr)
    return 0


def git(*words: str, at: Path = ROOT) -> str:
    done = subprocess.run(["git", *words], cwd=at, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def _refuse_unfit(version: str) -> None:
    """Refuse a version that cannot be the next one, and a branch that is not released."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"{version!r} is not a version such as 0.3.0")
    if (branch := git("branch", "--show-current")) != BRANCH:
        here = f"this is {branch}" if branch else "no branch is checked out"
        sys.exit(f"{here}; what is released is {BRANCH}: `git switch {BRANCH}`")
    if git("tag", "--list", f"v{version}"):
        sys.exit(f"v{version} is tagged already: `git log v{version}`")
    changes = CHANGELOG.read_text()
    if len(_HEADING.findall(changes)) != 1:
        sys.exit(f"{CHANGELOG.name} has no heading, or several, that end in {UNPUBLISHED!r}")
    earlier = re.findall(r"^## (\d+\.\d+\.\d+) ", _HEADING.sub("", changes), re.MULTILINE)
    last = max(earlier, key=_numbers, default="0.0.0")
    if _numbers(version) <= _numbers(last):
        sys.exit(f"{version} does not come after {last}, which stands in {CHANGELOG.name}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


@contextmanager
def _committed(version: str | None, tree: Path) -> Iterator[str]:
    """Give the commit to build: HEAD, or one after it that dates the changelog, on no branch."""
    if version is None:
        yield git("rev-parse", "HEAD")
        return
    try:
        git("worktree", "add", "--quiet", "--detach", str(tree))
        changelog, said = tree / CHANGELOG.name, tree / "agent" / "__init__.py"
        today = datetime.now(UTC).date().isoformat()
        changelog.write_text(_HEADING.sub(f"## {version} ({today})", changelog.read_text()))
        said.write_text(re.sub('(?<=__version__ = ")[^"]+', version, said.read_text()))
        git("commit", "--quiet", "--all", "--message", f"Release {version}", at=tree)
        yield git("rev-parse", "HEAD", at=tree)
    finally:
        shutil.rmtree(tree, ignore_errors=True)  # it may be half made
        git("worktree", "prune")


def _built(commit: str, tree: Path) -> list[Path]:
    """Build wheel and sdist of a commit in a folder of its own; time is that of the commit."""
    tree.mkdir()
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x"], cwd=tree, input=packed.stdout, check=True)
    at = {"SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct", commit), "PYTHONPATH": str(tree)}

    def run(*words: str | Path) -> bytes:
        command = [sys.executable, "-m", *words]
        known = {**os.environ, **at}
        return subprocess.run(
            command, cwd=tree, env=known, check=True, stdout=subprocess.PIPE
        ).stdout

    manual = tree / "share" / "man" / "man1"
    with tempfile.TemporaryDirectory() as notes:
        only = [f"root_doc={MANUAL}", f"include_patterns={MANUAL}.md"]  # the rest is for html
        chosen = [word for each in only for word in ("-D", each)]
        run("sphinx", "-q", "-b", "man", *chosen, "-d", notes, "docs", manual)
    for shell, path in COMPLETIONS.items():
        (tree / path).parent.mkdir(parents=True)
        (tree / path).write_bytes(run("agent", "completion", shell))
    run("hatchling", "build", "-d", "dist")
    return sorted((tree / "dist").iterdir())


def _tried(wheel: Path, folder: Path) -> list[Path]:
    """Install the wheel alone, run the demo, and write what was installed with it."""
    home = folder / "home"
    home.mkdir()
    venv.create(home / "venv", with_pip=True)
    python = home / "venv" / "bin" / "python"
    if not environment.install_lock(python, environment.RUNTIME):
        sys.exit("could not install what the lock names")
    if not environment.install(python, "--no-deps", wheel):
        sys.exit(f"could not install {wheel.name}")
    alone = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    subprocess.run(
        [python.with_name("cellagent"), "demo"],
        cwd=home,
        env=alone,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return _listed(python, wheel)


def _listed(python: Path, wheel: Path) -> list[Path]:
    """Write, beside the wheel, what the environment of `python` holds, and its licences.

    What the wheel does not need, such as what builds a package that has no wheel, is "excluded".
    """
    version = wheel.name.split("-")[1]
    bill = wheel.with_name(f"cellagent-{version}.cdx.json")
    command: list[str | Path] = [
        CYCLONEDX,
        "environment",
        python,
        "--pyproject",
        ROOT / "pyproject.toml",
    ]
    # Not validated here, where it is not whole yet and takes half a minute: a test does it.
    command += ["--output-reproducible", "--no-validate", "--of", "JSON", "-o", bill]
    subprocess.run(command, check=True)
    said = json.loads(bill.read_text())
    said["metadata"]["component"]["version"] = version  # pyproject.toml only says where it stands
    needed = _needed(next((python.parent.parent / "lib").glob("python*/site-packages")))
    for part in said["components"]:
        is_needed = canonicalize_name(part["name"]) in needed
        part["scope"] = "required" if is_needed else "excluded"
    bill.write_text(f"{json.dumps(said, indent=1)}\n")
    listed = bill.with_name(f"cellagent-{version}-licences.txt")
    listed.write_text("".join(f"{line}\n" for line in licences(said)))
    return [bill, listed]


def _needed(packages: Path) -> set[str]:
    """Return the names of what cellagent, with all of its extras, needs of a `site-packages`."""
    held = {canonicalize_name(each.name): each for each in distributions(path=[str(packages)])}
    pending, seen = [(canonicalize_name("cellagent"), "all")], set[tuple[str, str]]()
    while pending:
        name, extra = one = pending.pop()
        if one in seen or name not in held:
            continue
        seen.add(one)
        for asked in map(Requirement, held[name].requires or ()):
            if asked.marker is None or asked.marker.evaluate({"extra": extra}):
                wanted = canonicalize_name(asked.name)
                pending += [(wanted, each) for each in ("", *asked.extras)]
    return {name for name, _ in seen}


def licences(bill: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Yield each package that a CycloneDX bill requires, with the licences that it declares."""
    required = [part for part in bill["components"] if part["scope"] == "required"]
    for part in sorted(required, key=itemgetter("name")):
        said = part.get("licenses", [])
        named = [each["expression"] if "expression" in each else each["license"] for each in said]
        words = [
            each if isinstance(each, str) else each.get("id", each.get("name")) for each in named
        ]
        yield f"{part['name']} {part['version']}: {'; '.join(words) or 'not declared'}"


if __name__ == "__main__":
    environment.enter(environment.DEVELOPMENT)
    sys.exit(main(sys.argv[1:]))
