"""The deprecated evaluation token: location only, for a trial of 30 days (clause D10.6)."""

from __future__ import annotations

from typing import ClassVar

from agent.auth.bearer import BearerToken
from agent.call import Scheme


class EvaluationToken(BearerToken):
    """Accepted by location calls until 30 days after it was generated; none are made any more."""

    scheme = Scheme.EVALUATION_TOKEN
    warning = (
        "evaluation tokens are deprecated and end 30 days after they were generated: use an "
        "organization auth token, or a service key"
    )
    refused: ClassVar[dict[int, str]] = {
        401: (
            "its 30-day trial may be over, and no new one can be made: sign with a service key "
            "(credentials.service_key_files), or use an organization auth token"
        ),
        403: warning,
    }
