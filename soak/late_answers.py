"""Ten thousand answers that come late, by up to five times their limit: none to another command."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from trials.measure import Row

from at.driver.modem import Modem
from at.protocol.errors import CommandTimeout, NoAnswer
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "late-answers"
T_S = 1.0


def run(smoke: bool) -> Iterator[Row]:
    wanted = 200 if smoke else 10_000
    for queues in (False, True):
        late = wrong = unusable = seed = 0
        while late < wanted // 2:
            found = virtual_time.run(session(seed, queues=queues))
            late, wrong, unusable = late + found[0], wrong + found[1], unusable + found[2]
            seed += 1
        what = "input waits" if queues else "input is lost while it works"
        yield Row(f"late answers, {what}", late, "answers")
        yield Row(f"given to another command, {what}", wrong, "answers", 0, f"{seed} seeds",
                  fault="an answer that comes after its time", injected=late)  # fmt: skip
        yield Row(f"links not usable afterwards, {what}", unusable, "links", 0)


async def session(seed: int, *, queues: bool) -> tuple[int, int, int]:
    chance = random.Random(seed)
    delays: dict[str, float] = {}

    def delay(command: str) -> float:
        if not command.startswith("AT+T"):
            return chance.choice([0.0, 0.001, 0.01])
        return delays.setdefault(command, chance.choice([0.0, chance.uniform(0, 6 * T_S)]))

    far = LineModem(lambda command: f"for {command}", delay, queues=queues)
    modem = Modem(far.transport)
    await modem.open()
    late = wrong = 0
    for number in range(40):
        command = f"AT+T{number}"
        task = asyncio.create_task(modem.execute(command, timeout_s=T_S))
        if chance.random() < 0.2:
            await asyncio.sleep(chance.uniform(0, 1.5 * T_S))
            task.cancel()
        try:
            answer = await task
        except (CommandTimeout, NoAnswer, asyncio.CancelledError):
            late += delays.get(command, 0.0) > 0
            continue
        wrong += answer.lines != (f"for {command}",)
    far.delay = lambda _command: 0.0
    await asyncio.sleep(7 * T_S)
    last = await modem.execute("AT+TLAST", timeout_s=T_S)
    await modem.close()
    return late, wrong, int(last.lines != ("for AT+TLAST",))
