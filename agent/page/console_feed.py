"""The console of one kit as the page keeps it: the newest lines, at most LIMIT bytes of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agent.console.line_classifier import ConsoleItem, OverlongLine
from agent.console.log_line import LogLine
from agent.daemon.control import protocol
from agent.daemon.control.client import AgentConnection, open_request
from agent.daemon.control.socket import ControlSocket
from agent.errors import AgentError
from agent.page.markup import LONGEST

LIMIT = 256 * 1024
"""Bytes of text that are kept of a kit."""
RETRY_S = 1.0
_ROOM = 64  # characters, for what is said of a line that is cut
_LONGEST_MESSAGE = 32 * 1024 * 1024  # bytes: a core dump of 16 MiB as base64


@dataclass(frozen=True, slots=True)
class ConsoleLine:
    """A line, numbered from 1; `level` is error, warning, info, debug, note, or "" for none."""

    number: int
    at: datetime
    level: str
    text: str


class ConsoleFeed:
    """Follows the console of one kit over the agent, which may end and come back."""

    def __init__(
        self,
        control_socket: ControlSocket,
        kit: str,
        now: Callable[[], datetime],
        on_change: Callable[[], None],
    ) -> None:
        self.lines: deque[ConsoleLine] = deque()
        self.trouble = ""
        """Why nothing is received; "" while it is."""
        self._socket = control_socket
        self._kit = kit
        self._now = now
        self._on_change = on_change
        self._bytes = 0
        self._count = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                request = protocol.ConsoleRequest(self._kit)
                async with open_request(
                    self._socket, request, longest_answer=_LONGEST_MESSAGE
                ) as connection:
                    await self._follow(connection)
            except AgentError as error:
                self._set_trouble(str(error))
            await asyncio.sleep(RETRY_S)

    async def _follow(self, connection: AgentConnection) -> None:
        await connection.answer(protocol.ConsoleAnswer)
        self._set_trouble("")
        while True:
            self.take(await connection.notice())

    def take(self, notice: protocol.Notice | ConsoleItem) -> None:
        """Take what the agent says of the console."""
        match notice:
            case LogLine():
                self._add(notice.level or "", notice.line or notice.text)
            case OverlongLine():
                head = notice.text.decode("utf-8", "backslashreplace")
                self._add("note", f"{head} … a line of {notice.size} bytes")
            case protocol.LostNotice():
                self._add("note", f"{notice.lost} lines were not read in time")
            case protocol.DumpNotice(coming=coming) if coming:
                self._add("note", "a core dump is coming; its lines are taken out and kept")
            case protocol.TroubleNotice():
                self._set_trouble(notice.trouble)

    def _set_trouble(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._on_change()

    def _add(self, level: str, text: str) -> None:
        self._count += 1
        if len(text) > LONGEST:
            text = f"{text[: LONGEST - _ROOM]} … a line of {len(text)} characters"
        self.lines.append(ConsoleLine(self._count, self._now(), level, text))
        self._bytes += _size(self.lines[-1])
        while self._bytes > LIMIT:
            self._bytes -= _size(self.lines.popleft())
        self._on_change()


def _size(line: ConsoleLine) -> int:
    return len(line.text.encode(errors="replace"))
