"""The benchmarks and the soak runs are found by their names, and work."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import environment  # noqa: E402 - its folder is no package
from trials import page as trial_page  # noqa: E402
from trials.measure import Row  # noqa: E402


def trial(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=280,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "name"), [("bench.py", "driver-round-trip"), ("soak.py", "late-answers")]
)
def test_every_module_is_listed_by_its_name(script: str, name: str) -> None:
    assert name in trial(script, "--list").stdout.splitlines()


def test_every_fault_is_injected_by_a_module_or_a_test_that_is_there() -> None:
    listed = trial("soak.py", "--list").stdout.splitlines()
    modules = {"", *(name.partition(":")[0] for name in listed)}
    for named in trial_page.faults().values():
        for name, fault in named.items():
            assert fault.soak in modules, name
            assert fault.soak or fault.tests, name
            for test in fault.tests:
                file, _, function = test.partition("::")
                assert f"def {function}" in (ROOT / "tests" / file).read_text(), test


def test_every_fault_that_a_module_counts_is_one_of_the_list() -> None:
    known = {name: fault for named in trial_page.faults().values() for name, fault in named.items()}
    for path in (ROOT / "soak").glob("*.py"):
        module = re.search(r'^NAME = "(.*)"$', path.read_text(), re.MULTILINE)
        for name in re.findall(r'fault="([^"]+)"', path.read_text()):
            assert module is not None
            assert known[name].soak == module.group(1)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name",
    [
        "fuzz",
        "suite",
        "mixed-lines",
        "late-answers",
        "doubled-answers",
        "redacted-recordings",
        "year",
    ],
)
def test_a_short_soak_finds_nothing(name: str) -> None:
    run = trial("soak.py", name, "--smoke", "--json")
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert rows, run.stderr
    assert [row["what"] for row in rows if not row["ok"]] == []


def test_a_page_is_of_the_last_run_of_each_and_goes_on_where_no_code_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(trial_page, "DOCS", tmp_path / "docs")
    for folder in ("bench", "agent", "docs/reference", "docs/pictures"):
        (tmp_path / folder).mkdir(parents=True)

    def commit(path: str, text: str) -> None:
        (tmp_path / path).write_text(text)
        who = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
        for words in (["add", "--all"], [*who, "commit", "--quiet", "--message", "a change"]):
            subprocess.run(["git", *words], cwd=tmp_path, check=True)

    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    commit("agent/code.py", "1")
    page = trial_page.Page("bench", ["fast", "slow"])
    assert not page.is_new("fast")
    page.keep("fast", "It is fast.", [Row("a call", 3.0, "us", 2.0, "beside | another")])
    commit("docs/note.md", "of no code")

    page = trial_page.Page("bench", ["fast", "slow"])
    assert page.is_new("fast")
    assert not page.is_new("slow")
    page.keep("slow", "It is slow.", [Row("a day", 1.0, "s", None), Row("a week", 7.0, "s", 14.0)])

    written = (tmp_path / "docs/reference/bench.md").read_text()
    assert "| a call | 3 us | 2 **missed** | beside / another |" in written
    assert "| a week | 7 s | 14 |  |" in written
    assert "Not run whole yet" not in written
    drawn = (tmp_path / "docs/pictures/bench.svg").read_text()
    assert [share for share in ("150 %", "50 %", "a day") if share in drawn] == ["150 %", "50 %"]
    commit("agent/code.py", "2")
    assert not trial_page.Page("bench", ["fast", "slow"]).is_new("fast")
    later = trial_page.Page("bench", ["fast", "slow", "third"])
    later.keep("fast", "It is fast.", [Row("a call", 1.0, "us", 2.0)])
    written = (tmp_path / "docs/reference/bench.md").read_text()
    assert "Not run whole yet: third." in written
    assert "missed" not in written.partition("## ")[2]
