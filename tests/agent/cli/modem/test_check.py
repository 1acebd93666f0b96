"""`cellagent modem check`, as a person or a program calls it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.commands.command_line import completed as cellagent
from tests.support.commands.command_line import objects
from tests.support.modem.served_kit import served


def test_check_tells_what_the_modem_is_and_changes_nothing(tmp_path: Path) -> None:
    fresh = f"virtual:{tmp_path / 'kit.json'}"
    (report,) = objects(cellagent("modem", "check", "--json", "--port", fresh))
    assert report["allowed"] is True
    assert str(report["firmware"]).startswith("mfw_nrf91x1_2.")
    assert report["functional_mode"] == 0
    assert report["sim"] is None
    people = cellagent("modem", "check", "--port", "virtual:")
    assert "answers AT" in people.stdout
    assert all(len(line) <= 100 for line in people.stdout.splitlines())


def test_check_gives_the_way_out_that_the_number_of_a_refusal_names(tmp_path: Path) -> None:
    kit = ("modem", "virtual", "--instant", "--fault", "no-sim", "--pty", str(tmp_path / "kit"))
    check = (sys.executable, "-m", "agent", "modem", "check", "--port", str(tmp_path / "kit"))
    said = cellagent(*kit, "--", *check).stdout
    assert "SIM not inserted" in said
    assert "insert a SIM, then `cellagent modem on --port" in said


@pytest.mark.parametrize(
    ("fault", "exit_code", "cause"),
    [
        ("denied=8", 1, "emm-8"),
        ("no-address", 1, "no-ip"),
        ("band-locked", 1, "band-lock"),
        ("supply-low", 1, "supply-low"),
        ("overheated", 1, "overheated"),
        ("weak", 1, "weak-signal"),
        ("psm-refused", 0, "registered"),
    ],
)
def test_check_fails_where_the_kit_cannot_do_its_work_and_says_why(
    tmp_path: Path, fault: str, exit_code: int, cause: str
) -> None:
    with served(tmp_path, "--fault", fault) as kit:
        port = ("--port", str(kit.port))
        assert cellagent("modem", "at", "AT+CFUN=1", *port).returncode == 0
        run = cellagent("modem", "check", "--json", *port)
    causes = objects(run)[-1]["causes"]
    assert isinstance(causes, list)
    assert (run.returncode, causes[0]["cause"]) == (exit_code, cause)


def test_a_person_is_shown_the_cause_and_what_to_try(tmp_path: Path) -> None:
    with served(tmp_path, "--fault", "no-address") as kit:
        port = ("--port", str(kit.port))
        assert cellagent("modem", "at", "AT+CFUN=1", *port).returncode == 0
        said = cellagent("modem", "check", *port).stdout
    assert " no-ip: " in said
    assert "try: " in said.partition(" no-ip: ")[2]


def test_a_kit_that_was_just_switched_on_gets_time_for_its_search(tmp_path: Path) -> None:
    port = str(tmp_path / "kit")
    on = f"{sys.executable} -m agent modem at --port {port} AT+CFUN=1 >&2"
    check = f"{sys.executable} -m agent modem check --json --port {port}"
    kit = ("modem", "virtual", "--pty", port)
    run = cellagent(*kit, "--", "sh", "-c", f"{on}; {check}")
    report = objects(run)[-1]
    assert (run.returncode, report["registration"]) == (0, 1)
    causes = report["causes"]
    assert isinstance(causes, list)
    assert [one["cause"] for one in causes] == ["registered"]


@pytest.mark.contract("D1.3")
def test_a_modem_that_refuses_to_tell_its_firmware_gets_a_verdict_and_not_an_error(
    tmp_path: Path,
) -> None:
    recorded = tmp_path / "silent.transcript"
    recorded.write_text("# transcript: 1\n> AT+CGMM\n< nRF9160-SICA\n< OK\n")
    check = ("modem", "check", "--port", f"replay:{recorded}")
    run = cellagent(*check, "--json")
    (report,) = objects(run)
    assert (run.returncode, report["allowed"], report["model"]) == (4, False, "nRF9160-SICA")
    assert "cannot be told from its answer to AT+CGMR" in str(report["reason"])
    assert "firmware         the modem's firmware cannot" in cellagent(*check).stdout


@pytest.mark.contract("D1.3")
@pytest.mark.parametrize("firmware", ["mfw_nrf9151-ntn_1.0.0", "mfw_nrf93m1_0.9.2"])
def test_a_firmware_that_passes_with_a_note_shows_it_to_people_and_programs(
    tmp_path: Path, firmware: str
) -> None:
    recorded = tmp_path / "kit.transcript"
    recorded.write_text(f"# transcript: 1\n> AT+CGMR\n< {firmware}\n< OK\n")
    check = ("modem", "check", "--port", f"replay:{recorded}")
    (report,) = objects(cellagent(*check, "--json"))
    assert (report["allowed"], report["reason"]) == (True, None)
    assert "the rule of 1.3.0 does not apply" in str(report["note"])
    assert "the rule of 1.3.0 does not apply" in cellagent(*check).stdout
