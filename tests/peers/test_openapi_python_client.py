"""A client that is generated from the stand-in's documents covers it, and reads its answers."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import importlib
import inspect
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from agent.standin.device_cloud.routes import document as device_cloud_document
from agent.standin.observability.routes import document as observability_document
from tests.support.cloud.served_cloud import PEERS, ServedCloud, served_cloud
from tests.support.dumps.sdk_bytes import coredump
from tests.support.fota.fota_calls import bundle
from tests.support.location.location_scans import PLACES, scan_at

Call = Callable[..., Any]
GENERATOR = PEERS / "openapi-python-client"
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        not GENERATOR.exists(), reason="no openapi-python-client here: ./scripts/peers installs it"
    ),
]
PAGES = {"device_cloud": "/v1/openapi.json", "observability": "/api/v0/openapi.json"}
DOCUMENTS = {
    "device_cloud": device_cloud_document("/", 0),
    "observability": observability_document(),
}
# What the generator can send; it leaves out others, and says so.
SENT = {"application/json", "application/octet-stream"}
IN_NO_JSON = {
    "device_cloud": {"AssociateDevice", "CreateDeviceCertificate"},
    "observability": {"CompleteUpload"},
}
CREDENTIALS = {
    "SimpleToken": "api_key",
    "OrganizationAuthToken": "organization_auth_token",
    "JSONWebToken": "service_token",
}


@dataclass
class Generated:
    """The packages that were generated, and the stand-in that they talk to."""

    cloud: ServedCloud
    printed: str

    def module(self, half: str, name: str) -> ModuleType:
        """Return the module of an operation."""
        package = importlib.import_module(f"generated_{half}")
        folder = Path(str(package.__file__)).parent
        for path in (folder / "api").rglob("*.py"):
            if path.stem.replace("_", "") == name.lower():
                module = f"{package.__name__}.api.{path.parent.name}.{path.stem}"
                return importlib.import_module(module)
        raise LookupError(f"nothing was generated for {name}")

    def client(
        self, half: str, operation: dict[str, Any], token: str, headers: dict[str, str]
    ) -> Any:
        """Return a client with that bearer token, or else a credential that an operation takes."""
        package = importlib.import_module(f"generated_{half}")
        known = self.cloud.ready["credentials"]
        settings = {
            "base_url": self.cloud.url, "headers": headers,
            "httpx_args": {"trust_env": False}, "verify_ssl": False,  # it is http
        }  # fmt: skip
        taken = [name for choice in operation["security"] for name in choice]
        if token:
            return package.AuthenticatedClient(token=token, **settings)
        if "Basic" in taken:
            pair = f"{known['user_email']}:{known['user_api_key']}".encode()
            token = base64.b64encode(pair).decode()
            return package.AuthenticatedClient(token=token, prefix="Basic", **settings)
        if taken:
            return package.AuthenticatedClient(token=known[CREDENTIALS[taken[0]]], **settings)
        headers.setdefault("Service-Project-Key", known["project_key"])
        return package.Client(**settings)

    def call(
        self,
        half: str,
        name: str,
        *arguments: object,
        token: str = "",
        headers: dict[str, str] | None = None,
        **options: object,
    ) -> Any:
        """Return the detailed answer of an operation."""
        found = (found for _, _, found in operations(half) if found["operationId"] == name)
        module = self.module(half, name)
        with self.client(half, next(found), token, headers or {}) as client:
            return module.sync_detailed(*arguments, client=client, **options)

    def model(self, half: str, name: str, value: dict[str, Any]) -> Any:
        """Return the body of an operation as the generated model of it.

        Where one of several fields is required, the generator has no model.
        """
        taken = inspect.signature(self.module(half, name).sync_detailed, eval_str=True)
        kind = taken.parameters["body"].annotation
        return value if kind is Any else kind.from_dict(value)


def operations(half: str) -> list[tuple[str, str, dict[str, Any]]]:
    paths = DOCUMENTS[half]["paths"]
    assert isinstance(paths, dict)
    return [(method, path, one) for path in paths for method, one in paths[path].items()]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generated]:
    """Generate both packages from the documents that a stand-in serves, and keep it serving."""
    folder = tmp_path_factory.mktemp("generated")
    config = folder / "config.json"
    config.write_text(json.dumps({"post_hooks": []}))
    with served_cloud(folder) as cloud, httpx.Client(trust_env=False) as client:
        printed = ""
        for half, page in PAGES.items():
            document = folder / f"{half}.json"
            document.write_bytes(client.get(cloud.url + page).content)
            done = subprocess.run(
                [str(GENERATOR), "generate", "--path", str(document), "--meta", "none",
                 "--config", str(config), "--output-path", str(folder / f"generated_{half}")],
                capture_output=True, text=True, timeout=100, check=False,
            )  # fmt: skip
            printed += done.stdout + done.stderr
        sys.path.insert(0, str(folder))
        yield Generated(cloud, printed)
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.startswith("generated_")]:
            del sys.modules[name]


@pytest.mark.contract("D1.2", "O4.4")
@pytest.mark.parametrize("half", PAGES)
def test_every_operation_is_generated(generated: Generated, half: str) -> None:
    for warning in generated.printed.split("WARNING")[1:]:
        assert "Unsupported content type" in warning, warning
    left_out = set()
    for _, _, operation in operations(half):
        bodies = operation.get("requestBody", {}).get("content", {})
        if bodies and SENT.isdisjoint(bodies):
            left_out.add(operation["operationId"])
        else:
            assert callable(generated.module(half, operation["operationId"]).sync_detailed)
    assert left_out == IN_NO_JSON[half]


def examples(operation: dict[str, Any]) -> dict[str, object] | None:
    """Return an example of each parameter that is required; None where one has none."""
    needed = [one for one in operation.get("parameters", ()) if one["required"]]
    if not all("examples" in one["schema"] for one in needed):
        return None
    return {one["name"]: one["schema"]["examples"][0] for one in needed}


READINGS = [
    pytest.param(half, operation, id=f"{half} {operation['operationId']}")
    for half in PAGES
    for method, _, operation in operations(half)
    if method == "get" and examples(operation) is not None
]


@pytest.mark.contract("D5.1", "O1.5", "O2.1")
@pytest.mark.parametrize(("half", "operation"), READINGS)
def test_what_can_be_read_from_the_start_is_read_whole(
    generated: Generated, half: str, operation: dict[str, Any]
) -> None:
    answer = generated.call(half, operation["operationId"], **(examples(operation) or {}))
    if operation["operationId"] == "FetchCurrentPendingFOTAJobExecution":
        assert (answer.status_code, answer.parsed.code) == (404, 40499), answer.content
        return
    assert answer.status_code == 200, answer.content
    check_whole(answer)


def check_whole(answer: Any) -> None:
    """Check that what was parsed is all that was answered."""
    assert answer.parsed is not None
    if answer.headers["content-type"] == "application/octet-stream":
        assert answer.parsed.payload.getvalue() == answer.content
        return
    assert plain(answer.parsed) == plain(json.loads(answer.content))


def plain(value: Any) -> Any:
    """Return a generated model, or JSON, as JSON whose times are times."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    with contextlib.suppress(TypeError, ValueError):
        return dt.datetime.fromisoformat(value)
    return value


@pytest.fixture
def call(generated: Generated) -> Call:
    """Return a function that calls an operation and checks that its answer is read whole."""

    def answered(status: int, name: str, *arguments: str, **options: Any) -> Any:
        half = options.pop("half", None) or (
            "observability" if "organization_slug" in options else "device_cloud"
        )
        if isinstance(options.get("body"), dict):
            options["body"] = generated.model(half, name, options["body"])
        answer = generated.call(half, name, *arguments, **options)
        assert answer.status_code == status, answer.content
        if answer.content:
            check_whole(answer)
        return answer.parsed

    return answered


@pytest.mark.contract("D1.2")
def test_a_place_of_an_access_point_is_made_read_changed_and_forgotten(call: Call) -> None:
    address = "40:01:7a:00:00:e3"
    call(202, "CreateAnchor", body={"macAddress": address, "lat": 63.4, "lon": 10.4})
    (listed,) = call(200, "ListAnchors").items
    assert (listed.mac_address, listed.lat) == (address, 63.4)
    call(202, "UpdateAnchor", address, body={"name": "hall"})
    assert call(200, "FetchAnchor", address).name == "hall"
    call(202, "DeleteAnchor", address)
    assert call(404, "FetchAnchor", address).code == 40420


@pytest.mark.contract("D1.2")
def test_an_update_is_uploaded_ordered_followed_and_deleted(
    generated: Generated, call: Call
) -> None:
    device = "nrf-352656109000001"
    file = importlib.import_module("generated_device_cloud.types").File(io.BytesIO(bundle()))
    assert len(call(202, "UploadFirmware", body=file).uris) == 1
    (listed,) = call(200, "ListFirmware").items
    wanted = {"bundleId": listed.bundle_id, "deviceIds": [device]}
    job = call(201, "CreateFOTAJob", body=wanted).job_id
    assert call(200, "FetchFOTAJob", job).firmware.bundle_id == listed.bundle_id
    assert [one.job_id for one in call(200, "ListFOTAJobs").items] == [job]
    pending = call(200, "FetchCurrentPendingFOTAJobExecution", device)
    assert pending.job_document.bundle_id == listed.bundle_id
    call(202, "UpdateFOTAJobExecution", device, job, body={"status": "IN_PROGRESS"})
    (execution,) = call(200, "ListFOTAJobExecutionStatuses", job).items
    assert (execution.status, execution.device_id) == ("IN_PROGRESS", device)
    call(202, "DeleteFOTAJob", job)
    call(202, "DeleteFirmware", listed.bundle_id)
    assert call(404, "FetchFOTAJob", job).code == 40420


@pytest.mark.contract("O1.2")
def test_a_release_and_a_cohort_are_made_read_changed_and_deleted(
    generated: Generated, call: Call
) -> None:
    place = {
        "organization_slug": generated.cloud.ready["organization"],
        "project_slug": generated.cloud.ready["project"],
    }
    made = call(201, "CreateRelease", **place, body={"version": "2.0.0", "notes": "new"})
    assert (made.data.version, made.data.artifacts) == ("2.0.0", [])
    call(409, "CreateRelease", **place, body={"version": "2.0.0"})
    changed = call(200, "UpdateRelease", **place, release_version="2.0.0", body={"notes": "newer"})
    assert changed.data.notes == "newer"
    cohort = call(200, "CreateCohort", **place, body={"slug": "field", "name": "Field"}).data
    wanted = {"release": "2.0.0", "cohort": "field"}
    deployed = call(201, "CreateDeployment", **place, body=wanted).data
    assert (deployed.release.version, deployed.cohort.id) == ("2.0.0", cohort.id)
    assert call(200, "GetCohort", **place, cohort_slug="field").data.last_deployment is not None
    call(204, "DeleteCohort", **place, cohort_slug="field")
    call(204, "DeleteRelease", **place, release_version="2.0.0")
    call(404, "GetRelease", **place, release_version="2.0.0")


DEVICES = {
    "352656109000001": ("nrf-352656109000001", "Gateway"),
    "hardware address": ("DE:AD:BE:EF:00:01", "BLE"),
    "words": ("greenhouse north", "Generic"),
}


@pytest.mark.contract("D2.1", "D2.2", "D2.3", "D5.3")
@pytest.mark.parametrize(("device", "kind"), DEVICES.values(), ids=DEVICES)
def test_a_device_of_each_type_and_form_of_id_is_read_as_its_model(
    generated: Generated, device: str, kind: str
) -> None:
    answer = generated.call("device_cloud", "FetchDevice", device)
    found = answer.parsed
    assert (found.id, found.type_, found.tags) == (device, kind, [])
    assert found.tenant_id == generated.cloud.ready["team_id"]
    assert found.meta.version == answer.headers["etag"]
    assert found.meta.created_at.utcoffset() == found.meta.updated_at.utcoffset() == dt.timedelta()
    assert (found.additional_properties, isinstance(found.gateway_id, str)) == ({}, kind == "BLE")
    check_whole(answer)


@pytest.mark.contract("D3.3", "D5.2", "D6")
def test_the_led_is_lit_as_its_bit_mask_says_if_nobody_was_before(
    generated: Generated, call: Call
) -> None:
    device, led = "DE:AD:BE:EF:00:01", "00001525-1212-EFDE-1523-785FEABCD123"
    for value in ([1, 0], [2, 0], [4, 0], [8, 0], [12, 0], [10, 0]):
        version = {"If-Match": call(200, "FetchDevice", device).meta.version}
        call(202, "UpdateCharacteristicValue", device, led, body=value, headers=version)
        assert call(200, "FetchCharacteristicValue", device, led) == value
        late = call(412, "UpdateCharacteristicValue", device, led, body=[0, 0], headers=version)
        assert late.code == 41200
    assert call(200, "FetchCharacteristicValue", device, led) == [10, 0]


@pytest.mark.contract("D2.4", "D3.2", "D7")
def test_a_device_is_added_to_its_gateway_and_its_services_are_discovered(
    generated: Generated, call: Call
) -> None:
    gateway, device = "nrf-352656109000001", "AA:AA:AA:AA:AA:07"
    call(204, "AddBLEDevice", gateway, device)
    assert call(200, "FetchDevice", device).gateway_id == gateway
    reported = call(200, "FetchDevice", gateway).state.to_dict()["reported"]
    assert device in reported["statusConnections"]
    call(202, "Discover", gateway, device)
    assert call(200, "FetchDevice", device).state.to_dict() == {}
    generated.cloud.control(clock={"advance_s": 10})
    services = call(200, "FetchDevice", device).state.to_dict()
    assert services
    assert [one["uuid"] for one in services.values()] == list(services)


@pytest.mark.contract("D8.1", "D8.4", "D8.5", "D10.7", "O4.6")
def test_a_scan_is_located_with_the_token_of_both_services_in_its_own_form_of_the_url(
    generated: Generated, call: Call
) -> None:
    known, place = generated.cloud.ready["credentials"], PLACES[0]
    own, scan = ("acme", "kits"), scan_at(place)
    found = call(200, "LocateWiFi", *own, body=scan)
    assert (found.lat, found.lon) == pytest.approx((place.lat, place.lon), abs=0.01)
    assert call(200, "LegacyLocateWiFi", body=scan).fulfilled_with == found.fulfilled_with
    token = known["organization_auth_token"]
    call(401, "LocateWiFi", *own, body=scan, token=token[:-1])
    call(401, "LocateWiFi", *own, body=scan, token=known["service_token"])
    call(401, "LegacyLocateWiFi", body=scan, token=token)
    call(401, "LocateWiFi", "umbrella", "kits", body=scan)
    call(403, "LocateWiFi", "acme", "no-location", body=scan)
    wrong = {"accessPoints": [{"macAddress": "nonsense", "signalStrength": -40}] * 2}
    call(422, "LocateWiFi", *own, body=wrong)


@pytest.mark.contract("D10.1", "D10.9", "D10.10")
def test_a_key_opens_what_its_plan_its_role_and_its_hour_allow(
    generated: Generated, call: Call
) -> None:
    control = generated.cloud.control
    old = generated.cloud.ready["credentials"]["api_key"]
    for plan, role, status in (
        ("FREE", "owner", 403),
        ("PRO", "admin", 403),
        ("PRO", "owner", 200),
    ):
        control(plan=plan, role=role)
        call(status, "CreateServiceKeyAndToken", token=old)
    control(role="viewer")
    call(200, "ListDevices", token=old)
    refused = call(403, "UpdateDeviceName", "greenhouse north", body="mine", token=old)
    assert "role" in refused.message
    new = control(role="owner", rotate_api_key=True)["api_key"]
    control(clock={"advance_s": 59 * 60})
    call(200, "ListDevices", token=old)
    control(clock={"advance_s": 2 * 60})
    call(401, "ListDevices", token=old)
    generated.cloud.ready["credentials"]["api_key"] = new
    call(200, "ListDevices")


@pytest.fixture
def project(generated: Generated) -> dict[str, str]:
    """The place of the project that is there from the start, as operations take it."""
    ready = generated.cloud.ready
    return {"organization_slug": ready["organization"], "project_slug": ready["project"]}


def heartbeat(serial: str) -> dict[str, Any]:
    return {
        "type": "heartbeat", "device_serial": serial, "software_type": "app",
        "software_version": "1.0.0", "hardware_version": "dk", "sdk_version": "0.5.0",
        "event_info": {"metrics": {"battery": 90}},
    }  # fmt: skip


@pytest.mark.contract("O2.2", "O2.3", "O2.4", "O3.3", "O3.4")
def test_events_are_pushed_and_listed_by_page_device_and_time(
    generated: Generated, call: Call, project: dict[str, str]
) -> None:
    now = dt.datetime.now(dt.UTC)
    for number in range(1, 4):
        events = [heartbeat(f"page-{number}")] * 10
        call(202, "PushEvents", body=events, half="observability")
    call(403, "PushEvents", body=events, half="observability",
         headers={"Service-Project-Key": "test-key-of-nobody"})  # fmt: skip

    def listed(**query: Any) -> Any:
        return call(200, "ListEvents", **project, device=["page-1", "page-3"], **query)

    orders = importlib.import_module("generated_observability.models").ListEventsSortItem
    first = listed()
    assert (first.paging.total_count, first.paging.page_count) == (20, 1)
    assert (len(first.data), first.paging.per_page, first.paging.page) == (20, 20, 1)
    assert {one.device.device_serial for one in first.data} == {"page-1", "page-3"}
    assert all(one.created_date.utcoffset() == dt.timedelta() for one in first.data)
    second = listed(page=2, per_page=15, sort=[orders("-id")])
    assert (len(second.data), second.paging.item_count, second.paging.page_count) == (5, 5, 2)
    whole = [one.id for one in listed(sort=[orders("id")]).data]
    assert [one.id for one in second.data] == whole[4::-1]
    call(400, "ListEvents", **project, per_page=101)
    # What it makes of a time has an offset, which the service's parameters do not take.
    refused = generated.call("observability", "ListEvents", **project, since=now)
    assert (refused.status_code, b"Not a valid datetime" in refused.content) == (400, True)


@pytest.mark.contract("O1.1")
def test_a_slug_and_a_version_are_what_their_rules_say(call: Call, project: dict[str, str]) -> None:
    for slug, status in (("a" * 128, 200), ("A_b-9", 200), ("a" * 129, 400), ("a b", 400)):
        call(status, "CreateCohort", **project, body={"slug": slug, "name": "any"})
    for version, status in (("1.0.0-rc.1+b", 201), ("1.0", 400), ("01.0.0", 400)):
        call(status, "CreateRelease", **project, body={"version": version})


@pytest.mark.contract("O1.3", "O3.2", "O4.5", "O5.5")
def test_keys_are_read_and_cycled_by_whoever_may(
    generated: Generated, call: Call, project: dict[str, str]
) -> None:
    control, known = generated.cloud.control, generated.cloud.ready["credentials"]
    organization = project["organization_slug"]
    whoami = call(200, "WhoAmI", half="observability")
    assert whoami.email == known["user_email"]
    assert organization in [one.slug for one in whoami.organizations]
    control(members={organization: "member"})
    assert call(200, "GetProjectKey", **project).data.api_key == known["project_key"]
    call(403, "CycleProjectKey", **project)
    control(members={organization: "admin"})
    made = call(200, "CycleProjectKey", **project).data.api_key
    pushed = [heartbeat("cycled")]
    call(403, "PushEvents", body=pushed, half="observability")
    known["project_key"] = made
    call(202, "PushEvents", body=pushed, half="observability")
    control(single_sign_on={organization: True})
    call(403, "GetOrganization", organization, half="observability")
    control(single_sign_on={organization: False}, members={organization: None})
    call(403, "GetOrganization", organization, half="observability")
    control(members={organization: "admin"})
    known["user_api_key"] = call(200, "CycleUserApiKey", half="observability").data.api_key
    assert call(200, "GetProjectKey", **project).data.api_key == made


@pytest.mark.contract("O5.2")
def test_a_core_dump_is_pushed_as_it_is_and_listed_as_a_trace(
    generated: Generated, call: Call, project: dict[str, str]
) -> None:
    file = importlib.import_module("generated_observability.types").File(
        io.BytesIO(coredump("kit-9"))
    )
    call(202, "PushCoredump", body=file, half="observability")
    (trace,) = call(200, "ListTraces", **project, device=["kit-9"]).data
    assert trace.reason == "Hard Fault"
