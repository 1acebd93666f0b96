"""Refusals: raised anywhere below a route, written in the manner of the half that raised them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping


class Refused(Exception):
    """A request that is answered with an error; each half has its own subclass and body."""

    def __init__(
        self, status: int, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})

    def body(self) -> Any:
        """Return the JSON value of the answer."""
        return {"message": self.message}

    def response(self) -> Response:
        """Return the answer."""
        return JSON(self.body(), self.status, headers=self.headers)


class JSON(Response):
    """A JSON answer, encoded by msgspec."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode any plain value."""
        return msgspec.json.encode(content)
