"""Sends the chunks of a kit through the kit itself: its own network, and its own cloud client.

#XNRFCLOUDOBSFORWARD of Serial Modem 2.0, %NRFCLOUDOBSFORWARD of the nRF93M1: one chunk at a time,
and none is kept there that could not be sent. Events and core dumps go over the host's network.
"""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence

from agent.errors import PayloadTooLarge, ResourceUnavailable
from agent.outbox.delivery_loop import Sender
from agent.outbox.items import Item, ItemKind
from at.commands.nrf93m1 import cloud as module_cloud
from at.commands.serial_modem import observability
from at.commands.serial_modem.application import SerialModemNotice
from at.commands.serial_modem.observability import ForwardResult
from at.driver.modem import Modem
from at.protocol.dialect import Dialect
from at.protocol.errors import CommandRejected, UnsafeArgument

_RESULT_S = 60.0
_NOTICE = "#XNRFCLOUDOBSFORWARD"

FindModem = Callable[[str], Awaitable["Modem | None"]]
"""Returns the modem of the kit that is this device, None where it is none of this host's."""


class ChunksByKit:
    """A sender that gives a kit its own chunks, and everything else to `host`.

    What was taken of a request that failed half-way is not given again by the next one.
    """

    def __init__(self, host: Sender, find: FindModem, project_key: str) -> None:
        self._host = host
        self._find = find
        self._project_key = project_key or None
        self._taken: set[str] = set()

    async def send(self, items: Sequence[Item]) -> None:
        """Send items of one device and kind. Raises AgentError, AtError."""
        first = items[0]
        modem = await self._find(first.device) if first.kind is ItemKind.CHUNK else None
        if modem is None:
            await self._host.send(items)
            return
        for item in items:
            if item.idempotency_key not in self._taken:
                await self._forward(modem, item.body)
                self._taken.add(item.idempotency_key)
        self._taken.difference_update(item.idempotency_key for item in items)

    async def _forward(self, modem: Modem, chunk: bytes) -> None:
        text = b64encode(chunk).decode("ascii")
        try:
            if modem.dialect.traits.is_module:
                await modem.send(module_cloud.ForwardChunk(text))
            elif modem.dialect is Dialect.SERIAL_MODEM:
                await self._forward_by_serial_modem(modem, text)
            else:
                raise ResourceUnavailable(
                    "the kit has no cloud client that takes chunks (outbox.through is kit)",
                    hint="`cellagent config set outbox.through host`",
                )
        except UnsafeArgument as long:
            raise PayloadTooLarge(f"the kit takes no such chunk: {long}", status=413) from long
        except CommandRejected as refusal:
            raise ResourceUnavailable(
                f"the kit did not send a chunk: {refusal}",
                hint="has it a session with its cloud? `cellagent modem at 'AT#XNRFCLOUD?'`",
            ) from refusal

    async def _forward_by_serial_modem(self, modem: Modem, text: str) -> None:
        with modem.notices(_NOTICE) as notices:
            await modem.send(observability.ForwardChunk(text, self._project_key))
            try:
                async with asyncio.timeout(_RESULT_S):
                    notice = await anext(notices)
            except TimeoutError:
                raise ResourceUnavailable(
                    f"the kit did not say within {_RESULT_S:.0f} s that it sent a chunk"
                ) from None
        result = notice.value if isinstance(notice, SerialModemNotice) else None
        if not isinstance(result, ForwardResult) or result.result:
            raise ResourceUnavailable(f"the kit did not send a chunk: {notice.line}")
