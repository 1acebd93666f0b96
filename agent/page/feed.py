"""The newest status of the running agent, from its control socket; the agent may end and come back.

Of states that follow each other quickly only the last is kept: a reader gets the newest, no queue.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from agent.daemon.control.client import open_request
from agent.daemon.control.protocol import StatusAnswer, WatchRequest
from agent.daemon.control.socket import ControlSocket
from agent.daemon.snapshot import AgentStatus, KitStatus, State
from agent.errors import AgentError
from agent.tasks import Changing

RETRY_S = 1.0
"""Seconds between two tries to reach an agent that is not there."""


class AgentFeed(Changing):
    """What is known of the agent: its newest status, and since when it is not heard."""

    def __init__(
        self, control_socket: ControlSocket, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        super().__init__()
        self.status: AgentStatus | None = None
        """The newest; with all states unknown while the agent is not heard. None: never heard."""
        self.lost_at: datetime | None = None
        """Since when the agent is not heard; None while it is."""
        self.trouble = ""
        """Why it is not heard."""
        self.now = now
        self._socket = control_socket
        self._kits: dict[str, KitStatus] = {}

    async def run(self) -> None:
        """Follow the agent until cancelled."""
        while True:
            try:
                async with open_request(
                    self._socket, WatchRequest(changed_only=True)
                ) as connection:
                    self._kits.clear()
                    while True:
                        self._take(await connection.answer(StatusAnswer, None))
            except AgentError as error:
                self._lose(error)
            await asyncio.sleep(RETRY_S)

    def _take(self, answer: StatusAnswer) -> None:
        # A kit that has not changed is the same object: it is not painted again.
        known = {**self._kits, **{kit.name: kit for kit in answer.status.kits}}
        self._kits = {name: known[name] for name in answer.names or [] if name in known}
        kits = answer.status.kits if answer.names is None else list(self._kits.values())
        self.status = msgspec.structs.replace(answer.status, kits=kits)
        self.lost_at, self.trouble = None, ""
        self.notify_changed()

    def _lose(self, error: AgentError) -> None:
        if self.lost_at is None or self.trouble != str(error):
            self.lost_at, self.trouble = self.lost_at or self.now(), str(error)
            if self.status is not None:
                self.status = _unheard(self.status, self.lost_at)
            self.notify_changed()


def _unheard(status: AgentStatus, at: datetime) -> AgentStatus:
    """Return a status whose values are kept, and of which no state is known any more since `at`."""
    changed = msgspec.structs.replace
    kits = [
        changed(kit, state=State.UNKNOWN, concerns=[changed(one, since=at) for one in kit.concerns])
        for kit in status.kits
    ]
    return changed(status, kits=kits)
