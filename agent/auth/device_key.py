"""The device's token, made with a key that this host holds (clause D10.3)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from agent.auth.jwt import KeptToken, sign, signing_key
from agent.call import Scheme
from agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.call import Call


class DeviceKey:
    """A host-made token always names the device in `sub`, and has no `aud`."""

    scheme: ClassVar[Scheme] = Scheme.DEVICE_JWT
    warning: ClassVar[str] = (
        "the device's private key lies on this host: a key made on the modem never leaves it"
    )

    def __init__(
        self,
        path: str | Path,
        device_id: str,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not device_id:
            raise ConfigError(
                "kit.device_id is not set: a token made with credentials.device_key_file has to "
                "name the device"
            )
        self._path = Path(path).expanduser()
        self._device_id = device_id
        self._now = now
        self._kept = KeptToken(self._make, monotonic=monotonic)

    async def headers(self, call: Call[Any]) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's
        """Return the Authorization header. Raises ConfigError, CredentialError."""
        return {"authorization": f"Bearer {await self._kept.get()}"}

    async def device_id(self) -> str:
        """Return the id at the device cloud."""
        return self._device_id

    def forget(self) -> bool:
        """Drop the token; the next is made anew."""
        self._kept.drop()
        return True

    def advice(self, status: int) -> str:
        """Return what to check after a refusal."""
        if status != 401:
            return ""
        return (
            f"is the public key of {self._path} registered for {self._device_id!r} "
            "(`cellagent device register-key`)?"
        )

    async def _make(self) -> str:
        return sign({"sub": self._device_id}, signing_key(self._path), self._now())
