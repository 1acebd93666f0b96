"""The documents as documents: valid, complete, with links that lead on (clauses D1.2, O4.4)."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs
import pytest

from agent.standin.core.operation import Host, Parameter
from agent.standin.core.schema import Schema
from agent.standin.device_cloud.routes import document as device_cloud_document
from agent.standin.observability.routes import document as observability_document
from agent.standin.serve import collect
from agent.standin.state import open_cloud
from tests.support.cloud.standin import StandIn

GPS_DAY = 17_000
DOCUMENTS = pytest.mark.parametrize(
    "document",
    [device_cloud_document("/", GPS_DAY), observability_document()],
    ids=["device cloud", "observability"],
)


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return method, path and description of each."""
    return [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def schemas(value: Any) -> list[Any]:
    """Return every schema that stands in a document."""
    if isinstance(value, list):
        return [found for inner in value for found in schemas(inner)]
    if not isinstance(value, dict):
        return []
    own = [value["schema"]] if "schema" in value else []
    return own + [
        found for key, inner in value.items() if key != "schema" for found in schemas(inner)
    ]


@pytest.mark.contract("D1.2", "O4.4")
@DOCUMENTS
def test_a_document_is_valid_openapi_and_its_schemas_are_valid(document: dict[str, Any]) -> None:
    # Not above: each process that runs tests would import it, and a quarter of a second is long.
    from openapi_spec_validator import OpenAPIV31SpecValidator

    assert [str(error) for error in OpenAPIV31SpecValidator(document).iter_errors()] == []
    found = schemas(document)
    assert len(found) > 100
    for schema in found:
        jsonschema_rs.meta.validate(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
        )


@DOCUMENTS
def test_an_operation_has_a_name_of_its_own(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))


@DOCUMENTS
def test_a_link_leads_to_an_operation_and_fills_its_path(document: dict[str, Any]) -> None:
    paths = {operation["operationId"]: path for _, path, operation in operations(document)}
    links = [
        link
        for _, _, operation in operations(document)
        for answer in operation["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert len(links) > 10
    for link in links:
        named = re.findall(r"{(\w+)}", paths[link["operationId"]])
        assert set(link["parameters"]) == set(named), link


@pytest.mark.contract("D1.2", "O1.2")
def test_every_route_is_in_a_document_and_what_is_documented_is_served() -> None:
    served = set()
    for host, routes in collect(open_cloud()).items():
        if host is not Host.DOWNLOADS:
            for route in routes:
                methods = set(route.methods or ())
                # Starlette answers HEAD wherever there is GET.
                served |= {(method, route.path) for method in methods if method != "HEAD"}
                if methods == {"HEAD"}:
                    served.add(("HEAD", route.path))
    documented = {
        (method, path)
        for document in (device_cloud_document("/", GPS_DAY), observability_document())
        for method, path, _ in operations(document)
    }
    # What a kit's provisioning client asks for, in CBOR: the service's document has it not.
    of_kits = {
        ("GET", "/v1/provisioning/commands"), ("POST", "/v1/provisioning/response"),
    }  # fmt: skip
    assert documented | of_kits == served
    assert not documented & of_kits


async def test_what_is_published_is_what_was_tried(standin: StandIn) -> None:
    published = await standin.client.get(standin.urls["api"] + "/api/v0/openapi.json")
    tried = observability_document()
    assert published.json()["paths"].keys() == tried["paths"].keys()


@pytest.mark.contract("O4.3", "O4.4")
def test_the_observability_document_declares_basic_alone_and_describes_the_others() -> None:
    document = observability_document()
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


@pytest.mark.contract("D8.1", "D1.2")
def test_a_parameter_of_a_day_has_the_schema_of_that_day() -> None:
    always: Schema = {"type": "integer"}
    parameter = Parameter(
        name="day", schema=always, on_day=lambda now_s: {**always, "minimum": int(now_s)}
    )
    assert parameter.at(5.0) == Parameter(name="day", schema={"type": "integer", "minimum": 5})
    assert Parameter(name="day", schema=always).at(5.0).schema == always
