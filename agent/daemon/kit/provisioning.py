"""A kit that takes its provisioning commands: the agent is its host, and says how that ended."""

import logging
from collections.abc import Callable

from agent.daemon.kit.link import KitBusy, KitLink
from agent.daemon.snapshot import Finding
from at import provisioning_host
from at.driver.modem import Modem
from at.driver.stream import Stream
from at.protocol.errors import CommandRejected, ParseError, ProvisioningFailed
from at.protocol.notices import Notice

_PATIENCE_S = 100.0
"""For whoever has the kit: its client waits 120 s for what it asked."""
_WORK = "the kit takes its provisioning commands"


class KitProvisioning:
    """Answers #XNRFPROV, whoever started it: a person, a program, or the kit's own application."""

    def __init__(self, link: KitLink, on_end: Callable[[], None]) -> None:
        """Call `on_end` when a session has ended: the credentials may be others."""
        self.is_active = False
        """Whether the functional mode is what the kit's client asks for, for now."""
        self.findings: tuple[Finding, ...] = ()
        self._link = link
        self._on_end = on_end

    async def serve(self, modem: Modem) -> None:
        """Do what the client asks, for as long as there is a link. Raises LinkLost."""
        with modem.notices(provisioning_host.NAME) as notices:
            async for first in notices:
                try:
                    await self._session(modem, notices, first)
                except (ProvisioningFailed, ParseError, CommandRejected, KitBusy) as error:
                    self.findings = (Finding(str(error), error.hint or None),)
                else:
                    self.findings = ()
                    self._link.concern.log(
                        logging.INFO, "the kit has no provisioning commands left to take"
                    )
                self._on_end()

    async def _session(self, modem: Modem, notices: Stream[Notice], first: Notice) -> None:
        if provisioning_host.event_of(first) not in provisioning_host.DUTIES:
            await provisioning_host.follow(modem, notices, first)
            return
        async with self._link.exclusive(_WORK, patience_s=_PATIENCE_S):
            self.is_active = True
            try:
                await provisioning_host.follow(modem, notices, first)
            finally:
                self.is_active = False
