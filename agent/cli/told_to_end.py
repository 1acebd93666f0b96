"""A command that is told to end puts back what it changed, as it does on Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine


async def until_told_to_end(work: Coroutine[None, None, int | None]) -> int | None:
    """Do the work; SIGTERM and a terminal that closes cancel it: then 128 and the signal's number.

    A second one ends the process at once. Who was started to outlive its terminal (nohup) does.
    """
    loop = asyncio.get_running_loop()
    doing = asyncio.ensure_future(work)
    told: list[int] = []

    def tell(number: int) -> None:
        told.append(number)
        loop.remove_signal_handler(number)
        doing.cancel()

    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
        if signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(NotImplementedError):  # Windows has neither
                loop.add_signal_handler(number, tell, number)
    try:
        return await doing
    except asyncio.CancelledError:
        if not told:
            raise
        return 128 + told[0]
