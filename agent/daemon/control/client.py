"""Requests of commands to the running agent, over its control socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from agent.daemon.control.socket import ControlSocket, control_socket_of, control_sockets
from agent.errors import AgentError, ResourceUnavailable

_CONNECT_S = 5.0
_ANSWER_S = 20.0
LONGEST_ANSWER = 4 * 1024 * 1024
TURN_S = 100.0
"""Seconds to wait for a hold or a lease; the agent itself gives up earlier, and says why."""


class NotRunning(ResourceUnavailable):
    """No agent runs, or none of this profile."""

    kind = "not-running"


class AgentRefused(AgentError):
    """The running agent refused a request; exit code and kind are those of its error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message", "")), hint=str(error.get("try", "")))
        self.exit_code = int(error.get("exit", AgentError.exit_code))  # type: ignore[misc]
        self.kind = str(error.get("kind", AgentError.kind))  # type: ignore[misc]


class AgentConnection:
    """One request and its answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def answer(self, timeout_s: float | None = _ANSWER_S) -> dict[str, Any]:
        """Return the next answer. Raises AgentRefused, NotRunning when the agent ended."""
        try:
            async with asyncio.timeout(timeout_s):
                line = await self.reader.readline()
            answer = json.loads(line) if line else None
        except TimeoutError:
            raise NotRunning("the running agent does not answer", hint="restart it") from None
        except (OSError, ValueError):
            answer = None
        if not isinstance(answer, dict):
            raise NotRunning("the agent ended")
        if "error" in answer:
            raise AgentRefused(answer["error"])
        return answer


@contextlib.asynccontextmanager
async def open_request(
    socket: ControlSocket, *, longest_answer: int = LONGEST_ANSWER, **request: Any
) -> AsyncIterator[AgentConnection]:
    """Connect and send a request; an answer has at most `longest_answer` bytes.

    Raises NotRunning.
    """
    try:
        async with asyncio.timeout(_CONNECT_S):
            if socket.is_socket:
                opened = asyncio.open_unix_connection(socket.path, limit=longest_answer)
            else:
                port, request["token"] = socket.read_port()
                opened = asyncio.open_connection("127.0.0.1", port, limit=longest_answer)
            reader, writer = await opened
    except (OSError, ValueError, KeyError, TimeoutError) as error:
        raise NotRunning("the agent does not run", hint=_reachable_agents(socket)) from error
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        yield AgentConnection(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _reachable_agents(socket: ControlSocket) -> str:
    """Return the hint for a socket without an agent: other profiles' agents, or to start one."""
    others = [other for other in control_sockets(socket.path.parent.parent) if other != socket]
    if others:
        names = ", ".join(f"--profile {unquote(other.path.stem)}" for other in others)
        return f"is another meant? {names}; else start it: `cellagent run`"
    return "start it: `cellagent run`"


async def send_request(state_dir: Path, profile: str, **request: Any) -> dict[str, Any]:
    """Send a request to the agent of a profile; return its answer.

    Raises NotRunning, AgentRefused.
    """
    async with open_request(control_socket_of(state_dir, profile), **request) as connection:
        return await connection.answer()


def process_name() -> str:
    """Return the name of this process for others: program and PID."""
    name = Path(sys.argv[0]).name
    return f"{'cellagent' if name in {'', '__main__.py'} else name} (PID {os.getpid()})"
