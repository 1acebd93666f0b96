"""What happened to one kit lately, as the agent keeps it and as it comes."""

import asyncio
import time
from collections.abc import Callable

from agent.daemon.control import protocol
from agent.daemon.control.client import open_request
from agent.daemon.control.socket import ControlSocket
from agent.daemon.recent import RecentMoments
from agent.errors import AgentError

RETRY_S = 1.0
_LONGEST_MESSAGE = 4 * 1024 * 1024  # bytes: a hundred moments, each with four bytes a character


class MomentFeed:
    """Follows one kit over the agent, which may end and come back with moments of its own."""

    def __init__(
        self, control_socket: ControlSocket, kit: str, on_change: Callable[[], None]
    ) -> None:
        self.recent = RecentMoments(time.time)
        self.trouble = ""
        """Why nothing is received; "" while it is."""
        self.is_heard = False
        """Whether the agent has told what it keeps."""
        self._socket = control_socket
        self._request = protocol.RecentRequest(kit)
        self._on_change = on_change

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                async with open_request(
                    self._socket, self._request, longest_answer=_LONGEST_MESSAGE
                ) as connection:
                    self.recent, self.is_heard = RecentMoments(time.time), False
                    while True:
                        answer = await connection.answer(protocol.MomentsAnswer, None)
                        self.is_heard = True
                        for moment in answer.moments:
                            self.recent.put(moment)
                        self._set_trouble("")
                        self._on_change()
            except AgentError as error:
                self._set_trouble(str(error))
            await asyncio.sleep(RETRY_S)

    def _set_trouble(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._on_change()
