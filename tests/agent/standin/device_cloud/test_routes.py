"""The device cloud's document is true (clauses D1.2, D1.5)."""

from __future__ import annotations

import pytest
from standin import StandIn


@pytest.mark.contract("D1.2")
async def test_the_document_is_openapi_3_and_open_to_everyone(standin: StandIn) -> None:
    answer = await standin.client.get("/v1/openapi.json")
    document = answer.json()
    assert answer.status_code == 200
    assert document["openapi"].startswith("3.")
    assert {"Simple Token", "JSON Web Token"} <= set(document["components"]["securitySchemes"])


@pytest.mark.contract("D1.5")
async def test_an_operation_takes_exactly_the_schemes_that_it_declares(standin: StandIn) -> None:
    document = (await standin.client.get("/v1/openapi.json")).json()
    credentials = {
        "Simple Token": "api_key",
        "Organization Auth Token": "organization_auth_token",
        "Evaluation Token": "evaluation_token",
    }
    standin.cloud.settings.bulk_s = 1e9
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            taken = {name for choice in operation["security"] for name in choice}
            filled = path.replace("{organization}", "acme").replace("{project}", "kits")
            filled = filled.replace("{", "").replace("}", "")
            for scheme, name in credentials.items():
                if not taken:
                    continue
                answer = await standin.client.request(method, filled, headers=standin.bearer(name))
                refused = answer.status_code == 401 and (
                    method == "head" or answer.json()["code"] == 40100
                )
                assert refused is (scheme not in taken), (method, path, scheme, answer.text)
