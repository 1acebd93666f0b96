"""The stand-in's documents are true: schemathesis tries the whole of each on a real socket."""

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
from observability import a_trace
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from agent.standin.openapi import observability_document

SEED = 9161
EXAMPLES = 6
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
NAMES_OTHERS = re.compile(r"Commit|CreateDe|UpdateDe|LatestRelease|Upload")


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
            pair = f"{self.given['user_email']}:{self.given['user_password']}"
            return {"Authorization": requests.auth._basic_auth_str(*pair.split(":"))}
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


SCHEMA = schemathesis.openapi.from_dict(observability_document("/"))
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_the_observability_document_is_true(
    served: Served, operation: Any, mode: GenerationMode
) -> None:
    raw = operation.definition.raw
    headers = served.headers(raw)

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def attempt(case: Any) -> None:
        # The tool writes any multipart as a form, which chunks are not.
        assume(case.media_type != "multipart/mixed")
        for name, value in KNOWN.items():
            if mode is GenerationMode.POSITIVE and name in (case.path_parameters or {}):
                case.path_parameters[name] = value
        response = case.call(base_url=served.url, headers=headers, session=served.session)
        excluded = [positive_data_acceptance] if NAMES_OTHERS.search(raw["operationId"]) else []
        case.validate_response(response, headers=headers, excluded_checks=excluded)

    attempt()


def test_the_published_document_is_the_one_that_was_tried(served: Served) -> None:
    published = httpx.get(f"{served.url}/api/v0/openapi.json", trust_env=False).json()
    tried = observability_document("/")
    assert published["paths"] == json.loads(json.dumps(tried["paths"]))
