"""The faults that tests of the suite inject, each example of theirs ten times as often."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from trials.measure import Row
from trials.page import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "suite"
ROOT = Path(__file__).resolve().parent.parent
SHORT = "agent/test_retry.py"


def run(smoke: bool) -> Iterator[Row]:
    named = {name: fault.tests for place in faults().values() for name, fault in place.items()}
    tests = sorted({test for listed in named.values() for test in listed})
    if smoke:
        tests = [test for test in tests if test.startswith(SHORT)]
    ran, failed = outcomes(tests, often=not smoke)
    for name, listed in named.items():
        own = [test for test in listed if test in tests]
        if own:
            lost = sum(failed[test] for test in own)
            cases = sum(ran[test] for test in own)
            yield Row(name, lost, "failed", 0, f"{cases} cases", fault=name, injected=cases)


def outcomes(tests: list[str], *, often: bool) -> tuple[Counter[str], Counter[str]]:
    """Run tests, named as FILE or FILE::NAME below tests/; return the cases and the failures."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        whole = ["-n", "2", "--hypothesis-profile=often"] if often else []
        command = [sys.executable, "-m", "pytest", "-q", *whole]
        subprocess.run(
            [*command, f"--junitxml={report}", *(f"tests/{test}" for test in tests)],
            cwd=ROOT, stdout=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        cases = list(ET.parse(report).iter("testcase"))
    ran: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for case in cases:
        file = case.attrib["classname"].removeprefix("tests.").replace(".", "/") + ".py"
        function = case.attrib["name"].partition("[")[0]
        if case.find("skipped") is not None:
            continue
        for test in (file, f"{file}::{function}"):
            ran[test] += 1
            failed[test] += case.find("failure") is not None or case.find("error") is not None
    assert all(ran[test] for test in tests), [test for test in tests if not ran[test]]
    return ran, failed
