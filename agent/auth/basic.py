"""Email with a password or a user API key, as HTTP Basic (clauses O4.1, O4.5)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, ClassVar

from agent.call import Call, Scheme
from agent.config.secrets import Secret
from agent.errors import ConfigError
from agent.redact import hide


class Basic:
    """A user's own access to the observability service.

    `unattended` adds a warning about a user's key: no person is there to log in again.
    """

    scheme: ClassVar[Scheme] = Scheme.BASIC

    def __init__(
        self, email: str, secret: Secret, *, is_password: bool, unattended: bool = False
    ) -> None:
        if not email or ":" in email or not email.isprintable():
            raise ConfigError(f"account.email: {email!r} cannot be used to log in")
        pair = f"{email}:{secret.reveal()}".encode()
        self._header = f"Basic {b64encode(pair).decode('ascii')}"
        hide(self._header.removeprefix("Basic "))
        self._is_password = is_password
        self._unattended = unattended

    def __repr__(self) -> str:
        return f"Basic({'password' if self._is_password else 'user API key'})"

    @property
    def warning(self) -> str:
        """A warning to log before it is used, "" where there is none."""
        if self._is_password:
            return (
                "a password opens the whole account: use a user API key "
                "(CELLAGENT_USER_API_KEY), or an organization auth token for machines"
            )
        if not self._unattended:
            return ""
        return (
            "a user API key stops working when its user leaves the organization: use an "
            "organization auth token (CELLAGENT_ORG_TOKEN) for machines"
        )

    async def headers(self, call: Call[Any]) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's
        """Return the Authorization header."""
        return {"authorization": self._header}

    def forget(self) -> bool:
        """Return False: nothing was made here, so nothing can be renewed."""
        return False

    def advice(self, status: int) -> str:
        """Return what to check after a refusal."""
        if status not in {401, 403}:
            return ""
        return (
            "check email and key; a user key does not open an organization that requires single "
            "sign-on, and it stops when the user is removed from the organization: an "
            "organization auth token has neither limit"
        )
