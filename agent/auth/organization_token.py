"""The organization auth token: one for both services (clauses D10.7, O4.2, O4.6)."""

from __future__ import annotations

from typing import ClassVar

from agent.auth.bearer import BearerToken
from agent.call import Scheme


class OrganizationToken(BearerToken):
    """A token of one organization, for all its projects; the advised one for agents and CI."""

    scheme = Scheme.ORGANIZATION_TOKEN
    refused: ClassVar[dict[int, str]] = {
        401: (
            "check that the token is whole (it is shown once, when an organization admin makes "
            "it), not deleted, and of the organization named in account.organization; and that "
            "account.project is spelt as in the web address of the project"
        ),
        403: (
            "the token is good: what it asks for is not enabled in this project, or is beyond a "
            "project manager"
        ),
    }
