"""A virtual kit as the far end of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.testing.choice import KitEntry
from agent.testing.sources import KitSource
from at.virtual.options import VirtualOptions
from at.virtual.server.kit_ports import KitPorts, kit_on_ports
from at.virtual.server.runner import make_modem

if TYPE_CHECKING:
    from agent.testing.choice import KitWish
    from agent.testing.loop_thread import LoopThread


class VirtualSource(KitSource):
    """A virtual kit of the test's own, on terminals."""

    def __init__(self, wish: KitWish, entry: KitEntry, thread: LoopThread) -> None:
        super().__init__(thread)
        # Of another model, what the entry says of its own does not hold.
        if wish.model and wish.model.lower() != entry.model.lower():
            entry = KitEntry(model=wish.model)
        options = VirtualOptions(
            model=entry.model,
            firmware=wish.firmware or entry.firmware,
            dialect=wish.dialect or entry.dialect,
            registered=wish.registered,
            faults=wish.faults,
            instant=True,
        )
        self.ports: KitPorts = thread.call(self._served(options))
        self._at, self._console = self.ports.at.port, self.ports.console.port

    async def _served(self, options: VirtualOptions) -> KitPorts:
        modem = make_modem(options, console_apart=True)
        return await self._opened().enter_async_context(kit_on_ports(modem, self._folder()))
