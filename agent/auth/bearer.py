"""What the tokens have in common that are sent as they were issued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.call import Call, Scheme
    from agent.config.secret import Secret


@dataclass(frozen=True, slots=True)
class BearerToken:
    """`Authorization: Bearer`, with a token that is neither made nor renewed here."""

    secret: Secret

    scheme: ClassVar[Scheme]
    warning: ClassVar[str] = ""
    """What its user should know before using it, "" where there is nothing."""
    refused: ClassVar[Mapping[int, str]] = {}
    """Status -> what to check after this refusal."""

    async def headers(self, call: Call[Any]) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's
        """Return the Authorization header."""
        return {"authorization": f"Bearer {self.secret.reveal()}"}

    def forget(self) -> bool:
        """Return False: nothing was made here, so nothing can be renewed."""
        return False

    def advice(self, status: int) -> str:
        """Return what to check after a refusal."""
        return self.refused.get(status, "")
