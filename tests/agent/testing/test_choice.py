"""Where the kit of a test comes from: the switch, the modes of recording, what fits."""

from __future__ import annotations

import pytest

from agent.testing.choice import KitWish, fits, kit_choice
from tests.support.commands.user_project import UserProject

SWITCH = """
import pytest


def test_where_it_comes_from(modem_sync, record_property):
    print("it is", modem_sync.execute("AT+CGMM").lines[0])


@pytest.mark.kit(source="virtual", model="nRF9160")
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
        (["--cellagent-kit="], "'' is neither virtual, replay or record nor a port"),
        (["--cellagent-kit=replya"], "did you mean 'replay'?"),
        (["--cellagent-kit=virtul,model=nrf9160"], "did you mean 'virtual'?"),
        (["--cellagent-kit=ttyACM0"], "'ttyACM0' is neither virtual, replay or record nor a port"),
        (["--cellagent-kit=record,model=nrf9160"], "record takes no more"),
        (["--cellagent-kit=record,slot=the left"], "--cellagent-kit='virtual,slot=the left'`"),
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


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("kit('nrf9160')", "the mark kit takes no 'nrf9160' without a name"),
        ("kit(modell='nrf9160')", "the mark kit knows no 'modell'"),
        ("kit_fault('no-sym')", "did you mean 'no-sim'?"),
        ("cloud_fault('server-err')", "write it as 'server-error=503'"),
    ],
)
def test_a_slip_of_a_mark_is_told_in_words_and_is_not_passed_over(
    project: UserProject, mark: str, said: str
) -> None:
    test = f"import pytest\n\n@pytest.mark.{mark}\ndef test_it(modem_sync, cloud):\n    pass\n"
    project.write("test_it.py", test)
    told = project.run(code=1)
    assert said in told
    assert "Traceback" not in told
    assert not any(ours in told for ours in ("agent/testing", "agent/standin"))


def test_a_virtual_kit_needs_no_home_and_a_real_one_says_what_it_needs(
    project: UserProject,
) -> None:
    """As where a CI runs each job as a user of its own."""
    project.write("test_it.py", "def test_it(modem_sync):\n    pass\n")
    state = str(project.folder / "conftest.py" / "state")
    assert "1 passed" in project.run(CELLAGENT_STATE_DIR=state)
    told = project.run("--cellagent-kit=/dev/none", code=1, CELLAGENT_STATE_DIR=state)
    assert f"cannot make the folder {state}" in told
    assert "agent/testing" not in told


def test_two_ways_to_the_one_port_are_refused(project: UserProject) -> None:
    project.write("test_it.py", "def test_it(modem_sync, kit_port):\n    pass\n")
    told = project.run(code=1)
    assert "one test has modem_sync and kit_port: the kit has one AT port" in told


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


ALIKE = """
import pytest


@pytest.mark.parametrize("command", ["AT+CGMM", "AT%XTEMP?", "AT#XTEMP?"])
def test_it(modem_sync, command):
    modem_sync.execute(command)
"""


def test_tests_that_differ_in_signs_alone_have_recordings_of_their_own(
    project: UserProject,
) -> None:
    project.write("test_it.py", ALIKE)
    assert "3 passed" in project.run("--cellagent-kit=record")
    assert "3 passed" in project.run("--cellagent-kit=replay")


def test_a_transcript_by_hand_is_not_recorded_over(project: UserProject) -> None:
    test = "import pytest\n@pytest.mark.kit(source='replay')\n" + OF_MODES.split("\n\n")[1]
    project.write("test_it.py", test)
    folder = project.folder / "transcripts" / "test_it"
    folder.mkdir(parents=True)
    handmade = "# transcript: 2\n> AT+CG{any}\n< nRF9160-SICA\n< OK\n"
    (folder / "test_fitting.transcript").write_text(handmade)
    for switch in ("--cellagent-kit=record", "--cellagent-record=all", "--cellagent-record=new"):
        assert "1 passed" in project.run(switch)
        assert (folder / "test_fitting.transcript").read_text() == handmade
    project.write("test_it.py", test.replace("CGMM", "CEER"))
    project.run("--cellagent-record=new", code=1)
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
