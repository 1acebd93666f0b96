"""One command in flight, whatever happens to it: late answers, cancels, restarts, a lost link."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING

import pytest

from at.commands.registration import ReadRegistration
from at.driver.modem import Modem
from at.protocol.errors import CommandTimeout, LinkLost, ModemReset, NoAnswer, ParseError
from tests.support.harness import virtual_time
from tests.support.modem.byte_receiver import ByteReceiver
from tests.support.modem.line_modem import READS, LineModem, echoing, run_session

if TYPE_CHECKING:
    pass

T_S = 1.0


async def ask(modem: Modem, command: str) -> str:
    """Return what went wrong, or "" when the answer was the command's own."""
    try:
        answer = await modem.execute(command, timeout_s=T_S)
    except (CommandTimeout, NoAnswer) as error:
        return error.kind
    assert answer.lines == (f"for {command}",), f"{command} was given {answer}"
    assert answer.final == "OK"
    return ""


@pytest.mark.parametrize("queues", [False, True], ids=["input lost while busy", "input waits"])
def test_no_late_answer_is_ever_given_to_another_command(queues: bool) -> None:
    async def session(seed: int) -> int:
        chance = random.Random(seed)
        late = {}

        def delay(command: str) -> float:
            if command.startswith("AT+T"):
                return late.setdefault(command, chance.choice([0.0, 0.0, chance.uniform(0, 6)]))
            return 0.001

        far = LineModem(echoing, delay, queues=queues)
        modem = Modem(far.transport)
        await modem.open()
        failed = 0
        for number in range(20):
            failed += bool(await ask(modem, f"AT+T{number}"))
        far.delay = lambda _command: 0.0
        await asyncio.sleep(6)
        assert await ask(modem, "AT+TLAST") == ""
        await modem.close()
        return failed

    assert sum(virtual_time.run(session(seed)) for seed in range(25)) > 25


def test_a_cancel_at_any_moment_leaves_the_link_usable() -> None:
    async def session(cancel_after_s: float) -> None:
        far = LineModem(echoing, lambda command: 0.2 if command.startswith("AT+T") else 0.0)
        modem = Modem(far.transport)
        await modem.open()
        tasks = [asyncio.create_task(ask(modem, f"AT+T{number}")) for number in range(3)]
        await asyncio.sleep(cancel_after_s)
        for task in tasks[:2]:
            task.cancel()
        assert await tasks[2] == ""
        assert await ask(modem, "AT+TLAST") == ""
        await modem.close()

    for step in range(60):
        virtual_time.run(session(step * 0.01))


def test_cancelling_at_each_step_of_the_loop_passes_the_turn_on() -> None:
    async def session(steps: int) -> None:
        far = LineModem(echoing)
        modem = Modem(far.transport)
        await modem.open()
        far.delay = lambda command: 0.05 if command.startswith("AT+T") else 0.0
        tasks = [asyncio.create_task(ask(modem, f"AT+T{number}")) for number in range(4)]
        for _ in range(steps):
            await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[1].cancel()
        assert await asyncio.gather(*tasks[2:]) == ["", ""]
        assert await ask(modem, "AT+TLAST") == ""
        await modem.close()

    for steps in range(12):
        virtual_time.run(session(steps))


@pytest.mark.parametrize("state", ["idle", "half a command", "open quote", "data mode"])
@pytest.mark.parametrize("already_open", [True, False], ids=["in a session", "at open"])
def test_a_suspect_link_is_resynchronised_from_every_state(state: str, already_open: bool) -> None:
    async def session() -> None:
        far = LineModem(echoing)
        modem = Modem(far.transport)

        def break_off() -> None:
            far._buffer = {"half a command": b"AT+CFU", "open quote": b'AT%JWT=0,1,"ab'}.get(
                state, b""
            )
            far.data_mode = state == "data mode"

        if already_open:
            await modem.open()
            far.delay = lambda command: 10.0 if command == "AT+TSLOW" else 0.0
            assert await ask(modem, "AT+TSLOW") == "timeout"
            far._free_at = 0.0
            break_off()
        else:
            break_off()
            await modem.open()
        assert await ask(modem, "AT+T1") == ""
        await modem.close()

    virtual_time.run(session())


def test_a_restart_fails_the_command_in_flight_by_name_and_settings_come_back() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        await modem.subscribe("AT+CEREG=5")
        far.delay = lambda command: 1.0 if command == "AT+TSLOW" else 0.0
        asyncio.get_running_loop().call_later(0.1, far.say, "Ready")
        with pytest.raises(ModemReset, match="Ready"):
            await modem.execute("AT+TSLOW", timeout_s=5)
        await asyncio.sleep(2)
        far.received.clear()
        assert await ask(modem, "AT+T1") == ""
        assert far.received == ["~~~~", "AT+CMEE?", "AT+CMEE=1", "AT+CEREG=5", "AT+T1"]
        assert modem.restarts == 1

    run_session(work)


def test_a_kit_that_is_told_to_restart_says_ok_first_also_right_behind_another_ok() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.body = lambda _command: ""
        await modem.execute("AT#XDFU=2,0")
        asyncio.get_running_loop().call_later(0.05, far.say, "Ready")
        assert (await modem.execute("AT#XRESET")).final == "OK"
        await asyncio.sleep(0.2)
        assert modem.restarts == 1

    run_session(work)


def test_a_restart_between_commands_brings_the_subscriptions_back_unasked() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        await modem.subscribe("AT+CEREG=2")
        await modem.subscribe("AT+CEREG=5")  # in its place
        far.received.clear()
        far.say("Ready")
        await asyncio.sleep(1)
        assert far.received == ["~~~~", "AT+CMEE?", "AT+CMEE=1", "AT+CEREG=5", "AT"]

    run_session(work)


def test_a_restart_has_numbered_errors_again_also_where_they_were_found_on() -> None:
    async def session() -> None:
        far = LineModem(echoing)
        far.reads = READS | {"AT+CMEE?": "+CMEE: 1"}
        modem = Modem(far.transport)
        await modem.open()
        assert "AT+CMEE=1" not in far.received
        far.say("Ready")
        assert await ask(modem, "AT+T1") == ""
        assert far.received[-2:] == ["AT+CMEE=1", "AT+T1"]
        await modem.close()
        assert "AT+CMEE=0" not in far.received

    virtual_time.run(session())


def test_a_lost_link_fails_all_who_wait_at_once() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.delay = lambda _command: 100.0
        loop = asyncio.get_running_loop()
        started = loop.time()
        tasks = [asyncio.create_task(modem.execute(f"AT+T{n}", timeout_s=200)) for n in range(5)]
        notices = modem.notices()
        waiting = asyncio.ensure_future(anext(notices))
        await asyncio.sleep(0.5)
        far.transport.unplug()
        for failure in await asyncio.gather(*tasks, waiting, return_exceptions=True):
            assert isinstance(failure, LinkLost)
            assert failure.hint == "plug the kit in again"
        assert loop.time() - started < 0.6
        with pytest.raises(LinkLost):
            await modem.execute("AT")
        for later in (modem.notices(), modem.lines()):
            with pytest.raises(LinkLost):
                await asyncio.wait_for(anext(later), 1)

    run_session(work)


def test_a_lost_link_fails_who_waits_for_a_turn_though_somebody_keeps_the_line() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        over = asyncio.Event()

        async def keep(_write: object) -> None:
            await over.wait()

        keeping = asyncio.create_task(modem.pass_through(ByteReceiver(), keep))
        await asyncio.sleep(0.1)
        waiting = asyncio.create_task(modem.execute("AT+T1", timeout_s=200))
        await asyncio.sleep(0.1)
        far.transport.unplug()
        with pytest.raises(LinkLost):
            await asyncio.wait_for(waiting, 1)
        over.set()
        await keeping

    run_session(work)


def test_after_a_restart_a_line_is_no_late_answer_to_a_command_from_before() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.delay = lambda _command: 100.0
        with pytest.raises(CommandTimeout):
            await modem.execute("AT%XSIM?", timeout_s=1)
        with modem.notices("%XSIM") as notices:
            far.say("Ready", "%XSIM: 1")
            assert (await asyncio.wait_for(anext(notices), 1)).line == "%XSIM: 1"

    run_session(work)


def test_a_failing_reader_fails_all_who_wait() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.delay = lambda _command: 100.0
        task = asyncio.create_task(modem.execute("AT+T1", timeout_s=200))
        await asyncio.sleep(0.1)
        modem._link._machine.feed = None  # type: ignore[assignment,method-assign]
        far.say("OK")
        with pytest.raises(LinkLost, match="reader failed"):
            await task

    run_session(work)


@pytest.mark.parametrize("damaged", ["+CEREG: 5,1,(", "+CEREG: )", '+CEREG: a"b', "+CEREG:"])
def test_a_damaged_line_of_the_name_that_is_awaited_does_not_end_the_link(damaged: str) -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.body = lambda _command: "+CEREG: 5,1"
        far.delay = lambda _command: 0.2
        asyncio.get_running_loop().call_later(0.1, far.say, damaged)
        with contextlib.suppress(ParseError):
            assert (await modem.send(ReadRegistration())).stat == 1
        assert (await modem.send(ReadRegistration())).stat == 1

    run_session(work)


def test_a_modem_that_knows_no_probe_is_resynchronised_by_silence() -> None:
    async def session() -> None:
        far = LineModem(lambda c: None if c.endswith("?") else f"for {c}" if c != "AT" else "")
        far.reads = {}
        modem = Modem(far.transport)
        await modem.open()
        assert await ask(modem, "AT+T1") == ""
        far.delay = lambda command: 1.5 if command == "AT+T2" else 0.0
        assert await ask(modem, "AT+T2") == "timeout"
        assert await ask(modem, "AT+T3") == ""
        await modem.close()

    virtual_time.run(session())


@pytest.mark.parametrize("queues", [False, True], ids=["input lost while busy", "input waits"])
@pytest.mark.parametrize("delay_s", [0.09, 0.3, 0.7])
def test_a_slow_modem_is_resynchronised_though_it_takes_its_time_to_refuse(
    delay_s: float, queues: bool
) -> None:
    async def session() -> None:
        far = LineModem(echoing, lambda _command: delay_s, queues=queues)
        modem = Modem(far.transport)
        await modem.open()
        with pytest.raises(CommandTimeout):
            await modem.execute("AT+T1", timeout_s=delay_s / 2)
        assert await ask(modem, "AT+T2") == ""
        await asyncio.sleep(5)
        far.say("OK")  # suspect again, and the modem idle
        assert await ask(modem, "AT+T3") == ""
        await modem.close()

    virtual_time.run(session())
