"""Make what is published of a commit, in `dist`: wheel, sdist, materials, licences, digests.

`./scripts/release VERSION` first writes the version and the changelog's date, commits and tags;
without VERSION it builds what HEAD is. Everything is built twice, in two places, and refused unless
both are the same to the byte. The wheel is then installed alone, with what the hashed lock names,
and has to run the demo. The man page and the completions of the shells are inside.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import environment

ROOT = environment.ROOT
CHANGELOG = ROOT / "CHANGELOG.md"
VERSION_FILE = ROOT / "agent" / "__init__.py"
CYCLONEDX = ROOT / ".peers" / "bin" / "cyclonedx-py"
UNPUBLISHED = "(not yet published)"
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
        _tag(given.version)
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        one, other = (_built(Path(name) / place) for place in ("one", "the-other"))
        for first, second in zip(one, other, strict=True):
            if (first.name, first.read_bytes()) != (second.name, second.read_bytes()):
                sys.exit(f"{first.name} is not the same when it is built again")
        given.dist.mkdir(exist_ok=True)
        made = [Path(shutil.copy(file, given.dist)) for file in one]
        if not given.build_only:
            made += _tried(next(each for each in made if each.suffix == ".whl"), Path(name))
    sums = "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in made
    )
    (given.dist / "SHA256SUMS").write_text(sums)
    print(sums, end="")
    return 0


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def _tag(version: str) -> None:
    """Give the unpublished part of the changelog its date and the commit its tag."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"{version!r} is not a version such as 0.3.0")
    if git("tag", "--list", f"v{version}"):
        sys.exit(f"v{version} is tagged already: `git log v{version}`")
    heading = re.compile(rf"^## \S+ {re.escape(UNPUBLISHED)}$", re.MULTILINE)
    changes = CHANGELOG.read_text()
    if len(heading.findall(changes)) != 1:
        sys.exit(f"{CHANGELOG.name} has no heading, or several, that end in {UNPUBLISHED!r}")
    today = datetime.now(UTC).date().isoformat()
    CHANGELOG.write_text(heading.sub(f"## {version} ({today})", changes))
    said = re.sub('(?<=__version__ = ")[^"]+', version, VERSION_FILE.read_text())
    VERSION_FILE.write_text(said)
    git("commit", "--quiet", "--message", f"Release {version}", "--", "CHANGELOG.md", "agent")
    git("tag", "--annotate", f"v{version}", "--message", f"cellagent {version}")


def _built(tree: Path) -> list[Path]:
    """Build wheel and sdist of HEAD in a folder of its own; time is that of the commit."""
    tree.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x"], cwd=tree, input=packed.stdout, check=True)
    at = {"SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct"), "PYTHONPATH": str(tree)}

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
    if not CYCLONEDX.is_file():
        sys.exit("cyclonedx-py writes the bill of materials: `./scripts/peers` installs it")
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
        [python, "-m", "agent", "demo"], cwd=home, env=alone, check=True, stdin=subprocess.DEVNULL
    )
    stem = "-".join(wheel.name.split("-")[:2])
    bill = wheel.with_name(f"{stem}.cdx.json")
    command = [CYCLONEDX, "environment", python, "--pyproject", ROOT / "pyproject.toml"]
    subprocess.run([*command, "--output-reproducible", "--of", "JSON", "-o", bill], check=True)
    licences = wheel.with_name(f"{stem}-licences.txt")
    licences.write_text("".join(f"{line}\n" for line in licences(json.loads(bill.read_text()))))
    return [bill, licences]


def licences(bill: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Yield each package of a CycloneDX bill with the licences that it declares."""
    for part in sorted(bill["components"], key=itemgetter("name")):
        said = part.get("licenses", [])
        named = [each["expression"] if "expression" in each else each["license"] for each in said]
        words = [
            each if isinstance(each, str) else each.get("id", each.get("name")) for each in named
        ]
        yield f"{part['name']} {part['version']}: {'; '.join(words) or 'not declared'}"


if __name__ == "__main__":
    environment.enter(environment.DEVELOPMENT)
    sys.exit(main(sys.argv[1:]))
