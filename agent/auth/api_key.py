"""The API key of a user in a team at the device cloud: "Simple Token" (clause D10.1)."""

from __future__ import annotations

from typing import ClassVar

from agent.auth.bearer import BearerToken
from agent.call import Scheme


class ApiKey(BearerToken):
    """A key that authorises by its user's role; another one in each team."""

    scheme = Scheme.API_KEY
    refused: ClassVar[dict[int, str]] = {
        401: (
            "look at the user account page: a regenerated key replaces this one, which then "
            "lives for up to 60 minutes; and each team has a key of its own"
        ),
        403: "the key is good, its user's role in this team may not do this: ask a team owner",
    }
