"""A line that loses and doubles a fifth of its chunks: every command ends, nothing is made up."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from hashlib import sha256

import pytest

from at.commands.credentials import ListCredentials
from at.commands.identity import ReadDeviceUuid, ReadImei
from at.driver.modem import Modem
from at.protocol.errors import AtError
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem

IMEI = "352656100367872"
UUID = "50363154-3931-44f0-8022-121b6401627d"
SHA = sha256(b"of nothing").hexdigest().upper()
BODIES = {
    "AT+CGSN=1": f'+CGSN: "{IMEI}"',
    "AT%DEVICEUUID": f"%DEVICEUUID: {UUID}",
    "AT%CMNG=1,17": f'%CMNG: 17,0,"{SHA}"',
}
READS = (ReadImei(), ReadDeviceUuid(), ListCredentials(17))
SHARE = 0.2


@dataclass
class Counts:
    right: int = 0
    ended: int = 0
    wrong: list[str] = field(default_factory=list)


class LossyLine:
    """Loses and doubles pieces of what the modem says, and whole writes of what it hears."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.modem = LineModem(lambda command: BODIES.get(command, ""))
        self.bad = False
        self._deliver = self.modem.transport.deliver
        self.modem.transport.deliver = self.deliver  # type: ignore[method-assign]
        self.modem.transport.far_end = self.hear

    def times(self) -> int:
        return self.chance.choices((0, 1, 2), (SHARE, 1 - 2 * SHARE, SHARE))[0] if self.bad else 1

    def deliver(self, data: bytes) -> None:
        while data:
            size = self.chance.randint(1, 64)
            piece, data = data[:size], data[size:]
            for _ in range(self.times()):
                self._deliver(piece)

    def hear(self, data: bytes) -> None:
        for _ in range(self.times()):
            self.modem.receive(data)


async def session(seed: int, counts: Counts) -> None:
    line = LossyLine(seed)
    modem = Modem(line.modem.transport)
    await modem.open()
    line.bad = True
    for number in range(20):
        command = line.chance.choice(READS)
        try:
            got = repr(await modem.send(command))
            right = any(value in got for value in (IMEI, UUID, SHA))
            counts.right += right
            if not right and "credentials=()" not in got:
                counts.wrong.append(got)
        except AtError:
            counts.ended += 1
        write = f"AT+T={number}"
        try:
            if (await modem.execute(write, timeout_s=1)).ok and write not in line.modem.received:
                counts.wrong.append(f"{write} was never heard, and is OK")
        except AtError:
            counts.ended += 1
    line.bad = False
    assert (await modem.execute("AT+T=LAST")).ok
    await modem.close()


@pytest.mark.contract("D10.3")
def test_every_command_ends_and_no_value_is_made_up() -> None:
    """Seeds are fixed; a value is wrong where its length tells, an OK where nothing was heard."""
    counts = Counts()
    for seed in range(40):
        virtual_time.run(session(seed, counts))
    assert counts.right > 200
    assert counts.ended > 200
    assert not counts.wrong


def test_after_a_final_result_too_many_the_next_command_waits_for_a_probe() -> None:
    async def work() -> None:
        far = LineModem(lambda command: BODIES.get(command, ""))
        modem = Modem(far.transport)
        await modem.open()
        for final in ("OK", "ERROR", "+CME ERROR: 513"):
            far.received.clear()
            far.say(final)
            assert (await modem.execute("AT+T=1")).ok
            assert far.received == ["~~~~", "AT+CMEE?", "AT+T=1"]
            assert (await modem.execute("AT+T=2")).ok
            assert far.received[3:] == ["AT+T=2"]
        await modem.close()

    virtual_time.run(work())


def test_an_ok_that_came_twice_is_not_the_answer_of_a_command_that_needs_a_line() -> None:

    async def work() -> None:
        far = LineModem(lambda command: BODIES.get(command, ""), lambda _command: 0.01)
        modem = Modem(far.transport)
        await modem.open()
        far.transport.far_end = lambda data: (far.say("OK"), far.receive(data))
        assert (await modem.send(ReadImei())).imei == IMEI
        far.transport.far_end = far.receive
        assert (await modem.send(ReadDeviceUuid())).uuid == UUID
        assert (await modem.send(ReadImei())).imei == IMEI
        await modem.close()

    virtual_time.run(work())
