"""What `scripts/release` makes is whole, and the same to the byte when it is made again."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import release  # noqa: E402 - its folder is no package

pytestmark = pytest.mark.timeout(600)  # it builds twice, beside whatever else the machine does

VALIDATE = """
import pathlib, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
sys.exit(JsonStrictValidator(SchemaVersion.V1_6).validate_str(pathlib.Path(sys.argv[1]).read_text()))
"""


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def as_it_is(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of its own with the files as they are here."""
    pytest.importorskip("sphinx", reason="needs the development environment: ./scripts/test")
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list of tracked files to copy")
    made = tmp_path_factory.mktemp("as-it-is")
    for name in git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split(
        "\0"
    ):
        if name and (ROOT / name).is_file():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, made / name)
    git(made, "init", "--quiet", "--initial-branch", release.BRANCH)
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message", "as it is")
    return made


@pytest.fixture
def clone(as_it_is: Path, tmp_path: Path) -> Path:
    """A clone of it for one test, with this one's environment."""
    made = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--shared", str(as_it_is), str(made))
    (made / ".venv").symlink_to(ROOT / ".venv")
    git(made, "config", "user.name", "test")
    git(made, "config", "user.email", "test@example.invalid")
    (made / ".git/info/exclude").write_text(".venv\n")
    return made


def released(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "scripts/release.py", *words],
        cwd=clone, capture_output=True, text=True, check=False,
    )  # fmt: skip


def built_by(clone: Path, hook: str) -> None:
    """Commit what is called as a wheel is built. The manual, made before, has one line then."""
    (clone / "hatch_build.py").write_text(hook)
    (clone / "docs/conf.py").write_text("project = 'cellagent'\nextensions = ['myst_parser']\n")
    manual = clone / "docs" / f"{release.MANUAL}.md"
    manual.parent.mkdir()
    manual.write_text("# Commands\n")
    git(clone, "add", "--force", str(manual))
    git(clone, "commit", "--quiet", "--all", "--message", "built in another way")


def state(clone: Path) -> list[str]:
    """Return what a release changes of a repository."""
    asked = (("rev-parse", "main"), ("tag",), ("status", "--porcelain"), ("worktree", "list"))
    return [git(clone, *words) for words in asked]


def test_a_release_is_dated_tagged_and_whole(clone: Path, tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    done = released(clone, "9.8.7", "--build-only", "--dist", str(dist))

    assert done.returncode == 0, done.stderr
    assert git(clone, "tag", "--points-at", "main").split() == ["v9.8.7"]
    assert git(clone, "log", "--format=%s", "-1").strip() == "Release 9.8.7"
    assert not git(clone, "status", "--porcelain")
    assert len(git(clone, "worktree", "list").splitlines()) == 1
    assert done.stderr.splitlines()[-1] == "to publish it: git push origin main v9.8.7"
    assert re.search(
        r"^## 9\.8\.7 \(\d{4}-\d\d-\d\d\)$", (clone / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    wheel, sdist = dist / "cellagent-9.8.7-py3-none-any.whl", dist / "cellagent-9.8.7.tar.gz"
    sums = dict(line.split()[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in (wheel, sdist)
    }
    with zipfile.ZipFile(wheel) as opened:
        shared = "cellagent-9.8.7.data/data/share"
        manual = opened.read(f"{shared}/man/man1/cellagent.1").decode()
        for name in ("bash-completion/completions/cellagent", "zsh/site-functions/_cellagent"):
            assert b"_CELLAGENT_COMPLETE" in opened.read(f"{shared}/{name}"), name
        assert b"_CELLAGENT" in opened.read(f"{shared}/fish/vendor_completions.d/cellagent.fish")
    assert '"9.8.7"' in manual.splitlines()[[".TH" in x for x in manual.splitlines()].index(True)]
    assert "cellagent modem check [OPTIONS]" in manual
    with tarfile.open(sdist) as packed:
        names = packed.getnames()
    assert "cellagent-9.8.7/share/man/man1/cellagent.1" in names
    assert "cellagent-9.8.7/tests/scripts/test_release.py" in names


def test_a_wheel_that_differs_when_it_is_built_again_is_refused(
    clone: Path, tmp_path: Path
) -> None:
    hook = (clone / "hatch_build.py").read_text()
    built_by(
        clone,
        hook
        + "        import uuid\n"
        + "        stray = Path(self.root) / 'share' / 'stray'\n"
        + "        stray.write_text(str(uuid.uuid4()))\n",
    )
    before = state(clone)

    done = released(clone, "9.8.7", "--build-only", "--dist", str(tmp_path / "dist"))

    assert done.returncode == 1
    assert "is not the same when it is built again" in done.stderr
    assert not (tmp_path / "dist").exists()
    assert state(clone) == before


def test_a_build_that_fails_is_named_and_releases_nothing(clone: Path, tmp_path: Path) -> None:
    built_by(clone, "raise SystemExit(3)\n")
    before = state(clone)

    done = released(clone, "9.8.7", "--build-only", "--dist", str(tmp_path / "dist"))

    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("nothing is released: exit code 3 of ")
    assert "hatchling build" in last
    assert "Traceback" not in done.stderr
    assert state(clone) == before


def test_ctrl_c_in_the_middle_releases_nothing(clone: Path, tmp_path: Path) -> None:
    hook = (clone / "hatch_build.py").read_text()
    built_by(clone, f"import os, signal\n{hook}        os.kill(os.getppid(), signal.SIGINT)\n")
    before = state(clone)

    done = released(clone, "9.8.7", "--build-only", "--dist", str(tmp_path / "dist"))

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "stopped: nothing is released"
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "dist").exists()
    assert state(clone) == before


@pytest.mark.parametrize("version", ["1", "v1.2.3", "1.2.3rc1"])
def test_what_is_no_version_changes_nothing(clone: Path, version: str) -> None:
    done = released(clone, version)
    assert done.returncode == 1
    assert "is not a version" in done.stderr
    assert not git(clone, "status", "--porcelain")


def test_changes_that_no_commit_holds_are_not_released(clone: Path) -> None:
    (clone / "README.md").write_text("changed")
    done = released(clone, "9.8.7")
    assert done.returncode == 1
    assert "`git status` lists them" in done.stderr
    assert git(clone, "tag") == ""


def test_a_version_is_tagged_once(clone: Path) -> None:
    git(clone, "tag", "v9.8.7")
    done = released(clone, "9.8.7")
    assert done.returncode == 1
    assert "v9.8.7 is tagged already" in done.stderr
    assert not git(clone, "status", "--porcelain")


def test_only_main_is_released(clone: Path) -> None:
    git(clone, "switch", "--quiet", "--create", "mine")
    before = state(clone)
    done = released(clone, "9.8.7")
    assert done.returncode == 1
    assert "this is mine; what is released is main: `git switch main`" in done.stderr
    git(clone, "switch", "--quiet", "--detach")
    assert "no branch is checked out" in released(clone, "9.8.7").stderr
    git(clone, "switch", "--quiet", "mine")
    assert state(clone) == before


def test_a_version_comes_after_those_in_the_changelog(clone: Path) -> None:
    for version in ("0.1.0", "0.0.9"):
        done = released(clone, version)
        assert done.returncode == 1
        assert f"{version} does not come after 0.1.0" in done.stderr
    assert not git(clone, "status", "--porcelain")


def test_nothing_is_begun_without_what_writes_the_bill_of_materials(clone: Path) -> None:
    before = state(clone)
    done = released(clone, "9.8.7")
    assert done.returncode == 1
    assert "`./scripts/peers` installs it" in done.stderr
    assert state(clone) == before


def test_a_changelog_without_news_is_not_released(clone: Path) -> None:
    log = clone / "CHANGELOG.md"
    log.write_text(log.read_text().replace(release.UNPUBLISHED, "(2026-01-01)"))
    git(clone, "commit", "--quiet", "--all", "--message", "all is published")
    done = released(clone, "9.8.7")
    assert done.returncode == 1
    assert "has no heading" in done.stderr


@pytest.mark.peer
@pytest.mark.skipif(not release.CYCLONEDX.is_file(), reason="needs cyclonedx-py: ./scripts/peers")
def test_what_is_installed_is_listed_beside_the_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "cellagent-9.8.7-py3-none-any.whl"

    bill, licences = release._listed(Path(sys.executable), wheel)

    assert (bill.name, licences.name) == (
        "cellagent-9.8.7.cdx.json",
        "cellagent-9.8.7-licences.txt",
    )
    said = json.loads(bill.read_text())
    assert (said["bomFormat"], said["specVersion"]) == ("CycloneDX", "1.6")
    assert said["metadata"]["component"]["name"] == "cellagent"
    assert said["metadata"]["component"]["version"] == "9.8.7"
    scope = {part["name"]: part["scope"] for part in said["components"]}
    assert {scope[name] for name in ("msgspec", "rich", "psycopg-binary", "h11")} == {"required"}
    assert {scope[name] for name in ("hatchling", "editables", "setuptools")} == {"excluded"}
    listed = licences.read_text().splitlines()
    assert f"msgspec {metadata.version('msgspec')}: BSD-3-Clause" in listed
    assert not [line for line in listed if line.startswith(("hatchling ", "pytest "))]
    said["components"] = said["components"][::8]  # all 150 take a quarter of a minute
    bill.write_text(json.dumps(said))
    with_it = release.CYCLONEDX.with_name("python")  # the validator of who made the bill
    subprocess.run([with_it, "-c", VALIDATE, str(bill)], check=True)


def test_each_package_stands_with_its_licence() -> None:
    parts = [
        {"name": "b", "version": "2", "licenses": [{"expression": "MIT OR Apache-2.0"}]},
        {"name": "a", "version": "1", "licenses": [{"license": {"id": "MIT"}}]},
        {"name": "c", "version": "3"},
        {"name": "build", "version": "5", "scope": "excluded"},
        {"name": "d", "version": "4", "licenses": [{"license": {"name": "Its Own"}}]},
    ]
    bill = {"components": [{"scope": "required", **part} for part in parts]}
    assert list(release.licences(bill)) == [
        "a 1: MIT", "b 2: MIT OR Apache-2.0", "c 3: not declared", "d 4: Its Own",
    ]  # fmt: skip
