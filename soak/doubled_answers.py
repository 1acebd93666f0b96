"""Answers that come twice, 0.5 to 20 ms apart, to all typed commands: none to another command."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING

from trials.measure import Row

from at.commands.catalog import command_of
from at.commands.contexts import ReadContextAddress, ReadOneContextParameters
from at.commands.credentials import ListCredentials, ReadCredential
from at.commands.identity import ReadImei
from at.commands.jwt import MakeJwt
from at.commands.keys import GenerateKey, ReadChallengedAttestation
from at.commands.nrf93m1.cloud import LocateByModule
from at.commands.serial_modem.firmware_update import ReadBootloader
from at.commands.sim import AccessSim
from at.commands.wifi import ScanOneAccessPoint
from at.driver.modem import Modem, _needs_line
from at.protocol.command import Form
from at.protocol.errors import AtError
from at.protocol.line.doubled_answers import expects_line
from at.protocol.values import as_json
from tests.support.harness import virtual_time
from tests.support.modem.memory_transport import MemoryTransport
from tests.support.modem.typed_answers import ANSWERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from at.protocol.command import Command

NAME = "doubled-answers"
SETTINGS = ("AT+CFUN=1", "AT+CMEE=1", "AT+CEREG=5", "AT%MDMEV=2")
REFUSED = ("AT+FOO=1", "AT%FOO")
CHALLENGE = "00112233445566778899aabbccddeeff"
WITH_PARAMETERS: tuple[Command[object], ...] = (
    ReadImei(),
    ReadContextAddress(1),
    ReadOneContextParameters(1),
    AccessSim(file=28539, p3=12),
    ReadCredential(7, 0),
    GenerateKey(9),
    MakeJwt(),
    ReadChallengedAttestation(CHALLENGE),
    ScanOneAccessPoint("home"),
    ListCredentials(),
    LocateByModule(7),
    ReadBootloader(1),
)
"""Of a captured text, only what its answer is read by is known, and not what can be sent."""
TYPED: dict[str, Command[object]] = {
    **{
        text: command
        for text in ANSWERS
        if (command := command_of(text)) is not None and command.form is not Form.SET
    },
    **{command.encode(): command for command in WITH_PARAMETERS},
}


def run(smoke: bool) -> Iterator[Row]:
    wanted = 900 if smoke else 20_000
    found: Counter[str] = Counter()
    seed = 0
    while found["doubled"] < wanted:
        found += virtual_time.run(session(seed))
        seed += 1
    yield Row("answers that came twice", found["doubled"], "answers")
    wrong = found["wrong"] + found["value"]
    yield Row("values, refusals or lines given to another command", wrong, "answers", 0,
              fault="an answer that comes twice", injected=found["doubled"])  # fmt: skip
    yield Row("commands that failed for it", found["failed"], "commands", 0, f"{seed} seeds")
    yield Row("of an OK that nothing tells apart, and behind one", found["untellable"], "answers")


class DoublingModem:
    """Answers as the table says, each answer `chance` of the time twice; what is unknown, ERROR."""

    def __init__(self, chance: random.Random, share: float) -> None:
        self.transport = MemoryTransport(self.receive)
        self.doubled = 0
        self.waiting = 0
        """How many commands have no answer of their own yet."""
        self._free_at = 0.0
        self._chance = chance
        self._share = share

    def receive(self, data: bytes) -> None:
        for command in data.decode().split("\r"):
            if command:
                self._answer(command)

    def _answer(self, command: str) -> None:
        lines = ANSWERS.get(command, ())
        final = "OK" if lines or command in SETTINGS else "ERROR"
        text = "".join(f"\r\n{line}" for line in (*lines, final))
        loop = asyncio.get_running_loop()
        self._free_at = max(self._free_at, loop.time()) + self._chance.uniform(0.0005, 0.01)
        self.waiting += 1
        loop.call_at(self._free_at, self._give, f"{text}\r\n".encode())
        if self._chance.random() < self._share:
            again_at = self._free_at + self._chance.uniform(0.0005, 0.02)
            self.doubled += 1
            loop.call_at(again_at, self.transport.deliver, f"{text}\r\n".encode())

    def _give(self, answer: bytes) -> None:
        self.waiting -= 1
        self.transport.deliver(answer)


async def session(seed: int) -> Counter[str]:
    chance = random.Random(seed)
    far = DoublingModem(chance, chance.choice([0.2, 0.5, 1.0]))
    modem = Modem(far.transport)
    await modem.open()
    found: Counter[str] = Counter()
    loop, untold_at = asyncio.get_running_loop(), -1.0
    for _ in range(60):
        text = chance.choice([*ANSWERS, *ANSWERS, *SETTINGS * 6, *REFUSED * 3])
        ask = chance.choice([typed, raw])
        # A command before had a copy for its answer: its own one is still on its way.
        behind = far.waiting > 0 or loop.time() - untold_at < 0.02
        outcome = await ask(modem, text)
        # A line is no excuse where one was asked for: it would be taken for the value.
        ok_alone = answers_ok_alone(text, ask)
        misled = outcome == "wrong" or (outcome == "value" and ok_alone)
        if (ok_alone and (far.waiting > 0 or misled)) or (behind and misled):
            outcome, untold_at = "untellable", loop.time()
        found[outcome] += 1
        await asyncio.sleep(chance.choice([0, 0, 0, 0.001, 0.01, 0.05]))
    await modem.close()
    found["doubled"] = far.doubled
    return found


async def typed(modem: Modem, text: str) -> str:
    command = TYPED.get(text)
    if command is None:
        return await raw(modem, text)
    try:
        value = await modem.send(command)
    except AtError as error:
        return "failed" if error.kind in {"timeout", "no-answer"} else "wrong"
    return "" if as_json(value) == as_json(command.parse(ANSWERS[text])) else told(as_json(value))


async def raw(modem: Modem, text: str) -> str:
    try:
        answer = await modem.execute(text)
    except AtError:
        return "failed"
    wanted = ((), "ERROR") if text in REFUSED else (ANSWERS.get(text, ()), "OK")
    return "" if (answer.lines, answer.final) == wanted else told(answer.lines)


def told(value: object) -> str:
    """Return what a wrong outcome is: a value of another's lines, or a result code alone."""
    rest = list(value.values()) if isinstance(value, dict) else [value]
    return "value" if any(part not in (None, (), []) for part in rest) else "wrong"


def answers_ok_alone(text: str, kind: Callable[[Modem, str], object]) -> bool:
    """Return whether OK may be all of an answer, as far as the driver can know."""
    if kind is typed and text in TYPED:
        return not expects_line(text) and not _needs_line(TYPED[text])
    return not expects_line(text)
