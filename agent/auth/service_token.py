"""The deprecated service token for the location paths without organization (clause D8.3)."""

from __future__ import annotations

from typing import ClassVar

from agent.auth.bearer import BearerToken
from agent.call import Scheme


class ServiceToken(BearerToken):
    """Accepted by the legacy location paths for as long as they last."""

    scheme = Scheme.SERVICE_TOKEN
    warning = (
        "service tokens are deprecated: use an organization auth token (CELLAGENT_ORG_TOKEN) with "
        "account.organization and account.project"
    )
    refused: ClassVar[dict[int, str]] = {
        401: f"the service token has expired or was replaced; {warning}",
        403: warning,
    }
