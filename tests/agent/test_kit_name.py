"""Which calls are made in a kit's name, and that the client sends none of them past the gate."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

import agent
from agent.auth.credential import HOSTS, Keyring
from agent.call import Call, Host, Scheme
from agent.cloud.device_changes import UpdateDeviceState
from agent.cloud.fota_jobs import FetchCurrentJob, UpdateJob
from agent.http import HttpClient
from agent.location.agnss import (
    AgnssRequest,
    FetchAgnss,
    FetchAgnssByGet,
    MeasureAgnss,
    ServingCell,
)
from agent.location.calls import LocateWifi
from agent.location.pgps import PredictionRequest, RequestPgps
from agent.provisioning.running.steps.registrar import ReadServiceTime
from at.protocol.errors import FirmwareRefused
from tests.support.cloud.answering_transport import answering_transport
from tests.support.cloud.every_call import CALLS, HERE
from tests.support.cloud.kit_gates import open_gate

pytestmark = pytest.mark.contract("D1.3")

OWN_CLOUDS = {Host.DEVICE_CLOUD, Host.PROVISIONING}
CELL = ServingCell(1, 1, 2305, 33703681)

# A call of the device cloud -> whether it is made in a kit's name, whatever the credential.
IN_KIT_NAME: Mapping[str, bool] = {
    "FetchCurrentJob": True,
    "UpdateJob": True,
    "LocateWifi": True,
    "LocateCell": True,
    "GroundFix": True,
    "SendMessage": True,
    "UpdateDeviceState": True,
    "MeasureAgnss": False,
    "FetchAgnss": False,
    "FetchAgnssByGet": False,
    "RequestPgps": False,
    "FetchDevice": False,
    "TransformDevice": False,
    "ListDevices": False,
    "TransformDevices": False,
    "FetchCharacteristicValue": False,
    "UpdateDeviceName": False,
    "UpdateDeviceTags": False,
    "UpdateCharacteristicValue": False,
    "UpdateDescriptorValue": False,
    "DeleteDevice": False,
    "DiscoverServices": False,
    "RegisterPublicKeys": False,
    "OnboardDevices": False,
    "OnboardByToken": False,
    "FetchBulkOperation": False,
    "ListMessages": False,
    "FetchAccount": False,
    "FetchServiceToken": False,
    "MakeServiceKeyAndToken": False,
    "FetchOpenApi": False,
    "ClaimDevice": False,
    "OnboardInProject": False,
    "FetchOnboardingResult": False,
    "CreateProvisioningCommand": False,
    "FetchProvisioningCommand": False,
    "ListProvisioningCommands": False,
    "ReadServiceTime": False,
    "AskForKey": False,
    # of the demonstration, which plays the user who offers an update
    "UploadFirmware": False,
    "CreateJob": False,
    "DeleteFirmware": False,
}
BASES = {
    "AgnssCall",
    "Change",
    "LocationCall",
    "PrepareUpload",
    "ProjectCall",
    "CommitUpload",
}  # sent by no one
# Where the name of the call does not tell: what it carries does.
BY_CONTENT: list[tuple[Call[Any], bool]] = [
    (MeasureAgnss(HERE, AgnssRequest(cell=CELL)), True),
    (FetchAgnss(HERE, AgnssRequest(cell=CELL)), True),
    (FetchAgnssByGet(None, AgnssRequest(cell=CELL)), True),
    (MeasureAgnss(HERE, AgnssRequest()), False),
    (FetchAgnss(HERE, AgnssRequest()), False),
    (RequestPgps(HERE, PredictionRequest()), False),
    (LocateWifi(HERE, heard_by_kit=False), False),
    (LocateWifi(HERE, heard_by_kit=False, device_id="d"), True),
    (UpdateDeviceState("d", desired={"a": 1}), False),
    (UpdateDeviceState("d", reported={}), True),
    (FetchCurrentJob("d", to_refuse=True), False),
    (UpdateJob("d", "j", "REJECTED", to_refuse=True), False),
    (ReadServiceTime(), False),
]
EVERY = [call for call in CALLS if call.host in OWN_CLOUDS]
EVERY += [call for call, _ in BY_CONTENT]


class Stamp:
    """A credential of a kind, which counts how often it was made."""

    warning = ""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.made = 0

    async def headers(self, call: Call[Any]) -> Mapping[str, str]:
        self.made += 1
        return {"authorization": "Bearer stamp"}

    def forget(self) -> bool:
        return False

    def advice(self, status: int) -> str:
        return ""


def below(kind: type) -> set[type]:
    """Return every class that is derived from `kind`, also those that others are derived from."""
    children = set(kind.__subclasses__())
    return children.union(*map(below, children))


def test_the_table_names_every_call_of_the_device_cloud() -> None:
    for module in pkgutil.walk_packages(agent.__path__, "agent."):
        if not module.name.startswith(("agent.standin", "agent.__main__")):
            importlib.import_module(module.name)
    ours = {
        kind.__name__  # before 3.14 a dataclass with slots is there twice: by name they are one
        for kind in below(Call)
        if kind.__module__.startswith("agent.")
        and kind.request is not Call.request
        and (Host.DEVICE_CLOUD if kind.host is Call.host else kind.host) in OWN_CLOUDS
        and not kind.__name__.startswith("_")
    }
    assert ours - BASES == set(IN_KIT_NAME)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: type(call).__name__)
def test_each_call_is_what_the_table_says(call: Call[Any]) -> None:
    expected = call.host in OWN_CLOUDS and IN_KIT_NAME[type(call).__name__]
    # The observability service has no gate: crashes and events of any kit are pushed.
    assert call.in_kit_name is expected


@pytest.mark.parametrize(("call", "expected"), BY_CONTENT, ids=repr)
def test_what_a_call_carries_may_make_it_a_kits(call: Call[Any], expected: bool) -> None:
    assert call.in_kit_name is expected


def test_nothing_is_sent_beside_the_client_but_to_addresses_that_an_answer_named() -> None:
    sends = r"transport\.(exchange|open)\(\s*\"|HttpTransport\(|import httpx"
    sending = re.compile(sends)
    folder = Path(agent.__path__[0])
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if sending.search(path.read_text()) and not path.is_relative_to(folder / "standin")
    }
    # None of these sends a credential: signed addresses of files, images, a look whether a service
    # answers, the names of the library's errors.
    assert found == {
        "http/connection_errors.py",
        "http/library.py",
        "http/transport.py",
        "cli/doctor/checks.py",
        "cloud/client.py",
        "daemon/service_watch.py",
        "fota/download/requests.py",
        "location/pgps.py",
        "observability/ingest/storage.py",
        "wiring/service_client.py",  # which makes the client
    }


def every_way() -> list[tuple[Call[Any], Scheme]]:
    return [
        (call, scheme) for call in EVERY for scheme in call.schemes if scheme is not Scheme.NONE
    ]


@pytest.mark.parametrize(
    ("call", "scheme"), every_way(), ids=lambda each: getattr(each, "name", type(each).__name__)
)
async def test_no_call_in_a_kits_name_is_sent_past_the_gate(
    call: Call[Any], scheme: Scheme
) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(403)

    hosts = {host: f"https://{host.value.replace('_', '-')}.example" for host in Host}
    stamps = [Stamp(kind) for kind in HOSTS]
    closed = HttpClient(answering_transport(answer), hosts, Keyring(stamps))
    is_kits = call.in_kit_name or scheme is Scheme.DEVICE_JWT
    with pytest.raises(Exception) as raised:
        await closed.send(call, scheme=scheme)
    assert isinstance(raised.value, FirmwareRefused) is is_kits
    assert bool(sent) is not is_kits
    # Of a kit that is refused no token is even made.
    assert any(stamp.made for stamp in stamps) is not is_kits
    sent.clear()
    opened = closed.acting_as(kit_gate=open_gate)
    with pytest.raises(Exception) as raised:
        await opened.send(call, scheme=scheme)
    assert not isinstance(raised.value, FirmwareRefused)
    assert len(sent) == 1
