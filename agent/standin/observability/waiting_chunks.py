"""Messages that came only in part, and outlive a restart: their chunks are rows of the store.

Table `observability/waiting-chunks`: "organization/project/serial/number" -> {at, raw}, in the
order in which they came. A message that is whole, broken or given up takes its rows with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.chunks import Reassembler

if TYPE_CHECKING:
    from agent.standin.chunks import Received
    from agent.standin.observability.project import Project
    from agent.standin.state import Cloud


class WaitingChunks:
    """The one reassembler of a cloud, and what it would have to be told again."""

    def __init__(self, cloud: Cloud) -> None:
        self._reassembler = Reassembler()
        self._table = cloud.table("observability/waiting-chunks")
        self._rows: dict[str, list[str]] = {}
        self._last = 0
        for row, chunk in self._table.items():
            sender, _, number = row.rpartition("/")
            self._last = int(number)
            self._rows.setdefault(sender, []).append(row)
            self._reassembler.receive(sender, chunk["raw"], chunk["at"])

    def receive(self, project: Project, serial: str, raw: bytes) -> Received:
        """Take the next chunk of a device."""
        sender = f"{project.organization}/{project.slug}/{serial}"
        received = self._reassembler.receive(sender, raw, project.now)
        for other in received.over:
            for row in self._rows.pop(other, ()):
                self._table.delete(row)
        if received.waits:
            self._last += 1
            row = f"{sender}/{self._last}"
            self._rows.setdefault(sender, []).append(row)
            self._table.put(row, {"at": project.now, "raw": raw})
        return received


def waiting_chunks(cloud: Cloud) -> WaitingChunks:
    """Return the one of a cloud, made with its first chunk."""
    found: WaitingChunks | None = cloud.rooms.get("observability chunks")
    if found is None:
        found = cloud.rooms["observability chunks"] = WaitingChunks(cloud)
    return found
