"""Copies of the working tree in which mutants are tried, and what the tests run in them.

No mutant is ever written into the working tree. A copy is brought up to date each time: only what
differs is copied, so that compiled files stay good.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from coverage import CoverageData

    from mutation.mutants import Mutant

ROOT = environment.ROOT
_OTHER_TOOLS = ("tests/peers/", "tests/agent/standin/test_schemathesis.py")
_NOTHING_BROKE = {0, 5}  # exit codes of pytest; with 5 there was no test
_AWAY = ".away"  # the place of an entry that is taken away
_PATIENCE_S = 60.0  # for one test; most take milliseconds
_OURS = "contract and not peer"  # what the third-party tools run is not ours to spoil
_COVERAGE = """[run]
source =
    {tree}/at
    {tree}/agent
data_file = {data}/coverage
parallel = true
context = ${{PYTEST_CURRENT_TEST-}}
patch = _exit
sigterm = true
disable_warnings = no-data-collected, module-not-measured, module-not-imported
"""


@dataclass
class Measured:
    """A test: the clauses that it is marked with, how long it takes, and the lines that it runs."""

    test: str
    clauses: list[str]
    outcome: str
    seconds: float
    lines: dict[str, list[int]] = field(default_factory=dict)

    @cached_property
    def breadth(self) -> int:
        """How many lines it runs."""
        return sum(map(len, self.lines.values()))


class Tree:
    """One copy, in which one mutant is tried at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tick = 0

    def refresh(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        names = {name for name in listed.stdout.split("\0") if (ROOT / name).is_file()}
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.folder / _AWAY, ignore_errors=True)  # of a run that was killed
        for name in names:
            source, copy = ROOT / name, self.folder / name
            if not copy.is_file() or copy.read_bytes() != source.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
        for copy in [*self.folder.rglob("*.py"), *self.folder.glob("tests/**/*.toml")]:
            if str(copy.relative_to(self.folder)) not in names:
                copy.unlink()
        if not (venv := self.folder / ".venv").exists():
            venv.unlink(missing_ok=True)  # a link to one that is gone
            venv.symlink_to(environment.VENV)

    def measure(self, file: str) -> list[Measured]:
        """Run the marked tests of a file, and return what each of them ran."""
        from coverage import CoverageData

        with tempfile.TemporaryDirectory(prefix="mut") as folder:
            data = Path(folder, "data")
            data.mkdir()
            settings = Path(folder, "coverage.ini")
            settings.write_text(_COVERAGE.format(tree=self.folder, data=data))
            options = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="]
            notes, code = self._pytest([file, "-m", _OURS, *options], folder, seconds=1800)
            if not notes and code not in _NOTHING_BROKE:
                sys.exit(f"{file} cannot be run: {Path(folder, 'output').read_text()[-2000:]}")
            tests = {row["test"]: Measured(**row) for row in notes}
            for path in data.glob("coverage*"):
                run = CoverageData(str(path))
                run.read()
                self._note_lines(run, tests)
        return list(tests.values())

    def _note_lines(self, run: CoverageData, tests: dict[str, Measured]) -> None:
        lines: dict[tuple[str, str], set[int]] = defaultdict(set)
        for path in run.measured_files():
            file = str(Path(path).relative_to(self.folder))
            for line, contexts in run.contexts_by_lineno(path).items():
                for context in contexts:
                    if (test := _test_of(context)) in tests:
                        lines[test, file].add(line)
        for (test, file), numbers in lines.items():
            tests[test].lines[file] = sorted({*tests[test].lines.get(file, []), *numbers})

    def judge(self, mutant: Mutant, tests: Iterable[Measured]) -> tuple[str, str]:
        """Return what becomes of a mutant, and the test that notices it.

        It is "killed", "timed out" if only the time that a test may take told, or "survived".
        """
        with self._spoilt(mutant):
            return self.fails(tests)

    @contextmanager
    def _spoilt(self, mutant: Mutant) -> Iterator[None]:
        path = self.folder / mutant.file
        if mutant.operator == "removed":
            away = path.rename(self.folder / _AWAY)
            yield
            away.rename(path)
            return
        source = path.read_bytes()
        kept = path.stat()
        path.write_bytes(mutant.applied(source))
        self._tick += 1  # another time than any before: else a compiled file passes for this one
        os.utime(path, (self._tick, self._tick))
        try:
            yield
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))

    def fails(self, tests: Iterable[Measured]) -> tuple[str, str]:
        """Run tests, the fastest first, until one fails."""
        ordered = sorted(tests, key=lambda test: (test.seconds, test.test))
        seconds = 60 + 5 * sum(test.seconds for test in ordered)
        with tempfile.TemporaryDirectory(prefix="mut") as folder:
            names = Path(folder, "names")
            names.write_text("".join(f"{test.test}\n" for test in ordered))
            notes, code = self._pytest([f"@{names}", "-x"], folder, seconds=seconds)
        last = notes[-1] if notes else {"test": "", "outcome": ""}
        if code == 0:
            return "survived", ""
        if code is None or last["outcome"] == "timed out":
            return "timed out", last["test"]
        return "killed", last["test"] if last["outcome"] == "failed" else "when it is imported"

    def _pytest(
        self, arguments: list[str], folder: str, seconds: float
    ) -> tuple[list[dict[str, Any]], int | None]:
        """Return the notes of a run and its exit code, None where it did not end in time."""
        notes = Path(folder, "notes")
        temporary = Path(folder, "t")
        temporary.mkdir()
        command = [
            sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider",
            "-p", "mutation.notes", f"--timeout={_PATIENCE_S}", *arguments,
        ]  # fmt: skip
        more = {
            "MUTATION_NOTES": str(notes),
            "PYTHONPATH": f"{self.folder}{os.pathsep}{ROOT / 'scripts'}",
            "PYTHONDONTWRITEBYTECODE": "" if "--cov" in arguments else "1",
            "TMPDIR": str(temporary),
            "MUTATION_COVERAGE": str(Path(folder, "coverage.ini")),
            "CI": "1",  # the same examples of a property each time
        }
        with Path(folder, "output").open("w+") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env={**_own_environment(), **more},
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process)
        rows = notes.read_text().splitlines() if notes.is_file() else []
        return [json.loads(row) for row in rows], code


class Measurements:
    """What each test file runs: measured once, and again when the file is another.

    Where only the code has changed since, lines keep what ran them as they move; a changed line
    counts as not run until its tests are measured again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources = folder / "sources"  # the code as it was measured, by digest
        self.sources.mkdir(parents=True, exist_ok=True)

    def of(self, file: str, tree: Tree) -> list[Measured]:
        kept = self.folder / (file.replace("/", "-") + ".json")
        digest = _digest((tree.folder / file).read_bytes())
        if kept.is_file():
            content = json.loads(kept.read_text())
            if content["file"] == digest:
                tests = [Measured(**row) for row in content["tests"]]
                for name, source in content["sources"].items():
                    self._move(tests, name, source, tree.folder / name)
                return tests
        tests = tree.measure(file)
        sources = {}
        for name in sorted({name for test in tests for name in test.lines}):
            text = (tree.folder / name).read_bytes()
            sources[name] = _digest(text)
            (self.sources / sources[name]).write_bytes(text)
        rows = [asdict(test) for test in tests]
        kept.write_text(json.dumps({"file": digest, "sources": sources, "tests": rows}))
        return tests

    def _move(self, tests: list[Measured], name: str, source: str, path: Path) -> None:
        after = path.read_bytes() if path.is_file() else b""
        if _digest(after) == source:
            return
        before = (self.sources / source).read_bytes()
        place = moved_lines(before, after)
        for test in tests:
            if name in test.lines:
                test.lines[name] = [place[line] for line in test.lines[name] if line in place]


@cache
def moved_lines(before: bytes, after: bytes) -> dict[int, int]:
    """Return where each line that is still there stands now, both counted from 1."""
    lines = before.splitlines(), after.splitlines()
    blocks = SequenceMatcher(None, *lines, autojunk=False).get_matching_blocks()
    return {a + n + 1: b + n + 1 for a, b, size in blocks for n in range(size)}


def marked_files(root: Path) -> list[str]:
    """Return the test files in which a clause's mark stands, but for those that run other tools."""
    paths = sorted((root / "tests").rglob("test_*.py"))
    names = [str(path.relative_to(root)) for path in paths if "contract(" in path.read_text()]
    return [name for name in names if not name.startswith(_OTHER_TOOLS)]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _test_of(context: str) -> str:
    """Return the test that a context of the coverage names: what it calls, not what it prepares."""
    for end in ("|run", " (call)", " (setup)"):  # the latter two: a process that it started
        if context.endswith(end):
            return context.removesuffix(end)
    return ""


def _own_environment() -> dict[str, str]:
    """Return the environment without the test that may run us: contexts would carry its name."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a run and what it started in its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
