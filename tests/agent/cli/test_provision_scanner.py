"""An operator at the bench: a terminal, a scanner that types, kits that come, fail and go."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from agent.provisioning.ledger import RunRecord
from agent.provisioning.ledger.listing import Listing, RecordFilter
from tests.support.provisioning.tray_trial import Trial, tray_trial
from tests.support.provisioning.typed_bench import TypedBench, typed_bench

pytestmark = pytest.mark.timeout(600)


def exported(trial: Trial) -> dict[str, dict[str, str]]:
    done = subprocess.run(
        [sys.executable, "-m", "agent", "provision", "export", "--as", "json"],
        env=trial.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {line["uuid"]: line for line in map(json.loads, done.stdout.splitlines())}


def page_link(trial: Trial) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "agent", "page", "--json"],
        env=trial.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    links: dict[str, str] = json.loads(done.stdout)
    return links


def begun(trial: Trial, *options: str) -> list[str]:
    return [*trial.ports, "--set-clock", "--watch", *options]


def scanned(bench: TypedBench, text: str, says: str) -> None:
    bench.type(f"{text}\n")
    bench.until(says)


def test_a_terminal_that_is_closed_ends_a_bench_as_it_ends_other_programs(tmp_path: Path) -> None:
    with tray_trial(tmp_path / "tray", range(2)) as trial:
        with typed_bench(*begun(trial), environment=trial.environment) as bench:
            bench.until(r"2 \S*PASS")
            assert bench.hang_up() == 129
        assert {one["outcome"] for one in exported(trial).values()} == {"done"}


def test_a_scanner_gives_each_board_its_label_and_wrong_scans_change_nothing(
    tmp_path: Path,
) -> None:
    with tray_trial(tmp_path / "tray", range(4), faults={2: "silent"}) as trial:
        with (trial.folder / "config" / "config.toml").open("a") as config:
            config.write("[profiles.tray.provisioning.limits]\nsupply_min_mv = 3000\n")
        trial.unplug([3])
        with typed_bench(*begun(trial, "--scan"), environment=trial.environment) as bench:
            bench.until("scan the label of A1")
            scanned(bench, "L1", "A1 has label L1")
            scanned(bench, "L1", "\x07.*not taken: double: label L1 is that of the board in A1")
            scanned(bench, "A3", "A3: scan its label")
            scanned(bench, "L3", "A3 has label L3")
            scanned(bench, "wrong\x15L2\r", "A2 has label L2")  # CR and LF: an empty line is none
            bench.until("\x07.*A3\r\n  failed at ")  # rung, and said
            trial.plug_in([3])
            bench.until("scan the label of A4")
            trial.unplug([3])
            bench.until("scan a slot, or the label of the next board")
            scanned(bench, "L4", "not taken: late: the board in A4 was taken out")
            trial.unplug([2])
            bench.until(r"2 \S*PASS.*2 \S*empty")
            trial.plug_in([2])
            bench.until("scan the label of A3")
            scanned(bench, "L1", "double")
            scanned(bench, "L3", "not taken: late")
            scanned(bench, "L3", "A3 has label L3")
            bench.until(r"3 \S*PASS")
            assert bench.end() == 130
            assert bench.restored()
        boards = exported(trial)
        assert {one: boards[trial.uuid(one)]["label"] for one in range(3)} == {
            0: "L1", 1: "L2", 2: "L3"
        }  # fmt: skip
        # Another day: the label of one board on another, and a board with another label.
        first, second = trial.ports[0], trial.ports[1]
        with typed_bench(
            first, "--set-clock", "--watch", "--scan", environment=trial.environment
        ) as bench:
            bench.until("scan the label of A1")
            scanned(bench, "L2", "refused at identity: label L2 is that of board")
            scanned(bench, "A1", "A1: scan its label")
            scanned(bench, "L9", "refused at identity: this board has the label L1, and L9")
            bench.until("--relabel L9")
            assert bench.end() == 130
        assert {uuid: one["label"] for uuid, one in exported(trial).items()} == {
            uuid: one["label"] for uuid, one in boards.items()
        }
        with typed_bench(
            second, "--set-clock", "--watch", "--scan", "--relabel", "L1",
            environment=trial.environment,
        ) as bench:  # fmt: skip
            bench.until("scan the label of A2")
            scanned(bench, "L1", r"1 \S*PASS")
            bench.end()
        after = exported(trial)
        assert [after[trial.uuid(one)]["label"] for one in (0, 1)] == ["", "L1"]


def test_a_window_of_another_size_shows_the_table_once_and_loses_nothing(tmp_path: Path) -> None:
    with (
        tray_trial(tmp_path / "tray", range(1)) as trial,
        typed_bench(*begun(trial), environment=trial.environment, columns=100) as bench,
    ):
        bench.until(r"1 \S*PASS")
        for columns, lines in ((60, 24), (60, 10), (80, 24)):
            bench.resize(columns, lines)
            # All that is there goes up, out of the window; then it is cleared. A terminal that
            # grows takes back what went up, older tables too.
            shown = bench.until(r"((?:\r\n)+)\x1b\[H\x1b\[2J.*1 \S*PASS")
            assert shown[1].count("\n") == lines
        assert bench.end() == 130
        assert "\x1b[2J" not in bench.written


def test_a_key_tries_the_failed_board_again_and_quiet_rings_no_bell(tmp_path: Path) -> None:
    with tray_trial(tmp_path / "tray", range(2)) as trial:
        trial.cloud.stop()
        with typed_bench(*begun(trial, "--quiet"), environment=trial.environment) as bench:
            bench.until("A2\r\n  failed at ")
            trial.cloud.start()
            bench.type("r")
            bench.until(r"2 \S*PASS")
            assert bench.end() == 130
            assert bench.restored()
        with typed_bench(*begun(trial, "--scan"), environment=trial.environment) as bench:
            bench.until("scan the label of A1")
            scanned(bench, "r", "no board failed")
            bench.end()


def test_the_page_of_a_run_shows_its_tray_and_has_a_failed_board_tried_again(
    tmp_path: Path,
) -> None:
    with tray_trial(tmp_path / "tray", range(1)) as trial:
        trial.cloud.stop()
        words = begun(trial, "--page", "127.0.0.1:0", "--page-control")
        with typed_bench(*words, environment=trial.environment) as bench:
            found = bench.until(r"(http://127\.0\.0\.1:\d+)/(\?token=\S+)#act=(\S+)")
            bench.until("A1\r\n  failed at ")
            with httpx.Client(base_url=found[1], follow_redirects=True) as browser:
                text = browser.get(f"/{found[2]}").text
                assert "1 of 1 slot needs a hand" in text
                assert "failed at" in text
                act = {"origin": found[1], "x-cellagent-act": found[3]}
                order = {"operator": "op 9", "lot": "L9"}
                assert browser.post("/bench/order", json=order, headers=act).is_success
                trial.cloud.start()
                scan = {"line": "A1"}
                assert browser.post("/bench/scan", json=scan, headers=act).is_success
                bench.until(r"1 \S*PASS")
                assert "1 of 1 slot passes" in browser.get("/bench").text
            another = page_link(trial)
            assert another["link"] == another["bench"]
            link, _, token = another["bench"].partition("#act=")
            with httpx.Client(follow_redirects=True) as browser:
                assert "1 of 1 slot passes" in browser.get(link).text
                act = {"origin": found[1], "x-cellagent-act": token}
                assert browser.post(f"{found[1]}/bench/order", json=order, headers=act).is_success
            assert bench.end() == 130
        with closing(trial.open_ledger()) as ledger:
            (run,) = Listing(ledger, RunRecord, RecordFilter(outcome="done")).every()
        assert (run.operator, run.lot) == ("op 9", "L9")


def test_page_control_wants_a_page_of_a_bench_that_goes_on() -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "agent", "provision", "run", "--all", "--page-control"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "--watch --page" in refused.stderr


def test_a_slot_is_scanned_twice_where_another_key_is_allowed(tmp_path: Path) -> None:
    with tray_trial(tmp_path / "tray", range(1)) as trial:
        trial.cloud.stop()
        words = begun(trial, "--scan", "--rekey")
        with typed_bench(*words, environment=trial.environment) as bench:
            bench.until("scan the label of A1")
            scanned(bench, "L1", "failed at ")
            scanned(bench, "A1", "not taken: --rekey allows another key: scan A1 once more")
            scanned(bench, "A1", "A1 is tried again")
            bench.end()


def test_a_scanner_whose_input_ended_is_told(tmp_path: Path) -> None:
    with (
        tray_trial(tmp_path / "tray", range(1)) as trial,
        subprocess.Popen(
            [sys.executable, "-m", "agent", "provision", "run", *begun(trial, "--scan")],
            env=trial.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        ) as bench,
    ):  # fmt: skip
        assert bench.stderr is not None
        said = next(line for line in bench.stderr if "input has ended" in line)
        assert "no board gets a label any more" in said
        bench.send_signal(signal.SIGINT)
        assert bench.wait(60) == 130
