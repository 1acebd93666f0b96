"""Tokens that are sent as they were issued: one class a kind, its warnings and advice as data."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.auth.credential import Credential
from agent.call import Call, Scheme
from agent.config.secrets import Secret


@dataclass(frozen=True, slots=True)
class BearerToken(Credential):
    """`Authorization: Bearer`, with a token that is neither made nor renewed here."""

    secret: Secret

    async def headers(self, call: Call[object]) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's
        """Return the Authorization header."""
        return {"authorization": f"Bearer {self.secret.reveal()}"}


class ApiKey(BearerToken):
    """A key that authorises by its user's role; another one in each team."""

    scheme = Scheme.API_KEY
    refused: Mapping[int, str] = {
        401: (
            "look at the user account page: a regenerated key replaces this one, which then "
            "lives for up to 60 minutes; and each team has a key of its own"
        ),
        403: "the key is good, its user's role in this team may not do this: ask a team owner",
    }


class EvaluationToken(BearerToken):
    """Accepted by location calls until 30 days after it was generated; none are made any more."""

    scheme = Scheme.EVALUATION_TOKEN
    warning = (
        "evaluation tokens are deprecated and end 30 days after they were generated: use an "
        "organization auth token, or a service key"
    )
    refused: Mapping[int, str] = {
        401: (
            "check that the token is whole; its 30-day trial may have ended, and no new one can be "
            "made: sign with a service key (credentials.service_key_files.location), use an "
            "organization auth token, or have the kit sign (credentials.prefer = device-jwt)"
        ),
        403: warning,
    }


class OrganizationToken(BearerToken):
    """A token of one organization, for all its projects; the advised one for agents and CI."""

    scheme = Scheme.ORGANIZATION_TOKEN
    refused: Mapping[int, str] = {
        401: (
            "check that the token is whole (it is shown once, when an organization admin makes "
            "it; another where it was deleted), and of the organization named in "
            "account.organization; and that account.project is spelt as in the web address of "
            "the project"
        ),
        403: (
            "the token is good: what it asks for is not enabled in this project, or is beyond a "
            "project manager"
        ),
    }


class ServiceToken(BearerToken):
    """Accepted by the legacy location paths for as long as they last."""

    scheme = Scheme.SERVICE_TOKEN
    warning = (
        "service tokens are deprecated: use an organization auth token (CELLAGENT_ORG_TOKEN) with "
        "account.organization and account.project"
    )
    refused: Mapping[int, str] = {
        401: f"the service token is not whole, has expired or was replaced; {warning}",
        403: warning,
    }
