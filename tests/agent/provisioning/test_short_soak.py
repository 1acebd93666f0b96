"""The soak of the bench in its short form: it works, and finds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.contract("C10")
@pytest.mark.timeout(300)
def test_a_short_soak_of_the_bench_finds_nothing() -> None:
    run = subprocess.run(
        [sys.executable, "scripts/soak.py", "provisioning", "--smoke", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(rows) >= 7, run.stderr
    assert [row["what"] for row in rows if not row["ok"]] == [], run.stdout


_WITHOUT_CONSENTS = """
import sys, random, shutil, tempfile
from pathlib import Path
from msgspec.structs import replace

sys.path[:0] = ["soak", "scripts", "bench"]
import httpx, provisioning, second_thoughts as trial
from agent.provisioning.planning.consent import KeyQuestion

KeyQuestion.needed = lambda *_, **__: frozenset()
with tempfile.TemporaryDirectory() as name, provisioning.service(Path(name)) as station:
    usual = replace(trial.GOAL, id_prefix="nrf-")
    with httpx.Client(trust_env=False) as client:
        for number, event in enumerate(["twin", "same uuid", "second tag"]):
            folder = station.folder / f"round{number}"
            folder.mkdir()
            for file in ("ca.pem", "ca.key"):
                shutil.copy(station.folder / file, folder)
            bench = trial.Bench(replace(station, folder=folder), client, {})
            for socket in trial.SOCKETS:
                imei = f"{4_000_000 + number * 10 + socket:014}"
                bench.fresh(socket, imei, trial.device_uuid(trial.full(imei)))
            bench.run([0, 1], usual, station.folder, 0)
            imei, uuid = bench.identities[1]
            goal, struck = usual, 2
            if event == "second tag":
                goal, struck = replace(usual, security_tag=trial.SECOND_TAG), 1
            else:
                bench.fresh(2, imei, uuid if event == "same uuid" else trial.new_uuid(random))
            bench.run([struck], goal, station.folder, 0)
            print(event, len(bench.wrongs))
"""


@pytest.mark.timeout(120)
def test_the_trial_of_second_thoughts_sees_that_no_consent_was_asked_for() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _WITHOUT_CONSENTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.stdout.splitlines() == ["twin 1", "same uuid 1", "second tag 1"], run.stderr
