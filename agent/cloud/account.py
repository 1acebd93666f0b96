"""The account: the team, and the deprecated ways to a service token (clause D9.4)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.call import Call, Request, Response, Scheme
from agent.config.secrets import Secret
from agent.errors import BadAnswer
from agent.json_value import JSONValue, object_in, text_in

SUCCESSOR = "an organization auth token (CELLAGENT_ORG_TOKEN) replaces service tokens"
GONE = "this path was deprecated and could be removed any time after July 1, 2026: " + SUCCESSOR


@dataclass(frozen=True, slots=True)
class Account:
    """The team that the API key opens; `raw` is the whole answer."""

    raw: Mapping[str, JSONValue]
    team_id: str
    team_name: str
    role: str
    plan: str


@dataclass(frozen=True, slots=True)
class FetchAccount(Call[Account]):
    """The team and role of the API key: GET /v1/account."""

    schemes = (Scheme.API_KEY,)

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", "/v1/account")

    def parse(self, response: Response) -> Account:
        """Return the account. Raises BadAnswer, also for what names no team."""
        body = response.decode(dict[str, JSONValue])
        team = object_in(body, "team")
        account = Account(
            raw=body,
            team_id=text_in(team, "tenantId"),
            team_name=text_in(team, "name"),
            role=text_in(body, "role"),
            plan=text_in(object_in(body, "plan"), "name"),
        )
        if not account.team_id:
            raise BadAnswer("the answer names no team")
        return account


@dataclass(frozen=True, slots=True)
class ServiceTokenIssued:
    """A service token; `other` holds the other fields of the answer, with their secrets."""

    token: Secret
    other: Mapping[str, JSONValue] = field(repr=False)

    @property
    def private_key(self) -> str:
        """The PEM text of the service key that was made. Raises BadAnswer where there is none."""
        for value in self.other.values():
            if isinstance(value, str) and "PRIVATE KEY" in value:
                return value
        raise BadAnswer("the answer holds no private key")


@dataclass(frozen=True, slots=True)
class _ServiceTokenCall(Call[ServiceTokenIssued]):
    schemes = (Scheme.API_KEY,)

    @property
    def warning(self) -> str:
        """The date after which the path may be gone, and what replaces it."""
        path = self.request().path
        return f"{path} is deprecated and may be removed any time after July 1, 2026: {SUCCESSOR}"

    def parse(self, response: Response) -> ServiceTokenIssued:
        """Return the token. Raises BadAnswer."""
        other = response.decode(dict[str, JSONValue])
        token = other.pop("token", None)
        if not isinstance(token, str):
            raise BadAnswer("the answer holds no token")
        for value in other.values():
            if isinstance(value, str) and "PRIVATE KEY" in value:
                Secret(value)  # known from here on, and hidden wherever it turns up
        return ServiceTokenIssued(Secret(token), other)

    def advice(self, status: int, code: int | None) -> str:  # noqa: ARG002 - the base's
        """Explain the absence of the path, and who may make a service key."""
        if status in {404, 410}:
            return GONE
        if status == 403:
            return (
                "making a service key needs a Pro or Enterprise plan and the team owner role; "
                + SUCCESSOR
            )
        return ""


@dataclass(frozen=True, slots=True)
class FetchServiceToken(_ServiceTokenCall):
    """The service token of the team: deprecated (clause D9.4)."""

    def request(self) -> Request:
        """Return what to send."""
        return Request("GET", "/v1/account/service-token")


@dataclass(frozen=True, slots=True)
class MakeServiceKeyAndToken(_ServiceTokenCall):
    """A new service key, which ends the old one, and a token signed with it: deprecated."""

    repeatable = False

    def request(self) -> Request:
        """Return what to send."""
        return Request("POST", "/v1/account/service-key-and-token")
