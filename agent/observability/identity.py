"""Who the credential belongs to (clause O3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.call import Call, Host, Request, Scheme
from agent.errors import BadAnswer
from agent.observability.resources import Resource

if TYPE_CHECKING:
    from agent.call import Response


@dataclass(frozen=True, slots=True)
class FetchMe(Call[Resource]):
    """GET /auth/me: email with password, or with user API key. Not below /api/v0."""

    host = Host.API
    schemes = (Scheme.BASIC,)

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", "/auth/me")

    def parse(self, response: Response) -> Resource:
        """Return the user. Raises BadAnswer."""
        body = response.json()
        if not isinstance(body, dict):
            raise BadAnswer("the answer is no user")
        return Resource(body)
