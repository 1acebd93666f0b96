"""Recordings of a user's tests: made, kept, played, and what is told where one does not fit."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.commands.user_project import UserProject


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
