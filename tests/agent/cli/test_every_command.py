"""What every command of the tree asks for: the profile's file, and the serial ports, once at most.

Each runs in this process, on a stand-in and on the only kit that is plugged in: no port is named,
so that the kit has to be looked for.
"""

from __future__ import annotations

import importlib
import io
import logging
import os
import pkgutil
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

import agent.cloud
import agent.observability.api
from agent.call import Call
from agent.cli.framework.command import run_command_line
from agent.cli.framework.safe_text import guard_output
from agent.cli.tree import root
from agent.config import load, write
from agent.config.standin_profile import write_standin_profile
from agent.config.write import set_default_profile, set_value
from agent.http import HttpClient
from agent.standin.device_cloud import seed
from at.ports.usb import SEGGER
from tests.support.cloud.served_cloud import served_cloud
from tests.support.commands.command_tree import command_of, leaves
from tests.support.modem.served_kit import served

SESSION = Path(__file__).resolve().parents[2] / "interface" / "session.transcript"
IDENTITY = "--device-serial k --hardware-version h --software-type s --software-version 1.0.0"
GIVEN = {
    "capture coredump": "{file} --out {folder}/core",
    "capture encode": "--mtu 80",
    "completion": "bash",
    "console": "--seconds 0.1",
    "cloud serve": "-- true",
    "config set": "kit.baud 9600",
    "config unset": "kit.baud",
    "config use": "sim",
    "device delete": "ID --yes",
    "device discover": "ID ID --no-wait",
    "device message": "ID {{}}",
    "device onboard": "ID {file} --no-wait",
    "device register-key": "ID {file} --no-wait",
    "device scheme": "GET /v1/devices",
    "device state": "ID --desired {{}}",
    "device wait": "ID --deadline 0",
    "device write": "ID 1525 0a",
    "fota abandon": "--yes",
    "modem at": "AT",
    "modem jwt": "--exp 0",
    "modem record": "{folder}/made.transcript -- true",
    "modem replay": f"{SESSION} --lenient --pty {{folder}}/played -- true",
    "modem virtual": "--instant --pty {folder}/other -- true",
    "observe latest-release": "k h s",
    "provision ca create": "{folder}/ca",
    "provision plan": "--all --registration none --no-proof",
    "provision run": "--all --registration none --no-proof",
    "report chunks": "{file} --device-serial k",
    "report coredump": f"{{file}} {IDENTITY}",
    "report event": f"--metric a=1 {IDENTITY}",
    "report file": f"{{file}} --kind bugreport {IDENTITY}",
    "scan wifi": "--repeat 1",
    "modem import": "{file}",
}
"""The words of a command that has to be given more than a value for each of its arguments."""

LASTS = {
    "run": "an agent goes on until it is stopped, and reads its profile again when it is told to",
    "demo": "brings a kit and a profile of its own",
    "page": "it is served until it is stopped, and asks no kit",
}
READS_AGAIN = {
    "cloud serve": "what it writes leaves what a person set as it is",
    "config set": "what it writes depends on what is in the file",
    "config unset": "what it removes must be in the file",
}
LISTS_AGAIN = {"provision run": "a board is looked up when its turn comes, as trays are swapped"}


LED = f"{seed.LED_SERVICE}/{seed.LED_CHARACTERISTIC}"
BUTTON_SETTING = f"{seed.LED_SERVICE}/{seed.BUTTON_CHARACTERISTIC}/2902"
REACHED_BY = {
    "CreateJob": f"fota offer {{folder}}/public.pem --version 1 --device {seed.GENERIC}",
    "CreateResource": "observe cohort create --field slug=reached",
    "CycleProjectKey": "observe project-key --cycle",
    "CycleUserKey": "observe user-key --cycle",
    "DeleteDevice": "device delete no-such-device --yes",
    "DeleteFirmware": "fota offer {folder}/public.pem --version 1 --device nowhere",
    "DeleteResource": "observe cohort delete no-such-cohort --yes",
    "DeleteResources": "observe cohort delete 100 101 --yes",
    "DeleteUserKey": "observe user-key --delete --yes",
    "DiscoverServices": f"device discover {seed.GATEWAY} {seed.BLE} --no-wait",
    "FetchAccount": "device account",
    "FetchBulkOperation": "device bulk-request 01HZZZZZZZZZZZZZZZZZZZZZZZ",
    "FetchCharacteristicValue": f"device read {seed.BLE} {LED}",
    "FetchCurrentJob": "fota check",
    "FetchDevice": f"device show {seed.BLE}",
    "FetchLatestRelease": "observe latest-release k h s",
    "FetchMe": "observe whoami",
    "FetchOpenApi": "device openapi",
    "FetchProjectKey": "observe project-key",
    "FetchResource": "observe cohort show default",
    "FetchSchema": "observe openapi",
    "FetchServiceToken": "device service-token",
    "FetchUserKey": "observe user-key",
    "ListDevices": "device list --per-page 2",
    "ListMessages": "device messages --per-page 2",
    "ListResources": "observe cohort list --page 1 --per-page 2",
    "MakeServiceKeyAndToken": "device service-token --new-key {folder}/key.pem --yes",
    "OnboardDevices": "device onboard reached {folder}/public.pem --no-wait",
    "PutRelation": "observe cohort relate default device k",
    "RegisterPublicKeys": f"device register-key {seed.GENERIC} {{folder}}/public.pem --no-wait",
    "SendMessage": f"device message {seed.GENERIC} '{{{{}}}}'",
    "TransformDevice": f"device show {seed.BLE} --transform id",
    "TransformDevices": "device list --transform id --per-page 2",
    "UpdateCharacteristicValue": f"device write {seed.BLE} {LED} 0a00",
    "UpdateDescriptorValue": f"device write {seed.BLE} {BUTTON_SETTING} 0100",
    "UpdateDeviceName": f"device rename {seed.GENERIC} reached",
    "UpdateDeviceState": f"device state {seed.GENERIC} --desired '{{{{}}}}'",
    "UpdateDeviceTags": f"device tag {seed.GENERIC} reached",
    "UploadFirmware": f"fota offer {{folder}}/public.pem --version 1 --device {seed.GENERIC}",
    "UpdateResource": "observe cohort update default --field name=reached",
}
"""A command that sends it, for each call of both clients."""
BASES = {"Change", "ListCall", "ResourceCall", "ResourceChange"}
OF_A_BENCH = {"OnboardByToken", "OnboardInProject", "FetchOnboardingResult"}
"""Sent by `provision run`: test_module.py and test_project_registrar.py in
tests/agent/provisioning/running/steps have an nRF93M1, and a project."""
OF_UPDATES = {"UpdateJob", "FetchLatestModemRelease"}
"""Sent by `fota pull` and `fota abandon`: tests/agent/cli/fota/test_command.py has a job,
tests/agent/wiring/test_update_sources.py a release."""


def arguments_of(name: str) -> str:
    """Return a value for each argument that a command must be given."""
    command = command_of(name)
    values = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.required:
            kind = parameter.type
            if isinstance(kind, click.Choice):
                values.append(str(kind.choices[0]))
            else:
                values.append("{file}" if isinstance(kind, click.File | click.Path) else "1")
    takes_fields = any(parameter.name == "pairs" for parameter in command.params)
    if takes_fields and name.rsplit(maxsplit=1)[-1] in {"create", "update", "relate"}:
        values.append("--field name=x")
    return " ".join(values)


def offers(name: str, option: str) -> bool:
    """Return whether the help of a command shows an option."""
    (found,) = (each for each in command_of(name).params if each.name == option)
    assert isinstance(found, click.Option)
    return not found.hidden


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with served_cloud(tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud.ready


@pytest.fixture(scope="module")
def kit_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("kit")) as kit:
        yield str(kit.port)


@pytest.fixture(scope="module")
def configuration(services: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile that names no port, for each test to have a copy of: to write it takes longer."""
    folder = tmp_path_factory.mktemp("configuration")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        write_standin_profile("sim", services)
        set_default_profile("sim")
        set_value("location.wifi", "none", profile="sim")
        set_value("kit.console_port", "same", profile="sim")
        set_value("kit.device_id", "kit-1", profile="sim")
    return folder


PLACES = (("ascii", "60"), ("latin-1", "80"), ("cp1252", "200"))
"""What a terminal, or a file that output goes to, can encode, and how wide it is."""


@pytest.fixture
def asked(
    request: pytest.FixtureRequest,
    configuration: Path,
    kit_port: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Counter[str]]:
    """Give it a profile that names no port, plug the kit in, and count what is asked for.

    What is written is for a place without colours, a narrow one that takes ASCII alone unless the
    test names another.
    """
    encoding, columns = getattr(request, "param", PLACES[0])
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(encoding=encoding)
    guard_output()
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    shutil.copytree(configuration, os.environ["XDG_CONFIG_HOME"], dirs_exist_ok=True)
    (tmp_path / "file").write_bytes(b"MC:AAAA:\n")
    counts: Counter[str] = Counter()

    def listed(*_given: object, **_named: object) -> list[ListPortInfo]:
        counts["ports"] += 1
        port = ListPortInfo(os.path.realpath(kit_port))
        port.vid, port.pid, port.serial_number = SEGGER, 0x1051, "001055000001"
        port.location = "1-1:1.0"
        return [port]

    def counted(read: Any, *given: Any) -> Any:
        counts["profile"] += 1
        return read(*given)

    monkeypatch.setattr(list_ports, "comports", listed)
    for module in (sys.modules[load.__module__], write):
        monkeypatch.setattr(module, "read_config", partial(counted, module.read_config))
    log = logging.getLogger()
    before = log.handlers, log.level
    with Path(os.devnull).open(encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield counts
    log.handlers, log.level = before


def test_every_call_of_both_clients_is_reached_by_a_command() -> None:
    modules = [
        importlib.import_module(found.name)
        for package in (agent.cloud, agent.observability.api)
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ]
    sent = {
        name
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type)
        and issubclass(kind, Call)
        and kind.__module__ == module.__name__
        and not name.startswith("_")
    }
    assert sent - OF_UPDATES - OF_A_BENCH - BASES == set(REACHED_BY)


@pytest.mark.parametrize("call", REACHED_BY)
def test_the_command_sends_the_call(
    call: str,
    asked: Counter[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    (tmp_path / "public.pem").write_bytes(public.public_bytes(encoding, form))
    sent = []
    send = HttpClient.send

    async def recorded(client: HttpClient, call: Call[Any], **options: Any) -> Any:
        sent.append(type(call).__name__)
        return await send(client, call, **options)

    monkeypatch.setattr(HttpClient, "send", recorded)
    words = shlex.split(REACHED_BY[call].format(folder=tmp_path))
    monkeypatch.setattr(sys, "argv", ["cellagent", *words])
    run_command_line(root)
    assert call in sent, capfd.readouterr().err


@pytest.mark.parametrize("asked", PLACES, indirect=True, ids="-".join)
@pytest.mark.parametrize("name", [name for name in leaves() if name not in LASTS])
def test_a_command_reads_the_profile_and_lists_the_ports_once_at_most(
    name: str,
    asked: Counter[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = GIVEN.get(name, arguments_of(name)).format(folder=tmp_path, file=tmp_path / "file")
    monkeypatch.setattr(sys, "argv", ["cellagent", *name.split(), *shlex.split(words)])
    run_command_line(root)
    said = capfd.readouterr().err
    assert "--help" not in said, said  # it was given what it takes
    assert asked["profile"] <= 1 + (name in READS_AGAIN), said
    assert asked["ports"] <= 1 + (name in LISTS_AGAIN), said
    if not offers(name, "port"):
        assert not asked["ports"], said
    if not offers(name, "profile_name"):
        assert asked["profile"] <= (name in READS_AGAIN), said
