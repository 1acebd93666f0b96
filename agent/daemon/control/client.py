"""Requests of commands to the running agent, over its control socket."""

import asyncio
import contextlib
import os
import shlex
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import msgspec

import agent
from agent.console.line_classifier import ConsoleItem
from agent.daemon.control import protocol
from agent.daemon.control.liveness import ANSWER_S, not_answering, watch
from agent.daemon.control.socket import ControlSocket, control_socket_of, control_sockets, hang_up
from agent.errors import AgentError, ResourceUnavailable
from agent.tasks import first_of

_ANSWER_S = 20.0
LONGEST_ANSWER = 4 * 1024 * 1024
TURN_S = 130.0
"""Seconds to wait for a hold or a lease; the agent itself gives up earlier, and says why."""
T = TypeVar("T")


class NotRunning(ResourceUnavailable):
    """No agent runs, or none of this profile."""

    kind = "not-running"


class NotUnderstood(ResourceUnavailable):
    """The running agent answers what this command cannot read: it is of another version."""

    kind = "not-understood"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the answer of the running agent is not one that cellagent {agent.__version__} "
            f"understands: {reason}",
            hint="they are of different versions: end the agent, and start it again",
        )


class AgentRefused(AgentError):
    """The running agent refused a request; exit code and kind are those of its error."""

    def __init__(self, error: protocol.ErrorObject) -> None:
        super().__init__(error.message, hint=error.hint)
        self.exit_code = error.exit  # type: ignore[misc]
        self.kind = error.kind  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class AgentConnection:
    """One request and its answers, from an agent that is watched while it owes one."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    control_socket: ControlSocket

    async def answer(self, kind: type[T], timeout_s: float | None = _ANSWER_S) -> T:
        """Return the next answer.

        Raises AgentRefused, NotUnderstood, NotRunning at the end, NotAnswering of one that hangs.
        """
        message = await self.message(timeout_s)
        with _understood():
            return protocol.convert(message, kind)

    async def notice(self) -> protocol.Notice | ConsoleItem:
        """Return the next message to a window. Raises what `answer` raises."""
        message = await self.message(None)
        with _understood():
            return protocol.notice_of(message)

    def send(self, message: msgspec.Struct) -> None:
        """Send one more message after the request."""
        self.writer.write(protocol.encode(message))

    def fileno(self) -> int:
        """Return its file descriptor: who inherits that keeps it open after this process."""
        number: int = self.writer.get_extra_info("socket").fileno()
        return number

    def end(self) -> None:
        """End what is sent, which ends it for the agent, whoever else has it open."""
        with contextlib.suppress(OSError):
            self.writer.write_eof()

    async def message(self, timeout_s: float | None) -> dict[str, object]:
        """Return the next message that is no error; None waits for it without end."""
        line = b""

        async def read() -> None:
            nonlocal line
            with _understood():  # a line can be too long
                line = await self.reader.readline()

        try:
            async with asyncio.timeout(timeout_s):
                await first_of(read(), watch(self.control_socket))
        except TimeoutError:
            raise NotRunning(
                f"the running agent did not do it within {timeout_s:g} s",
                hint="`cellagent status` shows what it does; try again",
            ) from None
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise NotRunning("the agent ended")
        with _understood():
            message = protocol.parse(line)
            if "error" in message:
                raise AgentRefused(protocol.convert(message, protocol.ErrorAnswer).error)
            return message


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Raise NotUnderstood for what is not of the protocol."""
    try:
        yield
    except ValueError as error:
        raise NotUnderstood(str(error)) from None


@contextlib.asynccontextmanager
async def open_request(
    socket: ControlSocket, request: protocol.Request, *, longest_answer: int = LONGEST_ANSWER
) -> AsyncIterator[AgentConnection]:
    """Connect and send a request; an answer has at most `longest_answer` bytes.

    Raises NotRunning, NotAnswering.
    """
    message: dict[str, object] = msgspec.to_builtins(request)
    try:
        async with asyncio.timeout(ANSWER_S):
            if not socket.is_socket:
                message["token"] = socket.read_port()[1]
            reader, writer = await socket.connect(limit=longest_answer)
    except TimeoutError:
        raise not_answering(None) from None
    except PermissionError as error:
        path = shlex.quote(os.fspath(socket.path))
        raise NotRunning(
            f"this user may not ask the agent at {socket.path}",
            hint=f"run this as the user who started it: `sudo ls -l {path}` shows who that is",
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise NotRunning("the agent does not run", hint=_reachable_agents(socket)) from error
    try:
        writer.write(protocol.line_of(message))
        yield AgentConnection(reader, writer, socket)
    finally:
        await hang_up(writer)


def _reachable_agents(socket: ControlSocket) -> str:
    """Return the hint for a socket without an agent: other profiles' agents, or to start one."""
    known = control_sockets(socket.path.parent.parent)
    others = [other for other in known if other != socket and other.is_listening()]
    if others:
        names = ", ".join(
            f"`--profile {shlex.quote(unquote(other.path.stem))}`" for other in others
        )
        return f"is another meant? {names}; else start it: `cellagent run`"
    return "start it: `cellagent run`"


async def send_request(
    state_dir: Path, profile: str, request: protocol.Request, kind: type[T]
) -> T:
    """Send a request to the agent of a profile; return its answer, which is of a kind.

    Raises NotRunning, AgentRefused, NotUnderstood.
    """
    return await ask(control_socket_of(state_dir, profile), request, kind)


async def ask(socket: ControlSocket, request: protocol.Request, kind: type[T]) -> T:
    """Send a request to who listens on a socket; as `send_request`."""
    async with open_request(socket, request) as connection:
        return await connection.answer(kind)


def process_name() -> str:
    """Return the name of this process for others: program and PID."""
    name = Path(sys.argv[0]).name
    return f"{'cellagent' if name in {'', '__main__.py'} else name} (PID {os.getpid()})"
