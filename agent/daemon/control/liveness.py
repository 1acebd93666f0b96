"""Whether an agent answers at all: a stopped or hung one is told from one that is slow."""

import asyncio
import socket
import struct
import sys
from pathlib import Path

from agent.daemon.control.socket import ControlSocket
from agent.errors import ResourceUnavailable

SILENCE_S = 0.5
"""Seconds without an answer after which the agent is asked whether it is there."""
ANSWER_S = 2.0
"""Seconds that it has to say so: its event loop does nothing else for longer."""
_NO_REQUEST = b'{"do": ""}\n'  # every version refuses it at once
_STOPPED, _TRACED = "T", "t"  # a process that is traced is so for moments, and goes on
_PEER = struct.Struct("3i")  # pid, uid, gid


class NotAnswering(ResourceUnavailable):
    """The agent runs and answers nothing: its process is stopped, or its event loop hangs."""

    kind = "not-answering"


async def watch(control_socket: ControlSocket) -> None:
    """Return never while the agent answers, or has ended. Raises NotAnswering."""
    while True:
        await asyncio.sleep(SILENCE_S)
        await answers(control_socket, ANSWER_S)


async def answers(control_socket: ControlSocket, timeout_s: float | None = None) -> None:
    """Return once the agent answers, or has ended.

    Raises NotAnswering after `timeout_s`; of one that is stopped at once. None waits without end.
    """
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await control_socket.connect()
            if timeout_s is not None and _state(_peer(writer)) == _STOPPED:
                raise TimeoutError
            writer.write(_NO_REQUEST)
            await reader.readline()
    except TimeoutError:
        raise not_answering(writer) from None
    except (OSError, ValueError, KeyError):
        return
    finally:
        if writer is not None:
            writer.transport.abort()


def not_answering(writer: asyncio.StreamWriter | None) -> NotAnswering:
    """Return the error for the agent at the other end; it names the process where that is known."""
    pid = 0 if writer is None else _peer(writer)
    named = f"the running agent (PID {pid})" if pid else "the running agent"
    if _state(pid) in {_STOPPED, _TRACED}:
        return NotAnswering(
            f"{named} is stopped (SIGSTOP or Ctrl-Z): it answers nothing",
            hint=f"let it go on: `kill -CONT {pid}`",
        )
    end = f"end it with `kill -9 {pid}`" if pid else "end its process"
    return NotAnswering(
        f"{named} hangs: it has answered nothing for {ANSWER_S:g} s",
        hint=f"{end}, then `cellagent run`: nothing that it stored is lost",
    )


def _peer(writer: asyncio.StreamWriter) -> int:
    """Return the PID of the process that listens, 0 where the system does not tell."""
    connected = writer.get_extra_info("socket")
    if sys.platform == "win32":
        return 0
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None or connected.family != socket.AF_UNIX:
        return 0
    data = connected.getsockopt(socket.SOL_SOCKET, option, _PEER.size)
    return int(_PEER.unpack(data)[0])


def _state(pid: int) -> str:
    """Return the letter that the system has for the state of a process, "" where it tells none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(") ")[2][:1]
    except OSError:
        return ""
