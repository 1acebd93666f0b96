"""What a replay prints on a port, and when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from at.transcripts.player import Player
from at.transcripts.step_matching import Playback
from at.transcripts.transcript import parse_transcript

if TYPE_CHECKING:
    from at.virtual.server.pty import PtyServer

SESSION = """\
@5.0 < Ready
@7.0 > AT+CFUN=1
@67.0 < OK
@67.5 < +CEREG: 2
@90.0 > AT+COPS=?
@120.0 < +COPS: 1
< OK
"""


class Port:
    """What was printed on it, among the seconds that were waited before."""

    def __init__(self) -> None:
        self.seen: list[bytes | float] = []

    def send(self, data: bytes) -> None:
        self.seen.append(data.strip())


@pytest.mark.parametrize("strict", [True, False])
async def test_a_paced_replay_keeps_the_time_from_a_command_to_its_answer(
    strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, sleep = Port(), asyncio.sleep
    player = Player(Playback(parse_transcript(SESSION), strict=strict), paced=True)

    async def waits(seconds: float) -> None:
        port.seen.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", waits)
    playing = asyncio.create_task(player.play_on(cast("PtyServer", port), stays=True))
    await sleep(0)  # it has said how it hears of a client
    cast("PtyServer", port).opened()
    for command in (b"AT+CFUN=1\r", b"AT+COPS=?\r"):
        player.receive(command)
    while b"OK" not in port.seen[-1:] or port.seen.count(b"OK") < 2:
        await sleep(0)
    playing.cancel()
    answers = [60.0, b"OK", 0.5, b"+CEREG: 2", 30.0, b"+COPS: 1", b"OK"]
    assert port.seen == [b"Ready", *answers]
