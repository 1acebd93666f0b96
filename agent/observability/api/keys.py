"""Calls for the project key and the user API key: read, cycle, delete (clauses O1.3, O5.5)."""

from dataclasses import dataclass

from agent.call import Call, Host, Request, Response, Scheme, StatusCall
from agent.config.secrets import Secret
from agent.errors import BadAnswer
from agent.json_value import JSONValue
from agent.observability.api.kinds import PROJECT, Scope, path
from agent.observability.api.resources import USER


@dataclass(frozen=True, slots=True)
class FetchProjectKey(Call[str]):
    """The key of a project, which every member may see."""

    host = Host.API
    schemes = USER

    scope: Scope

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        return Request("GET", _project_key_path(self.scope))

    def parse(self, response: Response) -> str:
        """Return the key. Raises BadAnswer."""
        return _api_key(response)


@dataclass(frozen=True, slots=True)
class CycleProjectKey(FetchProjectKey):
    """Replace the key of a project: the old one stops working at once, on every device."""

    repeatable = False

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        return Request("POST", _project_key_path(self.scope))

    def advice(self, status: int, code: int | None) -> str:  # noqa: ARG002 - the base's
        """Return which roles may cycle the key."""
        if status == 403:
            return "only organization admins and project managers generate and cycle the key"
        return ""


class _OfUser:
    """A call that takes the user's own credentials, and no token of an organization."""

    host = Host.API
    schemes = (Scheme.BASIC,)


@dataclass(frozen=True, slots=True)
class CycleUserKey(_OfUser, Call[Secret]):
    """Create or replace the user's own API key, which works in all projects of the user."""

    repeatable = False

    def request(self) -> Request:
        """Return what to send."""
        return Request("POST", "/auth/api_key")

    def parse(self, response: Response) -> Secret:
        """Return the new key. Raises BadAnswer."""
        return Secret(_api_key(response))


@dataclass(frozen=True, slots=True)
class FetchUserKey(_OfUser, Call[Secret | None]):
    """The user's own API key; None if there is none."""

    accepts = frozenset({404})

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", "/auth/api_key")

    def parse(self, response: Response) -> Secret | None:
        """Return the key. Raises BadAnswer."""
        if response.status == 404:
            return None
        key = _api_key(response, may_be_empty=True)
        return Secret(key) if key else None


@dataclass(frozen=True, slots=True)
class DeleteUserKey(_OfUser, StatusCall):
    """Delete the user's own API key: it stops working."""

    repeatable = False

    def request(self) -> Request:
        """Return what to send."""
        return Request("DELETE", "/auth/api_key")


def _project_key_path(scope: Scope) -> str:
    return path(PROJECT, scope, scope.project) + "/api_key"


def _api_key(response: Response, *, may_be_empty: bool = False) -> str:
    body = response.decode(dict[str, JSONValue])
    inner = body.get("data", body)
    key = inner.get("api_key") if isinstance(inner, dict) else None
    if not isinstance(key, str) or not (key or may_be_empty):
        raise BadAnswer("the answer holds no key")
    return key
