"""Nordic's released tools do their whole job on the virtual modem."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from at.firmware_gate import firmware_verdict
from tests.support.commands.user_project import UserProject
from tests.support.keys.openssl import openssl
from tests.support.modem.served_kit import PEERS, SHIM, ServedKit

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        not (PEERS / "nrfcredstore").exists(), reason="no .peers here: ./scripts/peers makes it"
    ),
]
Serve = Callable[..., ServedKit]

CERTIFICATE = (
    "-----BEGIN CERTIFICATE-----\nVEVTVCBURVNUIFRFU1Q=\n-----END CERTIFICATE-----\n"  # of a test
)


@pytest.mark.contract("C8", "C10")
@pytest.mark.parametrize("how", ["at", "shell"])
def test_nrfcredstore_writes_lists_and_deletes(serve: Serve, how: str) -> None:
    kit = serve("--dialect", "at-host" if how == "at" else "shell")
    store = ("--cmd-type", how, str(kit.port))
    (kit.folder / "ca.pem").write_text(CERTIFICATE)
    kit.run("nrfcredstore", *store, "write", "42", "ROOT_CA_CERT", "ca.pem")
    assert re.search(
        r"42\s+ROOT_CA_CERT\s+[0-9A-F]{64}", kit.run("nrfcredstore", *store, "list").stdout
    )
    kit.run("nrfcredstore", *store, "delete", "42", "ROOT_CA_CERT")
    assert "ROOT_CA_CERT" not in kit.run("nrfcredstore", *store, "list").stdout


def test_nrfcredstore_finds_out_by_itself_how_to_speak(serve: Serve) -> None:
    kit = serve()
    assert kit.saved()["imei"] in kit.run("nrfcredstore", str(kit.port), "imei").stdout


def test_nrfcredstore_makes_a_key_whose_request_openssl_accepts(serve: Serve) -> None:
    kit = serve()
    kit.run("nrfcredstore", "--cmd-type", "at", str(kit.port), "generate", "42", "key.csr")
    asked = ("-inform", "DER", "-in", "key.csr", "-verify", "-noout", "-text")
    judged = openssl(kit.folder, "req", *asked)
    assert "verify OK" in judged.stdout + judged.stderr
    assert str(kit.saved()["uuid"]) in judged.stdout


@pytest.mark.parametrize("how", ["at", "at_shell"])
def test_the_installer_provisions_a_board_and_finds_what_it_wrote(serve: Serve, how: str) -> None:
    kit = serve("--dialect", "at-host" if how == "at" else "shell")
    kit.run("create_ca_cert", "-c", "NO", "-o", "Test", "--cn", "test.example", "-f", "test_")
    ca = next(kit.folder.glob("test_*_ca.pem"))
    key = next(kit.folder.glob("test_*_prv.pem"))
    done = kit.run(
        *("device_credentials_installer", "--cmd-type", how, "--port", str(kit.port), "--verify"),
        *("-d", "--ca", ca.name, "--ca-key", key.name, "--plain", "--coap"),
    )
    rows = list(csv.reader((kit.folder / "onboard.csv").read_text().splitlines()))
    assert rows[0][0] == kit.saved()["uuid"]
    stored = kit.saved()["credentials"]
    assert isinstance(stored, dict)
    assert {"16842753,0", "16842753,1", "16842753,2"} <= set(stored)
    assert "error" not in (done.stdout + done.stderr).lower()


def test_the_installer_refuses_old_firmware(serve: Serve) -> None:
    kit = serve("--model", "nrf9160", "--firmware", "1.2.8")
    kit.run("create_ca_cert", "-c", "NO", "-f", "test_")
    ca = next(kit.folder.glob("test_*_ca.pem"))
    key = next(kit.folder.glob("test_*_prv.pem"))
    done = kit.run(
        *("device_credentials_installer", "--cmd-type", "at", "--port", str(kit.port)),
        *("--ca", ca.name, "--ca-key", key.name, "--plain"),
        code=None,
    )
    assert done.returncode
    assert not (kit.folder / "onboard.csv").exists()


@pytest.mark.contract("D10.8")
def test_the_gathered_attestation_token_is_read_by_the_parser(serve: Serve) -> None:
    kit = serve("--model", "nrf9151")
    kit.run("gather_attestation_tokens", "--cmd-type", "at", "--port", str(kit.port), "--plain")
    row = next(csv.reader((kit.folder / "attestation_tokens.csv").read_text().splitlines()))
    assert row[0] == kit.saved()["imei"]
    token = next(field for field in row if "." in field and len(field) > 100)
    parsed = kit.run("modem_credentials_parser", "-a", token, "--plain")
    assert str(kit.saved()["uuid"]) in parsed.stdout + parsed.stderr


def test_the_parser_finds_the_digest_of_a_request_right(serve: Serve, tmp_path: Path) -> None:
    from at.virtual.modem import VirtualModem
    from at.virtual.options import VirtualOptions

    kit = serve()
    modem = VirtualModem(VirtualOptions(instant=True), now=0.0, unix_time=0.0)
    modem.receive(b"AT%KEYGEN=7,2,0\r", now=0.0)
    token = modem.data_to_send().decode().split('"')[1]
    parsed = kit.run("modem_credentials_parser", "-k", token, "--plain")
    text = parsed.stdout + parsed.stderr
    assert modem.kit.saved.uuid in text
    assert re.search(r"match", text, re.IGNORECASE)


FIRMWARES = {
    "mfw_nrf9160_0.9.9": False,
    "mfw_nrf9160_1.2.8": False,
    "mfw_nrf9160_1.2.30": False,
    "mfw_nrf9160_1.3.0": True,
    "mfw_nrf9160_1.3.0-FOTA-TEST": True,
    "mfw_nrf9160_1.10.0": True,
    "mfw_nrf91x1_2.0.4": True,
    "mfw_nrf9151-ntn_1.0.0": True,
}
ASKED = """
import json, sys
from types import SimpleNamespace
from nrfcloud_utils.device_credentials_installer import check_mfw_version
def passes(version):
    try:
        return bool(check_mfw_version(SimpleNamespace(get_mfw_version=lambda: version)))
    except SystemExit:
        return False
print(json.dumps([passes(version) for version in sys.argv[1:]]))
"""


@pytest.mark.contract("D1.3")
def test_the_installer_and_our_gate_let_the_same_firmware_pass() -> None:
    command = [str(PEERS / "python"), "-c", ASKED, *FIRMWARES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == list(FIRMWARES.values())
    assert [firmware_verdict(one).allowed for one in FIRMWARES] == list(FIRMWARES.values())


SESSION = f"""
import os, subprocess


def test_a_released_tool_reads_the_kit(kit_port):
    tool = [{str(PEERS / "nrfcredstore")!r}, "--cmd-type", "at", kit_port, "imei"]
    listed = {{"PYTHONPATH": {str(SHIM)!r}, "PEER_TERMINAL": os.path.realpath(kit_port)}}
    said = subprocess.run(tool, env=os.environ | listed, capture_output=True, text=True, timeout=60)
    assert said.stdout.startswith("IMEI: 0010"), said
"""


@pytest.mark.contract("C9")
def test_nrfcredstore_speaks_to_the_recording_of_its_own_session(tmp_path: Path) -> None:
    project = UserProject(tmp_path / "project")
    project.write("test_session.py", SESSION)
    for kit in ("record", "replay"):
        assert "1 passed" in project.run(f"--cellagent-kit={kit}")
    recording = next(project.folder.rglob("*.transcript"))
    recording.write_text(recording.read_text().replace("AT+CGSN", "AT+CGMM"))
    assert "1 failed" in project.run("--cellagent-kit=replay", code=1)
