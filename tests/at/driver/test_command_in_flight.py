"""The command in flight gets its own answer, where answers come twice."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.identity import ReadImei, ReadSerialNumber
from at.driver.modem import Modem
from at.protocol.errors import AtError
from at.protocol.line.doubled_answers import AWAIT_S
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem, run_session

BODIES = {"AT+CGSN=1": '+CGSN: "352656100367872"', "AT+CGMR": "mfw_nrf91x1_2.0.4", "AT+BAD": None}


@pytest.mark.parametrize("seed", range(10))
def test_where_every_answer_comes_twice_each_command_gets_its_own(seed: int) -> None:
    async def session() -> None:
        chance = random.Random(seed)
        far = LineModem(lambda c: BODIES.get(c, f"{c[2:-1]}: 1"), lambda _c: 0.002, queues=True)
        modem = Modem(far.transport)
        deliver, loop = far.transport.deliver, asyncio.get_running_loop()

        def twice(data: bytes) -> None:
            deliver(data)
            loop.call_later(chance.uniform(0.0005, 0.02), deliver, data)

        far.transport.deliver = twice  # type: ignore[method-assign]
        await modem.open()
        for _ in range(30):
            name = chance.choice(["+CGATT", "+COPS", "+CFUN", "%XSYSTEMMODE"])
            line = (await modem.execute(f"AT{name}?")).lines[0]
            assert line.startswith(f"{name}: ")
            assert (await modem.execute("AT+BAD")).final == "ERROR"
            assert (await modem.execute("AT+CGMR")).lines == ("mfw_nrf91x1_2.0.4",)
            assert (await modem.send(ReadImei())).imei == "352656100367872"
        await modem.close()

    virtual_time.run(session())


def test_lines_that_came_for_no_command_are_known_when_they_come_again() -> None:
    """The answer to +CGCONTRDP=1, which had got the OK of another: twice, behind other commands."""
    bodies = {"AT+CGCONTRDP": "+CGCONTRDP: 0", "AT+CEMODE=?": "+CEMODE: (0,2)"}

    async def session(modem: Modem, far: LineModem) -> None:
        far.body, far.delay = lambda command: bodies.get(command, ""), lambda _command: 0.004
        assert (await modem.execute("AT+CGCONTRDP=1")).lines == ()
        for after_s in (0.001, 0.006):
            asyncio.get_running_loop().call_later(
                after_s, far.transport.deliver, b"\r\n+CGCONTRDP: 1\r\n\r\nOK\r\n"
            )
        assert (await modem.execute("AT+CEMODE=?")).lines == ("+CEMODE: (0,2)",)
        assert (await modem.execute("AT+CGCONTRDP")).lines == ("+CGCONTRDP: 0",)

    run_session(session)


@pytest.mark.parametrize(("stray", "waits"), [(None, 1), ("OK", 11)])
def test_refusals_in_a_row_wait_once_where_nothing_ever_came_twice(
    stray: str | None, waits: int
) -> None:
    async def session(modem: Modem, far: LineModem) -> None:
        far.body, far.delay = lambda _command: None, lambda _command: 0.001
        if stray:
            far.say(stray)
        began = asyncio.get_running_loop().time()
        for number in range(11):
            assert (await modem.execute(f"AT+FOO={number}")).final == "ERROR"
        took_s = asyncio.get_running_loop().time() - began
        assert waits * AWAIT_S <= took_s < (waits + 1) * AWAIT_S

    run_session(session)


def test_a_copy_that_is_held_back_makes_no_second_one_the_commands_own() -> None:
    bodies = {"AT+CGMM": "nRF9161-LACA", "AT+CESQ": "+CESQ: 99,99,255,255,5,21"}

    async def session(modem: Modem, far: LineModem) -> None:
        far.body, far.delay = bodies.get, lambda _command: 0.004
        for _ in range(2):
            assert (await modem.execute("AT+CGMM")).lines == ("nRF9161-LACA",)
        for after_s in (0.001, 0.002):
            asyncio.get_running_loop().call_later(
                after_s, far.transport.deliver, b"\r\nnRF9161-LACA\r\n\r\nOK\r\n"
            )
        assert (await modem.execute("AT+CESQ")).lines == ("+CESQ: 99,99,255,255,5,21",)

    run_session(session)


# One modem's answers: OK alone where a line is expected, too, and one text for two commands.
_ANSWERS = {"AT+CGMM": "nRF9161", "AT+CGMM=1": "nRF9161", "AT+CESQ": "+CESQ: 99,99,255,255,5,21"}
_OK_ALONE = ("AT+CFUN=1", "AT+CGPADDR", "AT+CGSN=1")
_ASKED = st.sampled_from([*_ANSWERS, *_OK_ALONE, "AT+FOO", "AT%FOO", "AT+FOO=1", "AT+CGSN"])
_PAUSES_S = st.sampled_from([0.0, 0.001, 0.02, 0.06, 0.3])


@given(steps=st.lists(st.tuples(_ASKED, _PAUSES_S, _PAUSES_S), max_size=16))
def test_time_decides_nothing_that_is_sent_where_nothing_comes_twice(
    steps: list[tuple[str, float, float]],
) -> None:
    def sent(*, first: bool) -> list[str]:
        received: list[str] = []

        async def session(modem: Modem, far: LineModem) -> None:
            answers = {**_ANSWERS, **dict.fromkeys(_OK_ALONE, "")}
            far.body = answers.get
            for command, one_s, other_s in steps:
                await asyncio.sleep(one_s if first else other_s)
                with contextlib.suppress(AtError):
                    if command == "AT+CGSN=1":
                        await modem.send(ReadImei())
                    elif command == "AT+CGSN":
                        await modem.send(ReadSerialNumber())
                    else:
                        await modem.execute(command)
            received.extend(far.received)

        run_session(session)
        return received

    assert sent(first=True) == sent(first=False)
