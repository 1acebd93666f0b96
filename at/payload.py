"""Commands that answer OK and then take raw bytes: the data mode of Serial Modem."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from at.errors import CommandTimeout
from at.exchange import Answer
from at.ownership import command_name
from at.rejection import rejection

if TYPE_CHECKING:
    from at.link import Link
    from at.notices import Notice
    from at.stream import Stream

_PIECE_BYTES = 4096


async def transfer(
    link: Link, line: str, payload: bytes, ends: Stream[Notice], timeout_s: float
) -> str:
    """Send `line`, then `payload`; return the line that ends the transfer.

    Broken off within, the link leaves data mode before anything else is sent.
    """
    last = ""

    async def work() -> Answer:
        nonlocal last
        await link.settle()
        answer = await link.exchange(line, timeout_s)
        if not answer.ok:
            return answer
        link.in_data_mode = True
        try:
            async with asyncio.timeout(timeout_s):
                for start in range(0, len(payload), _PIECE_BYTES):
                    link.write(payload[start : start + _PIECE_BYTES])
                    await link.transport.drain()
                last = (await anext(ends)).line
        except TimeoutError as error:
            link.distrust()
            name = command_name(line)
            raise CommandTimeout(f"{name}: no end of the transfer in {timeout_s:g} s") from error
        except BaseException:
            link.distrust()
            raise
        link.in_data_mode = False
        return answer

    answer = await link.occupy(work)
    if not answer.ok:
        raise rejection(line, answer)
    return last
