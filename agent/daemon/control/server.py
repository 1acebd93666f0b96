"""The agent's side of the control socket: status, reload, outbox, hold, lease, console.

What is said is in `agent.daemon.control.protocol`. A hold, a lease and a window on a console
(`agent.daemon.control.console`) end when the connection does.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from agent.daemon.control import protocol
from agent.daemon.control.console import show_console
from agent.daemon.control.request_server import Client, RequestServer
from agent.daemon.control.socket import ControlSocket
from agent.daemon.kit.kit import KitAgent
from agent.daemon.kit.link import hold, lease
from agent.daemon.outbox_delivery import OutboxDelivery
from agent.daemon.recent import RecentMoments
from agent.daemon.snapshot import AgentStatus
from agent.daemon.status import StatusRegistry
from agent.outbox import queries
from agent.tasks import first_of, wait_for_event

_POLL_S = 1.0  # the longest between two states for `watch`: the outbox signals no change
_MOST_MOMENTS = 100  # in one message
_PAGE_PAUSE_S = 0.5  # the shortest between two states for a page
_PAUSE_S = 0.2  # the shortest between two states for `watch`
_LONGEST_NAME = 80  # characters of the name of a program, for `status`
_MOST_LISTED = 1000  # items of the outbox, unless the request says how many


class Controlled(Protocol):
    """The part of the agent that requests may use."""

    registry: StatusRegistry
    delivery: OutboxDelivery

    async def status(self) -> AgentStatus:
        """Return what `status --json` prints; it changes as the agent goes on."""

    async def reload(self) -> None:
        """Read the profile again. Raises ConfigError."""

    def kit(self, name: str) -> KitAgent:
        """Return the kit of a name or a port. Raises UsageError."""

    @property
    def page_link(self) -> Callable[[], str] | None:
        """Returns a new link to the page that is served; None where none is."""


class ControlServer(RequestServer):
    """Does what the requests on an agent's control socket ask for."""

    def __init__(self, agent: Controlled, control_socket: ControlSocket) -> None:
        super().__init__(control_socket, self._do)
        self._agent = agent

    async def _do(self, request: protocol.AnyRequest, client: Client) -> None:
        match request:
            case protocol.StatusRequest():
                await client.send(protocol.StatusAnswer(True, status=await self._agent.status()))
            case protocol.WatchRequest(changed_only=changed_only):
                send = self._send_changed_kits if changed_only else self._send_changes
                await first_of(client.reader.read(), send(client))
            case protocol.ReloadRequest():
                await self._agent.reload()
                await client.send(protocol.Answer(True))
            case protocol.OutboxRequest():
                found = await self._query_outbox(request)
                await client.send(protocol.OutboxAnswer(True, outbox=found))
            case protocol.HoldRequest(kit=name, who=program):
                kit = self._agent.kit(name)
                async with hold(kit.link, program[:_LONGEST_NAME]):
                    answer = protocol.HoldAnswer(True, kit=kit.name, port=kit.settings.port)
                    await client.send(answer)
                    await client.reader.read()  # until the client closes
            case protocol.LeaseRequest(kit=name, who=program):
                kit = self._agent.kit(name)
                await lease(kit.link, kit.name, client, program[:_LONGEST_NAME])
            case protocol.ConsoleRequest(kit=name):
                kit = self._agent.kit(name)
                await show_console(kit, self._agent.registry, client.reader, client.writer)
            case protocol.RecentRequest(kit=name):
                recent = self._agent.kit(name).recent
                await first_of(client.reader.read(), _send_moments(recent, client))
            case protocol.PageRequest():
                link = self._agent.page_link
                await client.send(protocol.PageAnswer(True, link=link and link()))

    async def _send_changes(self, client: Client) -> None:
        sent = b""
        while True:
            # Of before the status is read: no later change is missed.
            change = self._agent.registry.next_change
            line = protocol.encode(protocol.StatusAnswer(True, status=await self._agent.status()))
            if line != sent:
                sent = line
                await client.send_line(line)
            await wait_for_event(change, _POLL_S)
            await asyncio.sleep(_PAUSE_S)

    async def _send_changed_kits(self, client: Client) -> None:
        """Send what a page shows: an agent has many kits, and few of them change at a time."""
        sent: dict[str, bytes] = {}
        while True:
            change = self._agent.registry.next_change  # of before the status is read
            status = await self._agent.status()
            names = [kit.name for kit in status.kits]
            found = {kit.name: _encoded(kit) for kit in status.kits}
            kits = [kit for kit in status.kits if found[kit.name] != sent.get(kit.name)]
            status = msgspec.structs.replace(status, kits=kits)
            found[""] = _encoded(msgspec.structs.replace(status, kits=[]))  # what all share
            if found != sent:
                answer = protocol.StatusAnswer(True, status=status, names=names)
                await client.send_line(_encoded(answer) + b"\n")
            sent = found
            await wait_for_event(change, _POLL_S)
            await asyncio.sleep(_PAGE_PAUSE_S)

    async def _query_outbox(self, request: protocol.OutboxRequest) -> queries.Result:
        """List, drop or flush for a command that cannot open the outbox itself."""
        outbox, parked = self._agent.delivery.outbox, request.parked is True
        if request.what == "list":
            limit = _MOST_LISTED if request.limit is None else request.limit
            return await outbox.atransact(lambda store: queries.list_items(store, limit))
        if request.what == "drop":
            ids, everything = request.ids or [], request.everything is True
            dropped = await outbox.atransact(
                lambda store: queries.drop_items(store, ids, parked=parked, everything=everything)
            )
            self._agent.delivery.wake()  # their trouble is over
            return dropped
        result = await outbox.atransact(lambda store: queries.retry_items(store, parked=parked))
        self._agent.delivery.try_now()
        return result


def _encoded(message: msgspec.Struct) -> bytes:
    """Return a message as JSON: at once, unless a port has what is no character in its name."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        return protocol.encode(message).rstrip(b"\n")


async def _send_moments(recent: RecentMoments, client: Client) -> None:
    """Send what is kept, and then what comes; a client that reads slowly misses what is dropped."""
    after = -1  # of nothing, which is told as well: who asks then knows that there is nothing yet
    while True:
        change = recent.next_change  # of before they are read: no later one is missed
        moments = recent.after(after)[:_MOST_MOMENTS]
        if moments or after < 0:
            after = moments[-1].number if moments else 0
            answer = protocol.MomentsAnswer(True, moments=moments)
            await client.send_line(_encoded(answer) + b"\n")
        else:
            await change.wait()
            await asyncio.sleep(_PAUSE_S)
