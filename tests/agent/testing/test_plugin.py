"""One suite on three kits, in a project of another person's: virtual, recorded, real."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest
from served_kit import served
from user_project import UserProject

from agent.testing.choice import KitWish, fits, kit_choice

SUITES = Path(__file__).parent / "suites"


@pytest.fixture
def project(tmp_path: Path) -> UserProject:
    return UserProject(tmp_path / "project")


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
    assert "pytest --cellagent-kit=record" in told
    project.run("--cellagent-record=once")
    first = recording.read_text()
    file.write_text(test.replace("CGMR", "CGMM").format(True))
    project.run("--cellagent-record=once", code=1)
    assert recording.read_text() == first
    project.run("--cellagent-record=new")
    assert "> AT+CGMM" in recording.read_text()


def test_unrelated_projects_see_nothing_of_it(project: UserProject) -> None:
    project.write("conftest.py", "")
    project.write("test_it.py", "def test_it():\n    pass\n")
    told = project.run("--fixtures", "--help")
    assert "cellagent" not in told.replace("modem_from_transcript", "")


SWITCH = """
import pytest


def test_where_it_comes_from(modem_sync, record_property):
    print("it is", modem_sync.execute("AT+CGMM").lines[0])


@pytest.mark.kit(source="virtual", model="nrf9160")
def test_named_by_a_mark(modem_sync):
    assert modem_sync.execute("AT+CGMM").lines == ("nRF9160-SICA",)
"""


@pytest.mark.parametrize("where", ["option", "environment", "configuration"])
def test_the_switch_is_an_option_a_variable_or_a_line_of_the_configuration(
    project: UserProject, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("test_it.py", SWITCH)
    words = []
    if where == "option":
        words = ["--cellagent-kit=virtual,model=nrf9151"]
    elif where == "environment":
        monkeypatch.setenv("CELLAGENT_TEST_KIT", "virtual,model=nrf9151")
    else:
        with (project.folder / "pytest.ini").open("a") as file:
            file.write("cellagent_kit = virtual,model=nrf9151\n")
    assert "it is nRF9151-LACA" in project.run("-s", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--cellagent-kit=virtual,colour=red"], "'colour=red' says nothing of a kit"),
        (["--cellagent-kit="], "no port in ''"),
        (["--cellagent-kit=COM3,power=relay 'on"], "No closing quotation"),
        (["--cellagent-record=twice"], "one of live, none, once, new, all"),
    ],
)
def test_a_slip_of_the_switch_ends_the_run_at_once(
    project: UserProject, words: list[str], said: str
) -> None:
    project.write("test_it.py", "def test_it():\n    pass\n")
    told = project.run(*words, code=4)
    assert said in told
    assert "Traceback" not in told


def test_two_ways_to_the_one_port_are_refused(project: UserProject) -> None:
    project.write("test_it.py", "def test_it(modem_sync, kit_port):\n    pass\n")
    told = project.run(code=1)
    assert "one test has modem_sync and kit_port: the kit has one AT port" in told


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


def test_cable_power_and_place_are_at_hand(project: UserProject, tmp_path: Path) -> None:
    shutil.copy(SUITES / "acts.py", project.folder / "test_it.py")
    assert "3 passed" in project.run()
    project.write("test_it.py", "def test_it(kit):\n    kit.power_cycle()\n")
    with served(tmp_path) as kit:
        command = f"touch {project.folder}/{{action}}"
        assert "1 passed" in project.run(f"--cellagent-kit={kit.port},power={command}")
        assert (project.folder / "cycle").exists()
        assert "1 skipped" in project.run(f"--cellagent-kit={kit.port}", "-rs")


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


PATIENT = """
import asyncio
import pytest
from at.protocol.errors import AtError


async def test_a_coroutine(modem):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await modem.execute("AT+COPS=?", timeout_s=600)
    await asyncio.sleep(3600)


def test_a_plain_function(modem_sync):
    with pytest.raises(AtError):
        modem_sync.execute("AT+COPS=?", timeout_s=60)
    with pytest.raises(AtError):
        modem_sync.notice("+CEREG", timeout_s=3600)
"""
SILENT = "# transcript: 2\n> AT+COPS=?\n! silence 500\n< OK\n"


def test_a_timeout_of_a_minute_passes_at_once_on_a_replay(project: UserProject) -> None:
    """It would take more than two hours: `run` gives up after 110 s."""
    project.write("test_it.py", PATIENT)
    folder = project.folder / "transcripts" / "test_it"
    folder.mkdir(parents=True)
    for name in ("test_a_coroutine", "test_a_plain_function"):
        (folder / f"{name}.transcript").write_text(SILENT)
    assert "2 passed" in project.run("--cellagent-kit=replay")


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
        file = re.sub(r"[^\w.\[\]=,+-]+", "_", name) + ".transcript"
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


OF_MODES = """
def test_missing(modem_sync):
    assert modem_sync.execute("AT+CGMR").ok

def test_fitting(modem_sync):
    assert modem_sync.execute("AT+CGMM").ok

def test_stale(modem_sync):
    assert modem_sync.execute("AT+CGMI").ok
"""


@pytest.mark.parametrize(
    ("mode", "failed", "recorded"),
    [
        ("none", ["missing", "stale"], []),
        ("once", ["stale"], ["missing"]),
        ("new", [], ["missing", "stale"]),
        ("all", [], ["missing", "fitting", "stale"]),
    ],
)
def test_each_mode_records_and_replays_as_the_table_of_the_page_says(
    project: UserProject, mode: str, failed: list[str], recorded: list[str]
) -> None:
    project.write("test_it.py", OF_MODES)
    folder = project.folder / "transcripts" / "test_it"
    folder.mkdir(parents=True)
    handmade = "# origin: by hand\n> AT+CGMM\n< nRF9160-SICA\n< OK\n"
    for name in ("fitting", "stale"):
        (folder / f"test_{name}.transcript").write_text(handmade)
    told = project.run(f"--cellagent-record={mode}", "-rfE", code=bool(failed))
    for name in ("missing", "fitting", "stale"):
        assert (f"test_it.py::test_{name}" in told) is (name in failed), told
        file = folder / f"test_{name}.transcript"
        is_ours = file.exists() and "# origin: recorded" in file.read_text()
        assert is_ours is (name in recorded), name


def test_a_transcript_by_hand_is_not_recorded_over(project: UserProject) -> None:
    test = "import pytest\n@pytest.mark.kit(source='replay')\n" + OF_MODES.split("\n\n")[1]
    project.write("test_it.py", test)
    folder = project.folder / "transcripts" / "test_it"
    folder.mkdir(parents=True)
    handmade = "# transcript: 2\n> AT+CG{any}\n< nRF9160-SICA\n< OK\n"
    (folder / "test_fitting.transcript").write_text(handmade)
    assert "1 passed" in project.run("--cellagent-kit=record")
    assert (folder / "test_fitting.transcript").read_text() == handmade


def test_a_kit_fits_by_model_dialect_slot_and_whole_parts_of_its_version() -> None:
    (kit,) = kit_choice(["COM3,model=nRF9160-SICA,firmware=mfw_nrf9160_1.3.10,slot=3"]).kits
    assert all(fits(kit, wish) for wish in (KitWish(), KitWish(firmware="1.3"), KitWish(slot="3")))
    assert fits(kit, KitWish(model="nrf9160", firmware="MFW_nrf9160_1.3.10"))
    others = KitWish(firmware="1.3.1"), KitWish(firmware="3.10"), KitWish(dialect="shell")
    assert not any(fits(kit, wish) for wish in (*others, KitWish(model="nrf9161")))
    assert str(kit) == "COM3 (model=nRF9160-SICA, firmware=mfw_nrf9160_1.3.10, slot=3)"


def test_what_no_kit_fits_is_skipped_in_words_and_a_virtual_entry_is_what_it_says(
    project: UserProject,
) -> None:
    test = "def test_it(modem_sync):\n    print(modem_sync.execute('AT+CGMR').lines)\n"
    project.write("test_it.py", f"import pytest\n\n@pytest.mark.kit(firmware='1.3.1')\n{test}")
    told = project.run("--cellagent-kit=/dev/none,firmware=1.3.10,power=a,b {c}", "-rs")
    wanted = "the test wants firmware=1.3.1, and there are /dev/none (firmware=1.3.10)"
    assert f"no kit fits: {wanted}" in told
    project.write("test_it.py", test)
    told = project.run("--cellagent-kit=virtual,model=nrf9160,firmware=1.3.5", "-s")
    assert "mfw_nrf9160_1.3.5" in told


@pytest.mark.parametrize(
    ("power", "said"),
    [
        ("sh -c 'echo {x},{action} >&2; exit 3'", "exit code 3: {x},cycle"),
        ("/no/such/relay {action}", "`/no/such/relay cycle` did not start: No such file"),
    ],
)
def test_a_power_command_that_fails_is_named_with_what_it_said(
    project: UserProject, power: str, said: str
) -> None:
    project.write("test_it.py", "def test_it(kit):\n    kit.power_cycle()\n")
    told = project.run(f"--cellagent-kit=/dev/none,slot=1,power={power}", code=1)
    assert said in told
    assert "run it by hand; it stands behind power= in `--cellagent-kit`" in told
    assert "CalledProcessError" not in told
    assert "agent/testing" not in told


def test_what_a_person_wrote_into_a_recording_stays_when_it_is_made_anew(
    project: UserProject,
) -> None:
    project.write("test_it.py", OF_MODES.split("\n\n", maxsplit=1)[0])
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
    project.write("test_it.py", OF_MODES.split("\n\n", maxsplit=1)[0])
    file = project.folder / "transcripts" / "test_it" / "test_missing.transcript"
    file.parent.mkdir(parents=True)
    file.write_text("# transcript: 2\n> AT+CGMR\n< {imsi}\n< OK\n")
    told = project.run("--cellagent-kit=replay", code=1)
    assert "{imsi} is no rule" in told
    for line in ("        2 > AT+CGMR", "->    3 < {imsi}", "        4 < OK", "try: {imei}?"):
        assert line.strip() in told


def test_a_recording_cut_in_half_shows_its_last_line_and_the_way_out(project: UserProject) -> None:
    project.write("test_it.py", OF_MODES.split("\n\n", maxsplit=1)[0])
    project.run("--cellagent-kit=record")
    (file,) = (project.folder / "transcripts" / "test_it").iterdir()
    file.write_text(file.read_text().partition("mfw_")[0] + "mf")
    told = project.run("--cellagent-kit=replay", code=1)
    assert re.search(r"test_missing.transcript:\d+: the last line that was played", told)
    assert re.search(r"->\s+\d+ .* < mf\n", told)
    assert "to record it anew: pytest test_it.py::test_missing --cellagent-kit=record" in told


TIMED = """
# transcript: 1
@0.0 > AT+COPS=?
@40.0 < +COPS: (2,"A","A","24201",7)
@40.1 < OK
@40.2 > AT+CFUN=1
@40.3 < OK
@160.3 < +CEREG: 5
@165.0 > AT+CESQ
@165.5 < +CESQ: 99,99,255,255,19,47
@165.5 < OK
"""
ELAPSED = """
import asyncio

import pytest
from at.protocol.errors import CommandTimeout


async def test_a_coroutine(modem):
    loop, notices = asyncio.get_running_loop(), modem.notices()
    began = loop.time()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await modem.execute("AT+COPS=?", timeout_s=60)
    assert 30 <= loop.time() - began < 40
    assert (await modem.execute("AT+CFUN=1")).ok
    began = loop.time()
    assert (await anext(notices)).line == "+CEREG: 5"
    assert 120 <= loop.time() - began < 130


def test_waits_as_long(modem_sync):
    began = modem_sync.time()
    assert modem_sync.execute("AT+COPS=?", timeout_s=60).ok
    assert 40 <= modem_sync.time() - began < 50
    assert modem_sync.execute("AT+CFUN=1").ok
    with pytest.raises(CommandTimeout):
        modem_sync.notice("+CEREG", timeout_s=60)
    assert modem_sync.execute("AT+CESQ", timeout_s=2).ok, "it does not wait for the notice"
    assert 100 <= modem_sync.time() - began < 110
    assert modem_sync.notice("+CEREG", timeout_s=1) == "+CEREG: 5"
"""


def test_recorded_times_pass_on_the_virtual_clock(project: UserProject) -> None:
    """More than four minutes are recorded: `run` gives up after 110 s."""
    project.write("test_it.py", ELAPSED)
    folder = project.folder / "transcripts" / "test_it"
    folder.mkdir(parents=True)
    all_of_it = TIMED.lstrip()
    (folder / "test_waits_as_long.transcript").write_text(all_of_it)
    (folder / "test_a_coroutine.transcript").write_text(all_of_it.partition("@165.0")[0])
    assert "2 passed" in project.run("--cellagent-kit=replay")
