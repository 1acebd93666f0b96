"""Both services in a test: addresses, credentials, faults, and the requests that they saw."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.config.standin_profile import write_standin_profile
from agent.errors import UsageError
from agent.standin.fault_grammar import FaultMistake
from agent.standin.faults import active_faults, set_faults
from agent.standin.ready_line import ready_line
from agent.standin.serve import serving
from agent.standin.state import open_cloud
from agent.testing.loop_thread import LoopThread

PROFILE = "standin"


@dataclass(slots=True)
class SeenRequest:
    """A request that the stand-in answered. `status` is None while it has not."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytearray = field(default_factory=bytearray)
    status: int | None = None

    def json(self) -> Any:
        """Return the body, decoded. Raises msgspec.DecodeError."""
        return msgspec.json.decode(bytes(self.body))


class StandInCloud:
    """The stand-in cloud of one test: nothing of it is left for the next."""

    def __init__(self, folder: Path, faults: Sequence[str], thread: LoopThread) -> None:
        self._thread = thread
        self._stack = contextlib.AsyncExitStack()
        self._cloud = open_cloud()
        self.faults = list(faults)
        self.seen: list[SeenRequest] = []
        """What was asked of it, the oldest first."""
        thread.call(self._serve())
        ready: dict[str, Any] = dict(ready_line(self._cloud, folder))
        self.urls: Mapping[str, str] = ready["urls"]
        """The address of each host by its name: device_cloud, api, chunks, ingress, files, …"""
        self.credentials: Mapping[str, str] = ready["credentials"]
        """Made-up secrets by their names: api_key, organization_auth_token, project_key, …"""
        file = write_standin_profile(PROFILE, ready, file=folder / "config.toml")
        self.environment: Mapping[str, str] = {
            "CELLAGENT_CONFIG": str(file),
            "CELLAGENT_PROFILE": PROFILE,
            "CELLAGENT_STATE_DIR": str(folder / "state"),
        }
        """What a `cellagent` command of the test is to have in its environment."""

    async def _serve(self) -> None:
        await self._stack.enter_async_context(serving(self._cloud, around=self._watched))

    @property
    def faults(self) -> list[str]:
        """The faults that are on, as `cloud serve --fault` takes them; set anew as a whole."""
        return active_faults(self._cloud)

    @faults.setter
    def faults(self, faults: Sequence[str]) -> None:
        try:
            set_faults(self._cloud, faults)
        except FaultMistake as error:
            raise UsageError(str(error)) from None

    def requests(self, method: str, path: str) -> list[SeenRequest]:
        """Return the requests of a method whose path ends in `path`."""
        return [one for one in self.seen if one.method == method and one.path.endswith(path)]

    def advance(self, seconds: float) -> None:
        """Let the services' time go on: what they do later is done, what expires has expired."""
        self._cloud.clock.advance(seconds)

    def close(self) -> None:
        """Stop serving."""
        self._thread.call(self._stack.aclose())

    def _watched(self, app: ASGIApp) -> ASGIApp:
        """Return an application that notes what `app` is asked."""

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
            query = scope["query_string"].decode("latin-1")
            seen = SeenRequest(scope["method"], scope["path"], query, headers)
            self.seen.append(seen)

            async def received() -> Message:
                message = await receive()
                seen.body.extend(message.get("body", b""))
                return message

            async def sent(message: Message) -> None:
                seen.status = message.get("status", seen.status)
                await send(message)

            await app(scope, received, sent)

        return watched
