"""One suite on three kits, in a project of another person's: virtual, recorded, real."""

from __future__ import annotations

import os
import random
import re
import shutil
import socket
from pathlib import Path

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from agent.daemon.control.socket import socket_folder
from agent.files.paths import state_dir
from agent.files.private_files import make_private_folder
from agent.testing.choice import KitEntry
from agent.testing.live_kit import leased
from agent.testing.paths import file_name
from at.ports.usb import SEGGER
from at.transport.serial import open_handle
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
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

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
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

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
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

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


def test_unrelated_projects_see_nothing_of_it(project: UserProject) -> None:
    project.write("conftest.py", "")
    project.write("test_it.py", "def test_it():\n    pass\n")
    told = project.run("--fixtures", "--help")
    assert "cellagent" not in told.replace("modem_from_transcript", "")


MATRIX = """
import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo


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


@pytest.mark.parametrize("words", [[], ["-n1"]], ids=["one process", "xdist"])
def test_who_has_the_kit_that_a_test_waits_for_is_told_at_once_and_where_its_time_ends(
    project: UserProject, words: list[str]
) -> None:
    project.write("test_it.py", "def test_it(modem_sync):\n    pass\n")
    with (project.folder / "conftest.py").open("a") as file:
        file.write("import agent.testing.live_kit as kits\nkits._TELLS_AFTER_S = 0\n")
    state = project.folder / "state"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CELLAGENT_STATE_DIR", str(state))
        with leased([KitEntry("/dev/kit")], print):
            told = project.run("--cellagent-kit=/dev/kit", "--timeout=1", *words, code=1)
    waits = rf"it waits for its kit: /dev/kit is held by \S+ \(PID {os.getpid()}\)"
    assert len(re.findall(f"(?m)^test_it.py::test_it: {waits}$", told)) == 1
    assert len(re.findall(f"(?m)^E +{waits}$", told)) == 1


def test_a_port_that_the_running_agent_has_is_borrowed_and_the_agent_not_killed(
    project: UserProject, tmp_path: Path, private_home: Path
) -> None:
    sockets = socket_folder(state_dir())
    make_private_folder(sockets)
    project.write("test_it.py", "def test_it(modem_sync):\n    pass\n")
    with served(tmp_path) as kit, socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(sockets / "lab.sock"))
        agent.listen()
        held = open_handle(str(kit.port), baud=115200, rtscts=False)
        said = project.run(f"--cellagent-kit={kit.port}", code=1)
        held.close()
    assert f"{kit.port} is in use by" in said
    assert "`cellagent hold -- COMMAND` lets COMMAND have it" in said
    assert "`kill" not in said


def test_a_kit_is_taken_once_by_whatever_name(monkeypatch: pytest.MonkeyPatch) -> None:
    port = ListPortInfo("/dev/ttyACM0")
    port.vid, port.serial_number = SEGGER, "000960012345"
    monkeypatch.setattr(list_ports, "comports", lambda: [port])
    by_number, free = KitEntry("serial:960012345"), KitEntry("/dev/free")
    with leased([KitEntry("/dev/ttyACM0")], print), leased([by_number, free], print) as taken:
        assert taken is free
    with leased([by_number, free], print) as taken:
        assert taken is by_number


def test_a_run_leaves_nothing_of_one_that_was_killed(project: UserProject) -> None:
    """As the worker of xdist whose test runs into the time-out of its thread."""
    temporary = project.folder / "temporary"
    temporary.mkdir()
    killed = "def test_it(kit_port):\n    import os\n    os.kill(os.getpid(), 9)\n"
    for text, code in ((killed, -9), ("def test_it(kit_port):\n    pass\n", 0)):
        project.write("test_it.py", text)
        project.run("--cellagent-kit=record", code=code, TMPDIR=str(temporary))
    assert not list(temporary.iterdir())


UNPLUGGED = """
import os
import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

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


def test_a_slip_in_a_fault_of_the_cloud_leaves_no_thread_behind(project: UserProject) -> None:
    lines = (
        "import threading, pytest",
        "@pytest.mark.cloud_fault('server-err')",
        "def test_slip(cloud): pass",
        "def test_after(): assert 'cellagent' not in [t.name for t in threading.enumerate()]",
    )
    project.write("test_it.py", "\n".join(lines))
    assert "1 passed, 1 error" in project.run(code=1)
