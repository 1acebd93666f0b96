"""Keeps a short-lived token (clause D10.2) and has it made anew before it ends; a device's own."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping

from agent.auth.credential import Credential
from agent.call import Call, Scheme

LIFE_S = 600
"""How long a token is good; the vendor's clients take the same."""
RENEW_AFTER_S = 0.8 * LIFE_S
NOTABLE_SKEW_S = 60.0
"""What servers commonly allow a token's times to be off by."""


class CachedToken:
    """A token that is made when it is first needed and again at 80 % of its life."""

    def __init__(
        self, make: Callable[[], Awaitable[str]], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._make = make
        self._monotonic = monotonic
        self._token = ""
        self._renew_at = 0.0
        self._making = asyncio.Lock()

    async def get(self) -> str:
        """Return the token, making it if need be; callers at the same time share one."""
        async with self._making:
            if not self._token or self._monotonic() >= self._renew_at:
                # Its life is counted from before it was made, by a clock that nobody sets.
                asked = self._monotonic()
                self._token = await self._make()
                self._renew_at = asked + RENEW_AFTER_S
        return self._token

    def drop(self) -> None:
        """Drop the token: the next `get` makes a new one."""
        self._token = ""


class DeviceToken(Credential):
    """A token that a device's key signs, by `make` (clause D10.3)."""

    scheme = Scheme.DEVICE_JWT

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.token = CachedToken(self.make, monotonic=monotonic)

    async def headers(self, call: Call[object]) -> Mapping[str, str]:  # noqa: ARG002 - the base's
        """Return the Authorization header. Raises ConfigError, CredentialError, at.AtError."""
        return {"authorization": f"Bearer {await self.token.get()}"}

    def forget(self) -> bool:
        """Drop the token; the next is made anew."""
        self.token.drop()
        return True

    @abstractmethod
    async def make(self) -> str:
        """Return a token that was made now. Raises ConfigError, CredentialError, at.AtError."""
