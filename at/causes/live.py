"""Asks a modem what its causes rest on: reads alone, but for +CEREG's level, which is put back."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from at.commands.functional_mode import LTE_MODES
from at.commands.registration import REGISTERED
from at.driver.modem import Modem
from at.driver.stream import Stream
from at.protocol.errors import AtError, CommandTimeout, LinkLost, NoAnswer
from at.protocol.notices import Notice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from at.causes.diagnosis import Cause
    from at.causes.evidence import Evidence

_ALL_S, _EACH_S, _PUT_BACK_S = 10.0, 4.0, 2.0
WATCH_S = 6.0
"""How long a search is watched, which may just have begun."""
_QUESTIONS = (
    *("AT+CGMR", "AT+CFUN?", "AT+CEREG?", "AT+CPIN?", "AT%XSIM?", "AT%XSYSTEMMODE?", "AT+COPS?"),
    *("AT%XCBAND=?", "AT%XBANDLOCK?", "AT+CEER", "AT%XVBAT", "AT%XTEMP?", "AT+CGSN=1"),
    *("AT+CPSMS?", "AT+CEDRXS?", "AT+CEDRXRDP", "AT+CGDCONT?", "AT+CGATT?", "AT%CMNG=1"),
)
# These tell of a radio that is on, and %CONEVAL of one that listens.
_WHILE_ON = ("AT%XMONITOR", "AT+CESQ", "AT+CGPADDR=0", "AT+CCLK?", "AT%CONEVAL")
_UNDECIDED, _AGAIN_S = frozenset({0, 2}), 1.0  # not registered yet: right after +CFUN=1, too
_WITH_CAUSE = 5
"""The level of +CEREG at which it tells the network's number."""


async def causes_of_modem(modem: Modem, *, watch_s: float = WATCH_S) -> list[Cause]:
    """Return the causes that a modem shows, after `_ALL_S` seconds by what it has told till then.

    A modem that searches may just have begun: it is watched for `watch_s` seconds.

    Raises LinkLost, NoAnswer. A question that is refused or not answered is no cause by itself.
    """
    # They know every command there is: most who may ask for a cause never do.
    from at.causes.diagnosis import causes
    from at.causes.evidence import Evidence
    from at.causes.table import load

    with modem.notices() as notices:
        asked = _Asked(modem, notices, Evidence(load()))
        try:
            async with asyncio.timeout(_ALL_S):
                await asked.ask_all(watch_s)
        except (TimeoutError, NoAnswer):
            if not asked.evidence.facts():
                raise
        told = dict(asked.evidence.facts())
        told.pop("command_refused", None)  # a question of ours
        return causes(told, load())


async def likeliest_cause(modem: Modem) -> Cause | None:
    """Return the first cause of trouble that a modem shows now, None for none. Raises LinkLost."""
    try:
        first = (await causes_of_modem(modem, watch_s=0))[0]
    except LinkLost:
        raise
    except AtError:
        return None
    return first if first.is_trouble else None


class _Asked:
    """The evidence of the answers so far, and of the notices that came meanwhile."""

    def __init__(self, modem: Modem, notices: Stream[Notice], evidence: Evidence) -> None:
        self._modem = modem
        self._notices = notices
        self.evidence = evidence

    async def ask_all(self, watch_s: float) -> None:
        await self._ask_each(_QUESTIONS)
        if self._value("fun") not in LTE_MODES:
            return
        end = asyncio.get_running_loop().time() + watch_s
        while self._value("stat") in _UNDECIDED and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_AGAIN_S)
            await self._ask("AT+CEREG?")
        await self._ask_each(_WHILE_ON)
        level = self._value("+CEREG.n")
        if self._value("stat") in REGISTERED or level in {None, 3, _WITH_CAUSE}:
            return
        try:
            await self._modem.execute(f"AT+CEREG={_WITH_CAUSE}", timeout_s=_EACH_S)
            await self._ask("AT+CEREG?")
        finally:
            await asyncio.shield(self._put_back(f"AT+CEREG={level}"))

    def _value(self, name: str) -> object:
        fact = self.evidence.facts().get(name)
        return None if fact is None else fact.value

    async def _ask_each(self, questions: Iterable[str]) -> None:
        is_module = self._modem.dialect.traits.is_module
        for question in questions:
            if not (is_module and "%" in question):  # an nRF93M1 has none of these
                await self._ask(question)

    async def _ask(self, question: str) -> None:
        try:
            answer = await self._modem.execute(question, timeout_s=_EACH_S)
        except CommandTimeout:
            return
        for notice in self._notices.take():
            self._add(notice.line)
        self._add(question)
        for line in answer.lines:
            self._add(line)
        final = answer.final or ""
        self._add(final if answer.code is None else f"{final}: {answer.code}")

    def _add(self, line: str) -> None:
        self.evidence.add(line, 0)

    async def _put_back(self, command: str) -> None:
        with contextlib.suppress(AtError, TimeoutError):
            async with asyncio.timeout(_PUT_BACK_S):
                await self._modem.execute(command)
