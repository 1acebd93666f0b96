"""The project key: pushes data, and opens the few endpoints that say so (clause O4.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from agent.call import Call, Scheme
from agent.config.secrets import Secret
from agent.errors import ConfigError, WrongCredential

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# The short paths, without organization and project: what a device with little memory uses.
_SHORT_PATHS = re.compile(
    r"/api/v0/(events|chunks/[^/?]+|upload(_multipart)?(/[a-z_-]+)?|device-config"
    r"|releases/latest(/url)?|queue/[^/?]+)"
)


class ProjectKey:
    """Sent under a header whose name is configuration: real services name it after themselves."""

    scheme: ClassVar[Scheme] = Scheme.PROJECT_KEY
    warning: ClassVar[str] = ""

    def __init__(self, secret: Secret, *, header: str = "Service-Project-Key") -> None:
        if not _TOKEN.fullmatch(header):
            raise ConfigError(f"account.project_key_header: {header!r} is no header name")
        self._secret = secret
        self._header = header.lower()

    async def headers(self, call: Call[Any]) -> Mapping[str, str]:
        """Return the header. Raises WrongCredential for a path that takes no project key."""
        path = call.request().path
        if not _SHORT_PATHS.fullmatch(path):
            raise WrongCredential(
                f"{type(call).__name__} takes no project key: {path} is none of the paths for it"
            )
        return {self._header: self._secret.reveal()}

    def forget(self) -> bool:
        """Return False: the key is cycled in the project's settings, not here."""
        return False

    def advice(self, status: int) -> str:
        """Return what to check after a refusal."""
        if status not in {401, 403}:
            return ""
        return (
            f"check the project key, which ends at once when it is cycled (`cellagent observe "
            f"project-key`), and the header's name in account.project_key_header ({self._header})"
        )
