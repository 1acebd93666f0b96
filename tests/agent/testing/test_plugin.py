"""One suite on three kits, in a project of another person's: virtual, recorded, real."""

from __future__ import annotations

import random
import re
import shlex
import shutil
from pathlib import Path

import pytest

from agent.testing.paths import file_name
from tests.support.commands.user_project import UserProject
from tests.support.modem.served_kit import served

SUITES = Path(__file__).parent / "suites"


def test_one_suite_runs_on_a_virtual_kit_on_its_recording_and_on_a_real_one(
    project: UserProject, tmp_path: Path
) -> None:
    shutil.copy(SUITES / "ports.py", project.folder / "test_suite.py")
    assert "10 passed" in project.run()
    assert not (project.folder / "transcripts").exists()
    assert "10 passed" in project.run("--cellagent-kit=record")
    recorded = sorted((project.folder / "transcripts" / "test_suite").iterdir())
    assert [file.name for file in recorded][:2] == [
        "test_a_coroutine.transcript", "test_a_plain_function.transcript",
    ]  # fmt: skip
    assert len(recorded) == 10
    text = "".join(file.read_text() for file in recorded)
    assert "00100999" in text, "identity is redacted by default"
    assert "10 passed" in project.run("--cellagent-kit=replay")
    with served(tmp_path) as kit:
        assert "10 passed" in project.run(f"--cellagent-kit={kit.port}")


def test_what_is_printed_and_done_to_the_kit_is_recorded_too(project: UserProject) -> None:
    shutil.copy(SUITES / "console.py", project.folder / "test_console.py")
    assert "3 passed" in project.run("--cellagent-kit=record")
    assert "3 passed" in project.run("--cellagent-kit=replay")
    names = {file.name for file in (project.folder / "transcripts" / "test_console").iterdir()}
    assert "test_what_it_prints.console.transcript" in names
    assert "test_marks.transcript" in names


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_what_fixtures_of_the_user_say_is_recorded_before_the_test_and_behind_it(
    project: UserProject, mode: str
) -> None:
    project.write("pytest.ini", f"[pytest]\nasyncio_mode = {mode}\n")
    shutil.copy(SUITES / "fixtures.py", project.folder / "test_it.py")
    for kit in ("virtual", "record", "replay"):
        assert "3 passed" in project.run(f"--cellagent-kit={kit}")
    (file,) = (project.folder / "transcripts" / "test_it").glob("test_plain*")
    sent = re.findall("> (.*)", file.read_text())
    assert sent[-3:] == ["AT+CFUN=1", "AT+CGMR", "AT+CFUN=0"]
    text = file.read_text().rpartition("@")[0].rpartition("@")[0]  # the last answer's command
    file.write_text(text + "@9.0 > AT+CFUN=4\n@9.1 < OK\n")
    told = project.run("--cellagent-kit=replay", "-k", "plain", code=1)
    assert "sent      `AT+CFUN=0` CR" in told


AT_THE_END = """
import pytest

@pytest.fixture
def turned_off(modem_sync, request):
    request.addfinalizer(lambda: modem_sync.execute("AT+CFUN=0"))

@pytest.fixture
def asked_for_by_name(request):
    modem = request.getfixturevalue("modem_sync")
    yield modem
    modem.execute("AT+CFUN=0")

def test_finalizer(turned_off, modem_sync):
    modem_sync.execute("AT+CGMR")

def test_by_name(asked_for_by_name):
    asked_for_by_name.execute("AT+CGMR")
"""


def test_what_a_finalizer_says_and_a_fixture_that_asks_by_name_is_recorded_too(
    project: UserProject,
) -> None:
    project.write("test_it.py", AT_THE_END)
    for kit in ("record", "replay"):
        assert "2 passed" in project.run(f"--cellagent-kit={kit}")
    for file in (project.folder / "transcripts" / "test_it").iterdir():
        assert re.findall("> (.*)", file.read_text())[-2:] == ["AT+CGMR", "AT+CFUN=0"]


ANYIO = """
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
async def test_coroutine(modem):
    assert (await modem.execute("AT+CGMM")).ok

def test_plain(modem):
    pass
"""


def test_a_modem_needs_no_more_than_something_that_runs_coroutines(project: UserProject) -> None:
    project.write("test_it.py", ANYIO)
    project.write("pytest.ini", "[pytest]\n")
    for kit in ("record", "replay"):
        told = project.run(f"--cellagent-kit={kit}", "-p", "no:asyncio", code=1, PYTEST_ADDOPTS="")
        assert "1 passed" in told
    assert "take modem_sync, or write `async def`" in project.run("-k", "plain", code=1)


EVERY_BACKEND = """
import pytest

@pytest.mark.anyio
async def test_fails(modem):
    assert not (await modem.execute("AT+CGMM")).ok
"""


def test_a_coroutine_on_another_event_loop_is_told_how_to_have_asyncio(
    project: UserProject,
) -> None:
    """anyio runs a test once on each backend, unless it is told otherwise."""
    project.write("test_it.py", EVERY_BACKEND)
    project.write("pytest.ini", "[pytest]\n")
    told = project.run("-p", "no:asyncio", code=1, PYTEST_ADDOPTS="")
    assert "2 failed" in told
    assert "the fixture modem needs asyncio, and another event loop runs this" in told
    assert 'write `@pytest.mark.parametrize("anyio_backend", ["asyncio"])` above the test' in told
    assert "RuntimeError" not in told
    assert "agent/testing" not in told, "a failure shows the frames of the test alone"


def test_every_changed_byte_of_a_recording_is_told_with_its_place_and_the_difference(
    project: UserProject,
) -> None:
    """Thirty bytes, in what was sent: one of each step, another one each time."""
    commands = [f"AT+CMEE={n}" for n in (0, 1)] + ["AT+CGMR", "AT+CESQ", "AT%XVBAT"]
    asked = "\n".join(f'    modem_sync.execute("{line}")' for line in commands * 6)
    project.write("test_long.py", f"def test_long(modem_sync):\n{asked}\n")
    project.run("--cellagent-kit=record")
    (file,) = (project.folder / "transcripts" / "test_long").iterdir()
    lines = file.read_text().splitlines()
    sent = [number for number, line in enumerate(lines) if " > AT" in line][-30:]
    (project.folder / "test_long.py").unlink()
    for turn, number in enumerate(sent):
        begin = lines[number].index("AT")
        place = begin + turn % len(lines[number][begin:])
        changed = [*lines]
        changed[number] = f"{lines[number][:place]}!{lines[number][place + 1 :]}"
        folder = project.folder / "transcripts" / f"test_n{turn}"
        folder.mkdir()
        (folder / "test_long.transcript").write_text("\n".join([*changed, ""]))
        project.write(f"test_n{turn}.py", f"def test_long(modem_sync):\n{asked}\n")
    told = project.run("--cellagent-kit=replay", code=1)
    assert "30 failed" in told
    for turn, number in enumerate(sent):
        place = f"transcripts/test_n{turn}/test_long.transcript:{number + 1}: "
        assert place in told
    assert told.count("E       to record it anew: pytest test_n") == 30
    assert told.count("E       ->  ") == 30
    assert "agent/testing" not in told
    assert "at/driver" not in told


SWALLOWS = """
def test_swallows(modem_sync):
    try:
        modem_sync.execute("{first}")
    except Exception:
        pass


def test_stops_early(modem_sync):
    {second}
"""


def test_what_the_test_swallows_and_what_it_no_longer_sends_fail_it_too(
    project: UserProject,
) -> None:
    file = project.folder / "test_it.py"
    file.write_text(SWALLOWS.format(first="AT+CGMM", second='modem_sync.execute("AT+CGMM")'))
    project.run("--cellagent-kit=record")
    file.write_text(SWALLOWS.format(first="AT+CGMR", second="pass"))
    told = project.run("--cellagent-kit=replay", code=1)
    assert "2 failed" in told
    assert "the test ended before `AT+CGMM`" in told
    assert "sent      `AT+CGMR` CR" in told


def test_a_failed_test_keeps_no_recording_and_new_ones_are_made_where_they_are_missing(
    project: UserProject,
) -> None:
    test = 'def test_it(modem_sync):\n    assert modem_sync.execute("AT+CGMR").ok is {}\n'
    file = project.folder / "test_it.py"
    recording = project.folder / "transcripts" / "test_it" / "test_it.transcript"
    file.write_text(test.format(False))
    project.run("--cellagent-kit=record", code=1)
    assert not recording.exists()
    file.write_text(test.format(True))
    told = project.run("--cellagent-kit=replay", code=1)
    assert "`pytest --cellagent-record=once`" in told
    project.run("--cellagent-record=once")
    first = recording.read_text()
    file.write_text(test.replace("CGMR", "CGMM").format(True))
    project.run("--cellagent-record=once", code=1)
    assert recording.read_text() == first
    project.run("--cellagent-record=new")
    assert "> AT+CGMM" in recording.read_text()


ENDS_BY = """
import pytest

@pytest.fixture
def closing(modem_sync):
    yield
    modem_sync.execute("{}")

{}
def test_it(closing):
    pass
"""


def test_a_kit_that_fails_while_a_test_is_recorded_anew_takes_no_recording_away(
    project: UserProject,
) -> None:
    recording = project.folder / "transcripts" / "test_it" / "test_it.transcript"
    project.write("test_it.py", ENDS_BY.format("AT+CFUN?", ""))
    project.run("--cellagent-record=once")
    first = recording.read_text()
    project.write("test_it.py", ENDS_BY.format("AT+CFUN=0", "@pytest.mark.kit_fault('silent')"))
    assert "nothing answers AT" in project.run("--cellagent-record=new", code=1)
    assert recording.read_text() == first


def test_a_test_that_skips_itself_by_what_the_kit_says_does_so_on_a_replay(
    project: UserProject,
) -> None:
    asks = 'assert modem_sync.execute("AT+CGMM").ok'
    project.write(
        "test_it.py",
        f"import pytest\n\ndef test_it(modem_sync):\n    {asks}\n    pytest.skip('no 9151')\n",
    )
    for kit in ("record", "replay"):
        assert "1 skipped" in project.run(f"--cellagent-kit={kit}")


def test_unrelated_projects_see_nothing_of_it(project: UserProject) -> None:
    project.write("conftest.py", "")
    project.write("test_it.py", "def test_it():\n    pass\n")
    told = project.run("--fixtures", "--help")
    assert "cellagent" not in told.replace("modem_from_transcript", "")


MATRIX = """
import pytest


@pytest.mark.kit_matrix("virtual faults")
def test_it(modem_sync):
    assert modem_sync.execute("AT+CGSN").ok
    assert modem_sync.execute("AT+CPIN?").ok
"""


def test_a_matrix_says_which_faults_a_test_survives(project: UserProject) -> None:
    project.write("test_it.py", MATRIX)
    told = project.run("-k", "no-sim or sim-pin or notice-mid or memory-full")
    assert "test_it survives 3 of 4 faults" in told
    assert "not no-sim" in told
    assert "3 passed" in told


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def test_it(modem_sync)", "def test_it(modem_sync, kit_port)"),
        ("@pytest", "@pytest.mark.kit(model='nrf9999')\n@pytest"),
    ],
)
def test_a_slip_fails_a_matrix_and_is_no_fault_that_is_not_survived(
    project: UserProject, before: str, after: str
) -> None:
    project.write("test_it.py", MATRIX.replace(before, after))
    assert "2 errors" in project.run("-k", "no-sim or sim-pin", code=1)


def test_a_matrix_is_replayed_where_it_was_recorded_and_fails_where_it_leaves_that(
    project: UserProject,
) -> None:
    project.write("test_it.py", MATRIX)
    faults = ("-k", "no-sim or sim-pin")
    assert "2 skipped" in project.run("--cellagent-kit=replay", *faults)
    assert "1 xfailed" in project.run("--cellagent-kit=record", *faults)
    told = project.run("--cellagent-kit=replay", "-rs", *faults)
    assert "1 passed, 1 skipped" in told
    assert "not recorded: it did not survive no-sim then, or was not run" in told
    project.write("test_it.py", MATRIX.replace("CGSN", "CGMR"))
    assert "1 failed" in project.run("--cellagent-kit=replay", *faults, code=1)


def test_a_notice_that_does_not_come_is_told_without_what_waited_for_it(
    project: UserProject,
) -> None:
    project.write("test_it.py", 'def test_it(modem_sync):\n    modem_sync.notice("RDY", 0.01)\n')
    told = project.run(code=1)
    assert "CommandTimeout: no RDY in 0.01 s" in told
    assert "CancelledError" not in told


TWO_NOTICES = """
def test_it(modem_sync, kit):
    for line in ("+CEREG: 2", "+CEREG: 5", "+CSCON: 1"):
        kit.notify(line)
    assert modem_sync.notice("+CSCON") == "+CSCON: 1"
    assert modem_sync.notice("+CEREG") == "+CEREG: 2"
    kit.notify("+CSCON: 0")
    assert modem_sync.notice("+CEREG") == "+CEREG: 5"
    assert modem_sync.notice("+CSCON") == "+CSCON: 0"
"""


def test_a_notice_that_came_before_one_that_was_waited_for_is_not_lost(
    project: UserProject,
) -> None:
    project.write("test_it.py", TWO_NOTICES)
    assert "1 passed" in project.run()


def test_cable_power_faults_and_place_are_at_hand(project: UserProject, tmp_path: Path) -> None:
    shutil.copy(SUITES / "acts.py", project.folder / "test_it.py")
    assert "4 passed" in project.run()
    project.write("test_it.py", "def test_it(kit):\n    kit.power_cycle()\n")
    with served(tmp_path) as kit:
        command = f"touch {project.folder}/{{action}}"
        assert "1 passed" in project.run(f"--cellagent-kit={kit.port},power={command}")
        assert (project.folder / "cycle").exists()
        assert "1 skipped" in project.run(f"--cellagent-kit={kit.port}", "-rs")


UNPLUGGED = """
import os
import pytest

def test_it(kit_port, kit):
    with open(kit_port, "r+b", buffering=0) as port:
        port.write(b"AT+CGMR\\r")
        while b"OK" not in port.read(100):
            pass
        kit.unplug()
        with pytest.raises(OSError):
            while port.read(100):
                pass
            raise OSError("the end of the file")
"""


def test_a_program_learns_that_its_kit_is_unplugged_from_a_virtual_and_a_recorded_one(
    project: UserProject,
) -> None:
    project.write("test_it.py", UNPLUGGED)
    for kit in ("virtual", "record", "replay"):
        assert "1 passed" in project.run(f"--cellagent-kit={kit}", "--timeout=20")


def test_a_session_is_recorded_though_temporary_files_are_on_another_file_system(
    project: UserProject,
) -> None:
    """As on systems whose /tmp is in memory."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == project.folder.stat().st_dev:
        pytest.skip("one file system")
    project.write("test_it.py", 'def test_it(modem_sync):\n    modem_sync.execute("AT+CGMR")\n')
    project.run("--cellagent-kit=record", TMPDIR=str(memory))
    (recorded,) = (project.folder / "transcripts" / "test_it").iterdir()
    assert recorded.name == "test_it.transcript"


def test_thirty_tests_run_unchanged_on_all_three_and_tell_every_byte_that_matters(
    project: UserProject, tmp_path: Path
) -> None:
    """Bytes of the recordings are drawn and changed, each in a copy, until 30 mattered.

    One does not matter if the test still passes: it is in a comment, a time, or in what no
    assertion looks at.
    """
    shutil.copy(SUITES / "thirty.py", project.folder / "test_suite.py")
    assert "30 passed" in project.run()
    assert "30 passed" in project.run("--cellagent-kit=record")
    assert "30 passed" in project.run("--cellagent-kit=replay")
    with served(tmp_path) as kit:
        assert "30 passed" in project.run(f"--cellagent-kit={kit.port}")
    listed = project.run("--collect-only", "-q")
    names = [line.partition("::")[2] for line in listed.splitlines() if "::" in line]
    folder = project.folder / "transcripts"
    draw = random.Random(22)
    changed: dict[str, tuple[str, str]] = {}  # of each test that is run again, file and line
    for turn in range(80):
        name = draw.choice(names)
        file = file_name(name) + ".transcript"
        text = (folder / "test_suite" / file).read_text()
        place = draw.randrange(len(text))
        other = draw.choice([sign for sign in "\n !<>09AZz{" if sign != text[place]])
        (folder / f"test_n{turn}").mkdir()
        (folder / f"test_n{turn}" / file).write_text(text[:place] + other + text[place + 1 :])
        shutil.copy(SUITES / "thirty.py", project.folder / f"test_n{turn}.py")
        line = text.count("\n", 0, place) + 1
        # A line end that is new makes two lines of one, and either may be the one that is wrong.
        lines = f"(?:{line}|{line + 1})" if other == "\n" else str(line)
        changed[f"test_n{turn}.py::{name}"] = f"test_n{turn}/{file}", lines
    told = project.run("--cellagent-kit=replay", "-q", *changed, code=1)
    reports = re.split(r"(?m)^_{3,} .+ _{3,}$", told)[1:]
    assert len(reports) >= 30
    for file, lines in changed.values():
        for report in [report for report in reports if file in report]:
            reports.remove(report)
            assert re.search(
                rf"(?m)^(E +)?(->)? +{lines} |line {lines}\b|:{lines}: the test", report
            ), report
            assert not re.search(r"(?m)^(agent|at)/\S+:\d+", report), report
    assert not reports, "one tells no file"


def test_a_recording_that_cannot_be_kept_is_told_by_its_place(project: UserProject) -> None:
    project.write("test_it.py", 'def test_it(modem_sync):\n    modem_sync.execute("AT+CGMR")\n')
    project.write("transcripts", "no folder")
    told = project.run("--cellagent-kit=record", code=1)
    place = project.folder / "transcripts" / "test_it"
    assert f"the recording cannot be kept: {place}: Not a directory" in told
    assert "agent/testing" not in told


def test_a_session_that_a_full_disk_does_not_hold_fails_its_test_with_what_to_do(
    project: UserProject,
) -> None:
    """Whoever swallows it keeps no half of a recording."""
    lines = (
        "import contextlib, os, resource, tempfile",
        "def test_it(kit_port, console):",
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (10, -1))",
        "    with open(kit_port, 'r+b', buffering=0) as port:",
        "        port.write(b'AT+CGMR\\r')",
        "        with contextlib.suppress(AssertionError):",
        "            console.expect('never', 0.2)",
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))",
    )
    project.write("test_it.py", "\n".join(lines))
    told = project.run("--cellagent-kit=record", code=1, PYTHONDONTWRITEBYTECODE="1")
    assert "session.transcript: File too large\n" in told
    assert "try: `ulimit -f unlimited`" in told
    assert not (project.folder / "transcripts").exists()


ONE_ANSWER = """
def test_missing(modem_sync):
    assert modem_sync.execute("AT+CGMR").ok
"""


def test_what_a_person_wrote_into_a_recording_stays_when_it_is_made_anew(
    project: UserProject,
) -> None:
    project.write("test_it.py", ONE_ANSWER)
    file = project.folder / "transcripts" / "test_it" / "test_missing.transcript"
    file.parent.mkdir(parents=True)
    handmade = "# transcript: 2\n# why\n> AT+CG{any}\n! silence 1\n< mfw_{any:x}\n< OK\n"
    file.write_text(handmade)
    project.run("--cellagent-kit=record")
    text = file.read_text()
    for kept in (
        "# transcript: 2\n# why\n",
        " > AT+CG{any}\n! silence 1\n",
        " < mfw_{any:nrf91x1_",
    ):
        assert kept in text
    project.run("--cellagent-kit=replay")
    file.write_text(handmade + "> AT{imsi}\n")
    told = project.run("--cellagent-kit=record", code=1)
    assert "is not recorded over, for its rules would be lost: line 7: {imsi} is no rule" in told
    assert file.read_text() == handmade + "> AT{imsi}\n"


def test_a_malformed_recording_is_shown_with_its_neighbours_and_the_way_out(
    project: UserProject,
) -> None:
    project.write("test_it.py", ONE_ANSWER)
    file = project.folder / "transcripts" / "test_it" / "test_missing.transcript"
    file.parent.mkdir(parents=True)
    file.write_text("# transcript: 2\n> AT+CGMR\n< {imsi}\n< OK\n")
    told = project.run("--cellagent-kit=replay", code=1)
    assert "{imsi} is no rule" in told
    for line in ("        2 > AT+CGMR", "->    3 < {imsi}", "        4 < OK", "try: {imei}?"):
        assert line.strip() in told


def test_a_recording_cut_in_half_shows_its_last_line_and_the_way_out(project: UserProject) -> None:
    project.write("test_it.py", ONE_ANSWER)
    project.run("--cellagent-kit=record")
    (file,) = (project.folder / "transcripts" / "test_it").iterdir()
    file.write_text(file.read_text().partition("mfw_")[0] + "mf")
    told = project.run("--cellagent-kit=replay", code=1)
    assert re.search(r"test_missing.transcript:\d+: the last line that was played", told)
    assert re.search(r"->\s+\d+ .* < mf\n", told)
    assert "to record it anew: pytest test_it.py::test_missing --cellagent-record=all" in told


def test_the_command_that_records_anew_is_pasted_where_pytest_was_started_and_keeps_the_kit(
    project: UserProject,
) -> None:
    with (project.folder / "pytest.ini").open("a") as file:
        file.write("cellagent_kit = virtual,model=nrf9160\n")
    (project.folder / "unit").mkdir()
    project.write("unit/test_it.py", ONE_ANSWER)
    project.folder /= "unit"
    missing = project.run("--cellagent-record=none", code=1)
    project.run(*_pasted(r"that are missing: `(.+)`", missing))
    project.write("test_it.py", ONE_ANSWER.replace("CGMR", "CGMM"))
    left = project.run("--cellagent-record=none", code=1)
    project.run(*_pasted("to record it anew: (.+)", left))
    recorded = project.folder / "transcripts" / "test_it" / "test_missing.transcript"
    assert "nRF9160-SICA" in recorded.read_text()


def _pasted(hint: str, told: str) -> list[str]:
    found = re.search(hint, told)
    assert found, told
    program, *words = shlex.split(found[1])
    assert program == "pytest"
    return words


def test_of_a_transcript_by_hand_no_command_is_given_that_would_leave_it_alone(
    project: UserProject,
) -> None:
    mark = 'import pytest\n\npytestmark = pytest.mark.kit(source="replay")\n'
    project.write("test_it.py", mark + ONE_ANSWER)
    file = project.folder / "transcripts" / "test_it" / "test_missing.transcript"
    file.parent.mkdir(parents=True)
    for wrong in ("> AT+CGMM\n", "> AT{imsi}\n", "> AT+CGMR\n< ERROR\n"):
        file.write_text(f"# transcript: 2\n{wrong}")
        told = project.run(code=1)
        assert "to record it anew" not in told
        assert "the transcript is written by hand: correct it, or the test" in told


def test_a_slip_in_a_fault_of_the_cloud_leaves_no_thread_behind(project: UserProject) -> None:
    lines = (
        "import threading, pytest",
        "@pytest.mark.cloud_fault('server-err')",
        "def test_slip(cloud): pass",
        "def test_after(): assert 'cellagent' not in [t.name for t in threading.enumerate()]",
    )
    project.write("test_it.py", "\n".join(lines))
    assert "1 passed, 1 error" in project.run(code=1)
