from __future__ import annotations

import pytest

from agent.call import Response
from agent.cloud.openapi import FetchOpenApi, OpenApi
from agent.errors import BadAnswer, NotFound
from agent.json_value import JSONValue

SIMPLE, WEB = {"Simple Token": []}, {"JSON Web Token": []}


def document(simple: dict[str, JSONValue], web: dict[str, JSONValue]) -> OpenApi:
    paths: dict[str, JSONValue] = {
        "/v1/openapi.json": {"get": {"security": []}},
        "/v1/devices": {"get": {}, "post": {"security": [simple]}},
        "/v1/devices/{deviceId}": {"get": {"security": [simple, web]}, "parameters": []},
        "/v1/devices/public-keys": {"get": {"security": [simple]}},
        "/v1/devices/{gatewayId}/{deviceId}": {"put": {"security": [simple]}},
        "/v1/devices/{deviceId}/state": {"put": {"security": [web]}},
        "/v1/odd": None,
    }
    return OpenApi({"openapi": "3.1.0", "security": [simple], "paths": paths})


DOCUMENT = document(SIMPLE, WEB)


@pytest.mark.contract("D1.2")
@pytest.mark.parametrize(
    ("method", "path", "declared"),
    [
        ("GET", "/v1/devices", {"Simple Token"}),
        ("post", "/v1/devices", {"Simple Token"}),
        ("GET", "/v1/devices/nrf-1", {"Simple Token", "JSON Web Token"}),
        ("GET", "/v1/devices/{deviceId}", {"Simple Token", "JSON Web Token"}),
        ("GET", "/v1/devices/public-keys", {"Simple Token"}),
        ("PUT", "/v1/devices/nrf-1/nrf-2", {"Simple Token"}),
        ("PUT", "/v1/devices/nrf-1/state", {"JSON Web Token"}),
        ("GET", "/v1/openapi.json", set()),
    ],
)
def test_the_document_tells_which_credential_an_operation_declares(
    method: str, path: str, declared: set[str]
) -> None:
    # The second is valid OpenAPI, which takes no blank in a component's name.
    for found in (DOCUMENT, document({"SimpleToken": []}, {"JSONWebToken": []})):
        assert found.schemes(method, path) == declared


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/devices/a/b", "/v1/odd", "/v1/devices/"])
def test_an_operation_that_is_not_described_is_named(path: str) -> None:
    with pytest.raises(NotFound, match="describes no GET"):
        DOCUMENT.schemes("GET", path)


def test_what_is_no_openapi_document_is_named() -> None:
    for body in (b"[]", b'{"swagger":"2.0"}', b'{"openapi":3}', b'{"openapi":"2.0"}', b"null"):
        with pytest.raises(BadAnswer, match=r"no OpenAPI 3|another shape"):
            FetchOpenApi().parse(Response(200, {}, body))
