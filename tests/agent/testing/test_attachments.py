"""What a test's kit and cloud said, as files beside the report of JUnit."""

from __future__ import annotations

import json
import stat
from base64 import b64encode
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from agent.testing.attachments import _keep_dumps
from tests.support.commands.user_project import UserProject
from tests.support.dumps import sdk_bytes

TESTS = """
import httpx
import pytest


def test_all_of_it(modem_sync, console, kit, cloud):
    modem_sync.execute("AT+CGSN")
    modem_sync.execute('AT+CPIN="1234"')
    kit.print("the IMEI: 358299840000017")
    console.expect("the IMEI")
    kit.print("settings get wifi/psk")
    kit.print("c0ffee5e")
    console.expect("c0ffee5e")
    kit.crash()
    console.expect("END#")
    httpx.post(
        cloud.urls["device_cloud"] + "/v1/devices?of=358299840000017",
        headers={"Authorization": "Bearer " + cloud.credentials["api_key"]},
        json={"id": "358299840000017"},
    )
    assert False


def test_cloud_alone(cloud):
    httpx.get(cloud.urls["device_cloud"] + "/v1/account")


@pytest.mark.kit_fault("silent")
def test_a_kit_that_does_not_answer(modem_sync):
    pass
"""


def properties(report: Path) -> dict[str, dict[str, str]]:
    """Return the properties of each test of a report."""
    return {
        case.get("name", ""): {
            each.get("name", ""): each.get("value", "") for each in case.iter("property")
        }
        for case in ET.parse(report).iter("testcase")
    }


@pytest.mark.parametrize("words", [[], ["-n2"]], ids=["one process", "xdist"])
def test_what_was_said_is_beside_the_report_without_secrets_and_identities(
    project: UserProject, words: list[str]
) -> None:
    project.write("test_it.py", TESTS)
    project.run("--junitxml=out/report.xml", *words, code=1)
    found = properties(project.folder / "out" / "report.xml")
    assert found["test_all_of_it"]["cellagent.kit"] == "virtual"
    folder = Path(found["test_all_of_it"]["cellagent.files"])
    assert folder == project.folder / "out" / "report.files" / "test_it.py.test_all_of_it"
    names = {path.name for path in folder.iterdir()}
    assert names == {"session.transcript", "console.log", "requests.jsonl", "coredump"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    texts = {name: (folder / name).read_text() for name in names - {"coredump"}}
    assert "> AT+CGSN" in texts["session.transcript"]
    assert "ZEPHYR FATAL ERROR" in texts["console.log"]
    assert (folder / "coredump").read_bytes().startswith(b"ZE")
    (request,) = map(json.loads, texts["requests.jsonl"].splitlines())
    assert (request["method"], request["path"]) == ("POST", "/v1/devices")
    assert request["headers"]["authorization"] == "[secret]"
    assert request["status"] >= 400
    everything = "".join(texts.values())
    assert "358299840000017" not in everything
    assert "1234" not in texts["session.transcript"]
    assert "c0ffee5e" not in texts["console.log"]
    assert "requests.jsonl" in {
        path.name for path in Path(found["test_cloud_alone"]["cellagent.files"]).iterdir()
    }
    silent = Path(found["test_a_kit_that_does_not_answer"]["cellagent.files"])
    assert "> AT+CMEE?" in (silent / "session.transcript").read_text()


def test_of_a_recording_the_report_names_the_file_and_of_one_that_failed_it_has_a_copy(
    project: UserProject,
) -> None:
    text = 'def test_it(modem_sync):\n    assert modem_sync.execute("AT+CGMR").ok is {}\n'
    project.write("test_it.py", text.format("True"))
    project.run("--junitxml=report.xml", "--cellagent-kit=record")
    found = properties(project.folder / "report.xml")["test_it"]
    assert "AT+CGMR" in Path(found["cellagent.transcript"]).read_text()
    assert "cellagent.files" not in found
    project.write("test_it.py", text.format("False"))
    project.run("--junitxml=report.xml", "--cellagent-kit=record", code=1)
    found = properties(project.folder / "report.xml")["test_it"]
    assert "AT+CGMR" in Path(found["cellagent.files"], "session.transcript").read_text()


def test_the_files_of_a_test_that_goes_to_a_folder_of_its_own_are_beside_the_report_too(
    project: UserProject,
) -> None:
    goes = "\n    monkeypatch.chdir(tmp_path)\n"
    says = '    modem_sync.execute("AT+CGMR")\n'
    text = f"import pytest\n\n@pytest.fixture\ndef there(tmp_path, monkeypatch):{goes}"
    text += f"def test_before(there, modem_sync):\n{says}"
    text += f"def test_after(modem_sync, tmp_path, monkeypatch):{goes}{says}"
    project.write("test_it.py", text)
    project.run("--junitxml=report.xml")
    found = properties(project.folder / "report.xml")
    for name in ("test_before", "test_after"):
        folder = Path(found[name]["cellagent.files"])
        assert folder == project.folder / "report.files" / f"test_it.py.{name}"
        assert "> AT+CGMR" in (folder / "session.transcript").read_text()


def test_a_test_that_is_recorded_anew_is_reported_as_it_ran_then(project: UserProject) -> None:
    text = "def test_it(modem_sync, record_property):\n    record_property('asked', '{0}')\n"
    text += "    modem_sync.execute('{0}')\n"
    for line in ("AT+CGMR", "AT+CGMM"):
        project.write("test_it.py", text.format(line))
        project.run("--junitxml=report.xml", "--cellagent-record=new")
        cases = ET.parse(project.folder / "report.xml").iter("property")
        told = [(each.get("name"), each.get("value")) for each in cases]
        assert told[:2] == [("asked", line), ("cellagent.kit", "virtual")]
        assert len(told) == 3


def test_a_report_comes_though_there_is_no_place_for_the_files_beside_it(
    project: UserProject,
) -> None:
    project.write("test_it.py", TESTS)
    project.write("report.files", "no folder")
    for words, code, ended in (((), 0, "1 passed"), (("-Werror",), 1, "1 failed")):
        told = project.run("--junitxml=report.xml", "-k", "alone", *words, code=code)
        assert ended in told
        assert "what test_it.py::test_cloud_alone has beside the report is not whole: " in told
        assert "test_cloud_alone" in properties(project.folder / "report.xml")
    told = project.run("--junitxml=report.xml", "-k", "all_of_it", code=1)
    folder = project.folder / "report.files" / "test_it.py.test_all_of_it"
    assert f"cannot make the folder {folder}: Not a directory\ntry: name a folder that" in told
    assert "agent/testing" not in told


def test_a_core_dump_that_the_kit_printed_in_chunks_is_a_file_too(tmp_path: Path) -> None:
    core = sdk_bytes.coredump()
    lines = [f"MC:{b64encode(each).decode()}:" for each in sdk_bytes.chunks(b"\x01" + core, 80)]
    _keep_dumps(tmp_path / "coredump", "\n".join(lines))
    assert (tmp_path / "coredump").read_bytes() == core
