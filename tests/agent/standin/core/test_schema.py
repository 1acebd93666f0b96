"""JSON that is nested too deep, and values that are judged as JSON Schema judges them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.core.schema import Schema, check, first_error, parse_datetime
from tests.support.cloud.raw_requests import answers
from tests.support.cloud.standin import StandIn, running_standin

SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 2.0, "", "ab", "b"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=6,
)
SCHEMAS: list[Schema] = [
    {"type": ["integer", "null"]},
    {"type": "number", "minimum": -1, "maximum": 2},
    {"enum": [True, 0, "ab", None]},
    {"type": "string", "minLength": 1, "maxLength": 1},
    {"type": "string", "pattern": "^a?b$"},
    {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "boolean"}},
    {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}},
    {"type": "object", "additionalProperties": False, "properties": {"a": {}, "b": {}}},
    {"type": "object", "minProperties": 1, "maxProperties": 2, "propertyNames": {"pattern": "a|b"}},
    {"type": "object", "additionalProperties": {"type": "string"}, "properties": {"a": {}}},
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
    {"type": "object", "not": {"required": ["a", "b"]}},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@given(value=VALUES)
def test_a_value_is_judged_as_another_validator_judges_it(schema: Schema, value: Any) -> None:
    judged = jsonschema_rs.validator_for(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    )
    assert bool(check(value, schema)) is not judged.is_valid(value)


def test_the_first_error_says_where_it_is_and_a_choice_shows_the_form_that_fits_best() -> None:
    person = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    choice: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": person}]}
    assert first_error(check([{"name": "a"}, {"name": 3}], choice)) == "1.name: Not a valid string."
    assert first_error(check(3, {"type": "string"})) == "Not a valid string."


def test_a_time_needs_a_date_a_time_and_a_zone() -> None:
    assert parse_datetime("2026-01-01T00:00:00Z") == parse_datetime("2026-01-01T02:30:00+02:30")
    for wrong in (
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-13-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59x",
    ):
        assert parse_datetime(wrong) is None


@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["lists", "objects"])
@pytest.mark.parametrize(
    ("method", "path", "credential"),
    [
        ("POST", "/v1/fota-jobs", "api_key"),
        ("PATCH", "/v1/devices/nrf-352656109000002/state", "api_key"),
        ("POST", "/v1/devices/nrf-352656109000002/messages", "api_key"),
        ("POST", "/v1/location/cell", "service_token"),
        ("POST", "/v1/claimed-devices", "api_key"),
        ("POST", "/control", "control_token"),
        ("POST", "/api/v0/organizations/acme/projects/kits/cohorts", "organization_auth_token"),
    ],
)
async def test_nesting_of_a_hundred_thousand_is_refused(
    standin: StandIn, method: str, path: str, credential: str, opening: str
) -> None:
    for body in (opening * 100_000, opening * 100_000 + "1" + "]}"[opening != "["] * 100_000):
        answer = await standin.client.request(
            method,
            path,
            headers=standin.bearer(credential) | {"Content-Type": "application/json"},
            content=body,
        )
        assert answer.status_code in {400, 422}
    assert await answers(standin)


async def test_what_is_nested_deeper_than_it_can_be_kept_is_refused(tmp_path: Path) -> None:
    path = "/v1/devices/nrf-352656109000001/state"
    async with running_standin(tmp_path / "a", state=tmp_path / "cloud.sqlite") as standin:
        key = standin.bearer("api_key") | {"Content-Type": "application/json"}

        async def patch(depth: int) -> int:
            body = b'{"reported":' * depth + b"1" + b"}" * depth
            return (await standin.client.patch(path, content=body, headers=key)).status_code

        assert [await patch(n) for n in (64, 65, 900)] == [202, 400, 400]
        assert await patch(2) == 202
