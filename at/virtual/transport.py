"""The virtual modem in memory, as a transport of the driver."""

import asyncio
from typing import Any

from at.protocol.errors import AtError, LinkLost
from at.transport.base import Receiver
from at.virtual.modem import Port, VirtualModem
from at.virtual.options import VirtualOptions
from at.virtual.server.runner import ModemRunner, make_modem
from at.virtual.state import StateFile


class VirtualTransport:
    """A transport (`at.transport.base.Transport`) with a virtual modem at its far end.

    `options` are the fields of `at.virtual.options.VirtualOptions`; `instant=True` leaves out the
    delays of a real modem. `statefile` keeps its settings, as `virtual:FILE` does; without it they
    are kept in memory. `open` switches the modem on; it stays on between `close` and `open`.
    """

    def __init__(self, *, statefile: str | None = None, **options: Any) -> None:
        self._statefile = statefile
        self.name = f"virtual:{statefile or ''}"
        self._options = VirtualOptions(**options)
        self._modem: VirtualModem | None = None
        self._flash: StateFile | None = None
        self._runner: ModemRunner | None = None
        self._receiver: Receiver | None = None

    @property
    def modem(self) -> VirtualModem:
        """The modem at the far end, switched on if it is not."""
        return self._modem or self._switch_on()

    async def open(self, receiver: Receiver) -> None:
        """Switch the modem on, or reconnect to it. Raises PortError, OptionError."""
        modem = self._switch_on()
        self._receiver = receiver
        self._runner = ModemRunner(modem, self._flash)
        self._runner.attach(Port.AT, self._deliver)
        self._runner.start()

    def _switch_on(self) -> VirtualModem:
        """Return the modem, and lock its state file until `close`."""
        try:
            if self._statefile and self._flash is None:
                self._flash = StateFile(self._statefile)
                if self._modem is not None and self._flash.load() != self._modem.kit.saved:
                    self._modem = None  # another process used it meanwhile, so it was switched off
            if self._modem is None:
                self._modem = make_modem(self._options, self._flash)
        except AtError:
            self._release_state()
            raise
        return self._modem

    def _release_state(self) -> None:
        flash, self._flash = self._flash, None
        if flash is not None:
            flash.release()

    def write(self, data: bytes) -> None:
        """Send bytes to the AT port. Raises LinkLost once closed."""
        if self._runner is None:
            raise LinkLost(f"{self.name} is closed")
        self._runner.receive(data)

    async def drain(self) -> None:
        """Return at once: the modem accepts all bytes. Raises LinkLost once closed."""
        if self._runner is None:
            raise LinkLost(f"{self.name} is closed")

    async def close(self) -> None:
        """Disconnect from the modem. Closing twice is harmless."""
        runner, self._runner = self._runner, None
        receiver, self._receiver = self._receiver, None
        if runner is not None:
            runner.stop()
        self._release_state()
        if receiver is not None:
            receiver.connection_lost(None)

    def crash(self) -> None:
        """Crash the kit's application now."""
        if self._runner is not None:
            self._runner.crash()

    def _deliver(self, data: bytes) -> None:
        # Never from within write(): a real port does not answer while it is being written to.
        asyncio.get_running_loop().call_soon(self._receive, data)

    def _receive(self, data: bytes) -> None:
        receiver = self._receiver
        if receiver is not None:
            receiver.data_received(data)
