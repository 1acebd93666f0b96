"""A hundred thousand lines of answers, notices and logs, cut and interleaved: each to its owner."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from trials.measure import Row

from at.protocol.line.exchange import Exchange
from at.protocol.line.framing import Log
from at.protocol.line.items import Answer, NoticeLine

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "mixed-lines"


def run(smoke: bool) -> Iterator[Row]:
    wanted = 2_000 if smoke else 100_000
    chance = random.Random(7)
    machine = Exchange()
    sent = {"notice": 0, "log": 0, "answer": 0}
    got = {"notice": 0, "log": 0, "answer": 0}
    wrong = 0
    for number in range(wanted // 4):
        body = f'+X: {number},"a,b"'
        machine.start("AT+X")
        stream = bytearray()
        for line in (body, "OK"):
            if chance.random() < 0.5:
                stream += b"+CEREG: 5\r\n"
                sent["notice"] += 1
            log = f"[00:00:{number % 60:02}.000,000] <inf> app: OK {number}\r\n".encode()
            place = chance.choice(["none", "before", "inside"])
            sent["log"] += place != "none"
            if place == "before":
                stream += log + line.encode() + b"\r\n"
            elif place == "inside":
                cut = chance.randrange(1, len(line))
                stream += line[:cut].encode() + log + line[cut:].encode() + b"\r\n"
            else:
                stream += line.encode() + b"\r\n"
        sent["answer"] += 1
        while stream:
            size = chance.randrange(1, 40)
            for item in machine.feed(bytes(stream[:size])):
                got["notice"] += isinstance(item, NoticeLine)
                got["log"] += isinstance(item, Log)
                if isinstance(item, Answer):
                    got["answer"] += 1
                    wrong += item.lines != (body,)
            del stream[:size]
    for kind, count in sent.items():
        yield Row(f"{kind} lines lost or made up", abs(count - got[kind]), "lines", 0, f"{count}",
                  fault="log lines between and inside answers", injected=count)  # fmt: skip
    yield Row("answers with a line that is not theirs", wrong, "answers", 0)
