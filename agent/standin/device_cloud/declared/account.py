"""Account and status: declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.device_cloud.declared.shapes import OBJECT, WHOLE, one
from agent.standin.operation import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.standin.operation import Operation


def account() -> Iterator[Operation]:
    """Yield the operations of account and status."""
    tag = "Account"
    yield one(
        "GET /v1/openapi.json",
        "Schema",
        "This document.",
        tag=tag,
        security=(),
        answers={200: OBJECT},
    )
    yield one(
        "GET /v1/status",
        "FetchStatus",
        "Whether the service is up.",
        tag=tag,
        security=(),
        answers={200: OBJECT},
    )
    yield one(
        "GET /v1/account",
        "FetchAccountInfo",
        "The team, its plan, the user's role.",
        tag=tag,
        answers={200: WHOLE},
    )
    yield one(
        "GET /v1/account/service-token",
        "FetchServiceToken",
        "A service token; organization auth tokens replace it.",
        tag=tag,
        deprecated=True,
        answers={200: OBJECT},
    )
    yield one(
        "POST /v1/account/service-key-and-token", "CreateServiceKeyAndToken",
        "A new service key in place of the old one.", tag=tag, deprecated=True, changes=True,
        parameters=(
            Parameter(
                name="service",
                schema={"type": "string", "enum": ["location", "fota", "device"]},
            ),
        ),
        answers={200: OBJECT},
    )  # fmt: skip
