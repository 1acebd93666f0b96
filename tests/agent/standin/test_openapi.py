"""The observability document is true: schemathesis tries the whole of it on a real socket."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from observability import a_trace, basic
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from agent.standin.openapi import observability_document

SEED = 9161
EXAMPLES = 4
KNOWN = {
    "organization_slug": "acme",
    "project_slug": "kits",
    "release_version": "2.4.1",
    "cohort_slug": "default",
    "device_serial": "kit-1",
    "id": 1,
}
# Whose valid requests may name what is not there (a cohort, a release, an upload), or a size that
# is too large for the kind of file.
NAMES_OTHERS = re.compile(r"LatestRelease")


class Served:
    """A stand-in in a process of its own, with a little of everything in it."""

    def __init__(self, ready: dict[str, Any]) -> None:
        self.url: str = ready["urls"]["api"]
        self.given = ready["credentials"]
        self.session = requests.Session()
        self.session.trust_env = False
        key = {"Service-Project-Key": self.given["project_key"]}
        with httpx.Client(base_url=self.url, trust_env=False) as client:
            assert client.post("/api/v0/events", json=[a_trace()], headers=key).is_success
            bearer = {"Authorization": f"Bearer {self.given['organization_auth_token']}"}
            place = "/api/v0/organizations/acme/projects/kits"
            body = {"release": "2.4.1", "cohort": "default"}
            assert client.post(f"{place}/deployments", json=body, headers=bearer).is_success

    def headers(self, operation: dict[str, Any]) -> dict[str, str]:
        """Return the credential that an operation says it takes."""
        if operation["security"]:
            return basic(self.given["user_email"], self.given["user_password"])
        if "Accepts the project key" in operation.get("description", ""):
            return {"Service-Project-Key": self.given["project_key"]}
        return {}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    command = [sys.executable, "-m", "agent", "cloud", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Served(json.loads(process.stdout.readline()))
        finally:
            process.terminate()


def operations(document: dict[str, Any]) -> list[Any]:
    """Return each operation with what is to be sent to it: what fits, and what does not."""
    schema = schemathesis.openapi.from_dict(document)
    found = [result.ok() for result in schema.get_all_operations()]
    return [
        pytest.param(operation, mode, id=f"{operation.label}-{mode.value}")
        for operation in found
        for mode in GenerationMode
        # Where nothing is declared, nothing can be wrong.
        if mode is GenerationMode.POSITIVE
        or operation.definition.raw.keys() & {"parameters", "requestBody"}
    ]


def attempt(served: Served, operation: Any, mode: GenerationMode, excluded: list[Any]) -> None:
    headers = served.headers(operation.definition.raw)

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def tried(case: Any) -> None:
        # The tool writes any multipart as a form, which chunks are not.
        assume(case.media_type != "multipart/mixed")
        for name, value in KNOWN.items():
            if mode is GenerationMode.POSITIVE and name in (case.path_parameters or {}):
                case.path_parameters[name] = value
        response = case.call(base_url=served.url, headers=headers, session=served.session)
        case.validate_response(response, headers=headers, excluded_checks=excluded)

    tried()


@pytest.mark.contract("O4.4")
@pytest.mark.parametrize(("operation", "mode"), operations(observability_document("/")))
def test_the_observability_document_is_true(
    served: Served, operation: Any, mode: GenerationMode
) -> None:
    names_others = NAMES_OTHERS.search(operation.definition.raw["operationId"])
    attempt(served, operation, mode, [positive_data_acceptance] if names_others else [])


def test_what_is_published_is_what_was_tried(served: Served) -> None:
    published = httpx.get(f"{served.url}/api/v0/openapi.json", trust_env=False).json()
    tried = observability_document("/")
    assert published["paths"] == json.loads(json.dumps(tried["paths"]))


@pytest.mark.contract("O4.3", "O4.4")
def test_the_observability_document_declares_basic_alone_and_describes_the_others() -> None:
    document = observability_document("/")
    assert document["components"]["securitySchemes"] == {
        "Basic": {"type": "http", "scheme": "basic"}
    }
    for word in ("organization auth token", "Service-Project-Key", "user API key", "password"):
        assert word in document["info"]["description"]
    taking = {
        path
        for path, methods in document["paths"].items()
        for operation in methods.values()
        if "Accepts the project key" in operation.get("description", "")
    }
    assert {"/api/v0/events", "/api/v0/chunks/{device_serial}", "/api/v0/releases/latest",
            "/api/v0/upload", "/api/v0/upload/coredump"} <= taking  # fmt: skip
    assert not [path for path in taking if "organization_slug" in path]
