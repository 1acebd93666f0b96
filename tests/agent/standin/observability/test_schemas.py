"""The parts of schemas accept what they say, and nothing else."""

from __future__ import annotations

import pytest

from agent.standin.core.schema import NUMBER, TEXT, body_schema, check, object_schema
from agent.standin.observability.schemas import MOMENT_OR_NULL, nullable


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        (object_schema(id=NUMBER), {"id": 1}, True),
        (object_schema(id=NUMBER), {}, False),
        (object_schema(id=NUMBER), {"id": "1"}, False),
        (body_schema("id", id=NUMBER, name=TEXT), {"id": 1}, True),
        (body_schema("id", id=NUMBER, name=TEXT), {"name": "x"}, False),
        (body_schema(id=NUMBER), {}, True),
        (nullable(TEXT), None, True),
        (nullable(TEXT), "x", True),
        (nullable(TEXT), 1, False),
        (MOMENT_OR_NULL, "2026-01-02T03:04:05Z", True),
        (MOMENT_OR_NULL, "yesterday", False),
    ],
)
def test_a_schema_fits(schema: dict[str, object], value: object, fits: bool) -> None:
    assert (not check(value, schema)) is fits
