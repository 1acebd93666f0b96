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
from fota_calls import bundle
from served_cloud import PEERS, ServedCloud, served_cloud

from agent.standin.device_cloud.routes import document as device_cloud_document
from agent.standin.observability.routes import document as observability_document

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

    def client(self, half: str, operation: dict[str, Any]) -> Any:
        """Return a client with a credential that an operation takes."""
        package = importlib.import_module(f"generated_{half}")
        known = self.cloud.ready["credentials"]
        settings = {"base_url": self.cloud.url, "httpx_args": {"trust_env": False}}
        taken = [name for choice in operation["security"] for name in choice]
        if "Basic" in taken:
            pair = f"{known['user_email']}:{known['user_api_key']}".encode()
            token = base64.b64encode(pair).decode()
            return package.AuthenticatedClient(token=token, prefix="Basic", **settings)
        if taken:
            return package.AuthenticatedClient(token=known[CREDENTIALS[taken[0]]], **settings)
        key = {"Service-Project-Key": known["project_key"]}
        return package.Client(headers=key, **settings)

    def call(self, half: str, name: str, *arguments: object, **options: object) -> Any:
        """Return the detailed answer of an operation."""
        found = (found for _, _, found in operations(half) if found["operationId"] == name)
        module = self.module(half, name)
        with self.client(half, next(found)) as client:
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
        half = "observability" if "organization_slug" in options else "device_cloud"
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
