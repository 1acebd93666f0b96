"""A modem: settings, refusals, payloads, notices, and the lines that came before."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from at.commands.clock import ReadClock
from at.driver.modem import Modem
from at.protocol.errors import (
    CommandRejected,
    CommandTimeout,
    LinkLost,
    ModemReset,
    ParseError,
    UnsafeArgument,
)
from at.protocol.line.framing import Log
from at.protocol.line.items import Restart, Unknown
from at.protocol.notices import Notice
from at.transcripts.replay_transport import ReplayTransport
from at.transcripts.transcript import parse_transcript
from at.virtual.transport import VirtualTransport
from tests.support.harness import virtual_time
from tests.support.modem.byte_receiver import ByteReceiver
from tests.support.modem.line_modem import LineModem, echoing, run_session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from at.transport.base import Receiver

PAYLOAD = bytes(4096)


async def test_an_opening_that_is_cancelled_anywhere_leaves_cmee_as_it_was() -> None:
    transport = VirtualTransport(instant=True)
    is_over, turns, changed = False, 0, False
    while not is_over:
        modem = Modem(transport)
        opening = asyncio.create_task(modem.open())
        for _ in range(turns):
            await asyncio.sleep(0)
        turns += 1
        is_over = opening.done()
        changed |= transport.modem.kit.session.cmee == 1
        opening.cancel()
        await asyncio.wait([opening])
        if is_over:
            await modem.close()
        assert transport.modem.kit.session.cmee == 0
    assert changed


@pytest.mark.parametrize("at_s", [0.0, 0.05, 0.2, 0.5])
def test_a_closing_that_is_cancelled_puts_cmee_back_all_the_same(at_s: float) -> None:
    """As by a Ctrl-C behind the last line of a command's output."""

    async def session() -> list[str]:
        far = LineModem(echoing, lambda command: 1.0 if command == "AT+CGMR" else 0.0)
        modem = Modem(far.transport)
        await modem.open()
        with pytest.raises(CommandTimeout):
            await modem.execute("AT+CGMR", timeout_s=0.1)
        closing = asyncio.create_task(modem.close())
        await asyncio.sleep(at_s)
        closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled()
        return far.received

    assert virtual_time.run(session())[-1] == "AT+CMEE=0"


def test_cmee_is_raised_for_the_session_and_put_back() -> None:
    async def session() -> list[str]:
        far = LineModem(echoing)
        modem = Modem(far.transport)
        await modem.open()
        await modem.close()
        await modem.close()
        return far.received

    assert virtual_time.run(session()) == [
        "AT+CMEE?",
        "AT+CGMM",  # for replies that look like these, the model decides
        "AT+CMEE=1",
        "AT+CMEE=0",
    ]


async def test_a_modem_that_nobody_opened_says_so() -> None:
    modem = Modem(VirtualTransport())
    asked = (
        modem.execute("AT"),
        modem.send(ReadClock()),
        modem.transfer("AT#XDFUWRITE=0,1", b"1"),
        modem.pass_through(ByteReceiver(), lambda: asyncio.sleep(0)),
    )
    for work in asked:
        with pytest.raises(LinkLost, match=r"^virtual: is not open$") as told:
            await work
        assert told.value.hint == "`await modem.open()` comes first"
    await modem.close()
    with pytest.raises(LinkLost):
        await modem.open()


def test_a_refused_command_names_its_code() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.body = lambda _command: None
        answer = await modem.execute("AT+NO")
        assert answer.final == "ERROR"
        with pytest.raises(CommandRejected):
            await modem.subscribe("AT+CEREG=5")

    run_session(work)


def test_an_answer_that_is_none_tells_how_it_is_looked_at() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.body = lambda _command: "+CCLK: half"
        with pytest.raises(ParseError, match=r"\+CCLK") as told:
            await modem.send(ReadClock())
        assert told.value.hint == (
            "ask again: the line may have been damaged, or a print stood in it; "
            "`cellagent modem at 'AT+CCLK?'` shows what comes"
        )

    run_session(work)


def test_what_a_modem_may_refuse_is_asked_without_an_error() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        told: list[str | None] = []
        for body in (None, "+CCLK: half", '+CCLK: "26/12/01,02:00:00+00"'):
            far.body = lambda _command, body=body: body
            clock = await modem.try_send(ReadClock())
            told.append(clock and clock.time)
        assert told == [None, None, "26/12/01,02:00:00+00"]

    run_session(work)


def test_a_modem_that_does_not_answer_is_not_to_be_asked_more() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.delay = lambda _command: 9.0
        with pytest.raises(CommandTimeout) as late:
            await modem.execute("AT+T1", timeout_s=1)
        assert late.value.hint == "the modem may be busy: try again, else reset the kit"

    run_session(work)


@pytest.mark.parametrize(
    "line",
    [
        'AT%JWT=0,1,"a\rAT+CFUN=0"',
        "AT\n",
        'AT+X="a\x1a"',
        'AT+X="a\x1b"',
        'AT+X="a\x00"',
        'AT+X="a',
        "rm -rf",
        'AT+X="' + "a" * 8200 + '"',
    ],
    ids=repr,
)
def test_what_would_break_out_is_refused_before_a_byte_is_sent(line: str) -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.received.clear()
        with pytest.raises(UnsafeArgument):
            await modem.execute(line)
        assert far.received == []

    run_session(work)


def test_a_payload_is_sent_after_ok_and_its_end_is_awaited() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.body = lambda _command: ""
        got = bytearray()

        def receive(data: bytes) -> None:
            got.extend(data)
            if len(got) == 10000:
                far.transport.far_end = far.receive
                far.say("#XDATAMODE: 0")

        def after_ok(command: str) -> str:
            if command.startswith("AT#XDFUWRITE"):
                far.transport.far_end = receive
            return ""

        far.body = after_ok
        end = await modem.transfer("AT#XDFUWRITE=0,0,10000", b"\r\n+++\x00ab" * 1250)
        assert end == "#XDATAMODE: 0"
        assert bytes(got) == b"\r\n+++\x00ab" * 1250

    run_session(work)


def test_a_broken_off_payload_leaves_data_mode_before_anything_else_is_sent() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        def enter(_command: str) -> str:
            far.data_mode = True
            return ""

        far.body = enter
        with pytest.raises(CommandTimeout):
            await modem.transfer("AT#XDFUWRITE=0,0,9", b"short", timeout_s=1)
        far.body = echoing
        assert (await modem.execute("AT+T1")).lines == ("for AT+T1",)

    run_session(work)


def test_no_payload_is_written_to_a_modem_that_restarted_once_it_had_accepted_it() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        def accept_and_restart(command: str) -> str | None:
            if not command.startswith("AT#XDFUWRITE"):
                return echoing(command)
            far.transport.deliver(b"\r\nOK\r\n\r\nReady\r\n")
            return None

        far.body = accept_and_restart
        with pytest.raises(ModemReset, match="restarted before it had all data"):
            await modem.transfer("AT#XDFUWRITE=0,0,9", b"AT+CFUN=0\r", timeout_s=1)
        assert (await modem.execute("AT+T1")).lines == ("for AT+T1",)
        assert not [line for line in far.received if "CFUN=0" in line]

    run_session(work)


@pytest.mark.parametrize("lost", [False, True], ids=["cancelled", "data lost"])
def test_a_transfer_that_is_broken_off_leaves_no_modem_that_waits_for_the_data(lost: bool) -> None:
    class Line(VirtualTransport):
        def write(self, data: bytes) -> None:
            if lost and data == PAYLOAD:
                return
            super().write(data)
            if not lost and data.startswith(b"AT#XDFUWRITE"):
                transfer.cancel()

    async def work() -> None:
        nonlocal transfer
        line = Line(dialect="serial-modem", instant=True)
        modem = Modem(line)
        await modem.open()
        await modem.execute("AT#XDFUINIT=0,4096")
        transfer = asyncio.ensure_future(modem.transfer("AT#XDFUWRITE=0,0,4096", PAYLOAD))
        with pytest.raises((asyncio.CancelledError, CommandTimeout)):
            await transfer
        await modem.close()
        again = Modem(line)
        await again.open()
        assert (await again.execute("AT+CFUN?")).ok
        await again.close()

    transfer: asyncio.Future[str]
    virtual_time.run(work())


def test_a_transfer_that_is_cancelled_before_its_turn_comes_writes_nothing() -> None:
    """Nothing was announced, so nothing is filled up: it would go to a modem that is busy."""

    async def work(modem: Modem, far: LineModem) -> None:
        far.delay = lambda _command: 60.0
        with pytest.raises(CommandTimeout):
            await modem.execute("AT+CFUN=0", timeout_s=1)
        transfer = asyncio.ensure_future(modem.transfer("AT#XDFUWRITE=0,0,4096", PAYLOAD))
        await asyncio.sleep(1)  # it gets in step
        written: list[bytes] = []
        far.transport.far_end = written.append
        transfer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await transfer
        assert written == []

    run_session(work)


def test_the_end_of_a_broken_off_transfer_is_not_taken_for_that_of_the_next() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        def enter(command: str) -> str:
            far.data_mode = command.startswith("AT#XDFUWRITE")
            return "" if far.data_mode else echoing(command)

        far.body = enter
        with pytest.raises(CommandTimeout):
            await modem.transfer("AT#XDFUWRITE=0,0,9", b"short", timeout_s=1)
        # The modem leaves data mode, and says so, within the turn of the second transfer.
        with pytest.raises(CommandTimeout):
            await modem.transfer("AT#XDFUWRITE=0,0,9", b"short", timeout_s=1)

    run_session(work)


def test_a_text_that_was_not_prompted_for_in_time_is_not_written_later() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        written: list[bytes] = []
        far.transport.far_end = written.append
        with pytest.raises(CommandTimeout):
            await modem.execute("AT+CMGS=5", payload=b"text", timeout_s=1)
        far.transport.deliver(b"\r\n>\r\n")
        assert written == [b"AT+CMGS=5\r"]

    run_session(work)


def test_a_prompt_that_nobody_answered_is_left_and_the_text_not_sent() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        typed = bytearray()

        def prompt(data: bytes) -> None:
            """Take a text, as a modem does after its prompt, which the line lost."""
            typed.extend(data)
            assert b"\x1a" not in typed  # which sends it
            if b"\x1b" in typed:
                far.transport.far_end = far.receive
                far.receive(typed.partition(b"\x1b")[2])

        def ask(command: str) -> str | None:
            if command != "AT+CMGS=5":
                return echoing(command)
            far.transport.far_end = prompt
            return None

        far.body = ask
        far.say, say = lambda *lines: None, far.say  # type: ignore[method-assign]
        with pytest.raises(CommandTimeout):
            await modem.execute("AT+CMGS=5", payload=b"text", timeout_s=1)
        far.say = say  # type: ignore[method-assign]
        assert (await modem.execute("AT+T1")).lines == ("for AT+T1",)

    run_session(work)


def test_slow_readers_lose_the_oldest_notices_and_learn_how_many() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        with modem.notices("+CEREG", limit=3) as notices, modem.notices(Notice) as every:
            for number in range(5):
                far.say(f"+CEREG: {number}")
            far.say("+CSCON: 1")
            assert [(await anext(notices)).line for _ in range(3)] == [
                "+CEREG: 2",
                "+CEREG: 3",
                "+CEREG: 4",
            ]
            assert notices.dropped == 2
            assert [(await anext(every)).line for _ in range(6)][-1] == "+CSCON: 1"
            assert every.dropped == 0

    run_session(work)


def test_what_waited_in_the_port_is_kept_for_who_listens_later() -> None:
    async def session() -> None:
        far = LineModem(echoing)
        modem = Modem(far.transport)
        opened = far.transport.open

        async def with_banner(receiver: Receiver) -> None:
            await opened(receiver)
            far.transport.deliver(b"*** Booting nRF Connect SDK ***\r\nhello\r\n")

        far.transport.open = with_banner  # type: ignore[method-assign]
        await modem.open()
        with modem.lines() as lines:
            assert await anext(lines) == Log("*** Booting nRF Connect SDK ***")
            assert await anext(lines) == Restart("*** Booting nRF Connect SDK ***")
            assert await anext(lines) == Unknown("hello")
            assert lines.dropped == 0
        await modem.close()

    virtual_time.run(session())


def test_what_the_backlog_had_no_room_for_is_told_once() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.transport.deliver(b"hello\r\n" * 260)
        with modem.lines() as lines, modem.lines() as later:
            assert (lines.dropped, later.dropped) == (4, 0)

    run_session(work)


def test_a_line_that_was_lent_is_in_step_again_before_another_command_comes() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        async def type_half(write: Callable[[bytes], Awaitable[None]]) -> None:
            await write(b"AT+CFU")

        far.received.clear()
        await modem.pass_through(ByteReceiver(), type_half)
        assert far.received == ["AT+CFU~~~~", "AT+CMEE?", "AT"]

    run_session(work)


def test_who_was_lent_the_line_writes_no_faster_than_it_takes() -> None:
    """Else all that is written waits in memory."""

    async def work(modem: Modem, far: LineModem) -> None:
        async def push(write: Callable[[bytes], Awaitable[None]]) -> None:
            far.transport.drain = has_room.wait  # type: ignore[method-assign,assignment]
            asyncio.get_running_loop().call_later(1.0, has_room.set)
            await write(b"AT\r")
            assert has_room.is_set()

        has_room = asyncio.Event()
        await modem.pass_through(ByteReceiver(), push)

    run_session(work)


def test_closing_a_suspect_link_takes_bounded_time() -> None:
    async def session() -> float:
        far = LineModem(echoing)
        modem = Modem(far.transport)
        await modem.open()
        far.transport.far_end = lambda _data: None
        with pytest.raises(CommandTimeout):
            await modem.execute("AT", timeout_s=1)
        loop = asyncio.get_running_loop()
        started = loop.time()
        await modem.close()
        return loop.time() - started

    assert virtual_time.run(session()) < 4


def test_a_closed_modem_is_freed_without_the_garbage_collector() -> None:
    """A thousand tests of a replay would keep a thousand of them until it runs."""

    async def session() -> weakref.ref[Modem]:
        modem = Modem(ReplayTransport(parse_transcript("> AT+CGMM\n< nRF9160-SICA\n< OK\n")))
        await modem.open()
        assert (await modem.execute("AT+CGMM")).ok
        await modem.close()
        return weakref.ref(modem)

    gc.disable()
    try:
        assert asyncio.run(session())() is None
    finally:
        gc.enable()
