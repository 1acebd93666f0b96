"""A command's time is a deadline, also on a link that has to be resynchronised first."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.driver.modem import Modem
from at.driver.resynchroniser import GRACE_S
from at.protocol.errors import CommandTimeout, NoAnswer
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem, echoing

NEVER_S = 1e6


class Session:
    """A modem whose answers are as late as `late_s` says, and when a final result came last."""

    def __init__(self, *, queues: bool) -> None:
        self.late_s: dict[str, float] = {}
        self.far = LineModem(echoing, lambda c: self.late_s.get(c, self.usual_s), queues=queues)
        self.usual_s = 0.0
        self.modem = Modem(self.far.transport)
        self.heard_at = -1.0
        deliver = self.far.transport.deliver

        def note(data: bytes) -> None:
            if b"OK" in data or b"ERROR" in data:
                self.heard_at = asyncio.get_running_loop().time()
            deliver(data)

        self.far.transport.deliver = note  # type: ignore[method-assign]

    async def ask(self, number: int, timeout_s: float, *, late_s: float = 0.0) -> str:
        """Send a command; return the error's kind. Its time and its answer are checked."""
        loop = asyncio.get_running_loop()
        command = f"AT+T{number}"
        self.late_s[command] = late_s
        started, kind = loop.time(), ""
        try:
            answer = await self.modem.execute(command, timeout_s=timeout_s)
            assert answer.lines == (f"for {command}",)
        except (CommandTimeout, NoAnswer) as error:
            kind = error.kind
        took_s = loop.time() - started
        grace_s = GRACE_S if self.heard_at >= started else 0.0
        assert took_s <= timeout_s + grace_s + 1e-6
        return kind


@pytest.mark.parametrize("timeout_s", [0.2, 1.0, 3.0, 30.0])
def test_a_mute_port_takes_no_more_than_the_time_of_each_command(timeout_s: float) -> None:
    async def work() -> None:
        session = Session(queues=True)
        await session.modem.open()
        assert await session.ask(0, timeout_s, late_s=NEVER_S) == "timeout"
        for number in range(1, 15):
            assert await session.ask(number, timeout_s) == "no-answer"
        with pytest.raises(NoAnswer, match=f"given {min(timeout_s, 12.0):.2g} s") as refused:
            await session.modem.execute("AT+T99", timeout_s=timeout_s)
        assert "next command goes on" in refused.value.hint
        await session.modem.close()

    virtual_time.run(work())


def test_a_command_that_has_too_little_time_left_for_its_answer_is_not_sent() -> None:
    async def work() -> None:
        session = Session(queues=True)
        await session.modem.open()
        assert await session.ask(0, 1.0, late_s=10.5) == "timeout"
        with pytest.raises(NoAnswer, match="too late to get in step again within 10 s"):
            await session.modem.execute("AT+T1", timeout_s=10.0)
        assert "AT+T1" not in session.far.received
        assert await session.ask(1, 10.0) == ""
        await session.modem.close()

    virtual_time.run(work())


def test_settings_that_are_restored_first_take_of_the_time_of_the_command() -> None:
    async def work() -> None:
        session = Session(queues=True)
        await session.modem.open()
        session.late_s["AT+CMEE=1"] = NEVER_S
        session.far.say("Ready")
        assert await session.ask(1, 0.5)
        await session.modem.close()

    virtual_time.run(work())


@pytest.mark.parametrize("held", [b"AT+CFU", b'AT%JWT=0,1,"ab', b'AT%CMNG=0,1,0,"\r\rab"'])
def test_short_times_go_on_where_the_last_one_ended(held: bytes) -> None:
    """What the modem holds is got rid of by commands none of which has the time for all of it."""

    async def work() -> None:
        session = Session(queues=True)
        await session.modem.open()
        assert await session.ask(0, 0.1, late_s=NEVER_S) == "timeout"
        session.far._free_at, session.far._buffer = 0.0, held
        kinds = [await session.ask(number, 0.1) for number in range(1, 20)]
        assert kinds[-1] == ""
        await session.modem.close()

    virtual_time.run(work())


@given(
    st.booleans(),
    st.floats(0, 1.5),
    st.lists(
        st.tuples(
            st.floats(0.05, 8),  # the time that the command has
            st.one_of(st.just(0.0), st.just(NEVER_S), st.floats(0, 9)),  # how late it is answered
            st.sampled_from([0.0, 0.0, 0.4, 7.0]),  # a pause before
        ),
        min_size=1,
        max_size=12,
    ),
)
def test_whatever_is_late_a_command_ends_in_its_time_and_gets_no_other_answer(
    queues: bool, usual_s: float, commands: list[tuple[float, float, float]]
) -> None:
    async def work() -> None:
        session = Session(queues=queues)
        await session.modem.open()
        session.usual_s = usual_s
        for number, (timeout_s, late_s, pause_s) in enumerate(commands):
            await asyncio.sleep(pause_s)
            if late_s < NEVER_S and session.far._free_at > NEVER_S / 2:
                session.far._free_at = 0.0  # it was mute for a while
            await session.ask(number, timeout_s, late_s=late_s)
        session.usual_s, session.late_s, session.far._free_at = 0.0, {}, 0.0
        await asyncio.sleep(500)
        assert await session.ask(99, 5.0) == ""
        await session.modem.close()

    virtual_time.run(work())
