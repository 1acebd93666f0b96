"""Ten million bytes of garbage, seeded with what modems say: nothing raises, nothing grows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from trials.measure import Row

from at.protocol.line.exchange import Exchange
from at.protocol.line.framing import LIMIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "fuzz"
WORDS = [b"\r\n", b"\r", b"\n", b"OK", b"ERROR", b"+CME ERROR:", b'"', b"> ", b"+CEREG: ", b"AT+"]
WORDS += [b"[00:00:00.000,000] <inf> ", b"\x1b[1m", b"uart:~$ ", b"*** Booting", b"\x00", b"#X:"]


def run(smoke: bool) -> Iterator[Row]:
    wanted = 100_000 if smoke else 10_000_000
    chance = random.Random(3)
    held = fed = failures = 0
    machine = Exchange()
    while fed < wanted:
        parts = [
            chance.choice(WORDS) if chance.random() < 0.5 else chance.randbytes(chance.randrange(9))
            for _ in range(20)
        ]
        data = b"".join(parts)
        fed += len(data)
        if not machine.in_flight and chance.random() < 0.1:
            machine.start("AT%CMNG=1", prompt=chance.random() < 0.5)
        try:
            for _item in machine.feed(data):
                pass
        except Exception as error:  # noqa: BLE001 - that none comes is what is measured
            failures += 1
            print(repr(error), data)
            machine = Exchange()
        framer = machine.framer
        held = max(held, len(framer._pending) + len(framer._kept))
    yield Row("exceptions out of the reader", failures, "", 0, f"{fed} bytes, seed 3",
              fault="bytes that are no text", injected=fed)  # fmt: skip
    yield Row("bytes held at most", held, "bytes", 2 * LIMIT_BYTES)
