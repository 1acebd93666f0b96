"""What each event makes of a link, seen by what it writes before the next command."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.driver.link import Link
from at.protocol.errors import AtError, CommandTimeout, LinkLost, ModemReset, NoAnswer
from tests.support.harness import virtual_time
from tests.support.modem.line_modem import LineModem, echoing

RESYNCHRONISED = ["~~~~", "AT+CMEE?"]
RESTORED = [*RESYNCHRONISED, "AT+SET"]
LEFT_DATA_MODE = ["+++", *RESYNCHRONISED]


class Line:
    """A link to a modem that answers everything, and what is written to it."""

    def __init__(self) -> None:
        self.far = LineModem(echoing)
        self.written: list[str] = []
        self.far.transport.far_end = self._receive
        self.link = Link(self.far.transport, lambda _item: None, lambda _error: None)
        self.link.after_restart = self._restore
        self.while_restoring: Callable[[], object] = lambda: None

    def _receive(self, data: bytes) -> None:
        self.written.append(data.decode().strip())
        self.far.receive(data)

    async def _restore(self) -> None:
        await self.link.exchange("AT+SET", 1)
        act, self.while_restoring = self.while_restoring, lambda: None
        act()

    async def before_the_next(self) -> list[str]:
        """Send two commands; return what was written before the first, and nothing may be
        written between them."""
        self.written.clear()
        await self.link.ask("AT+T1", timeout_s=1)
        first = self.written.index("AT+T1")
        await self.link.ask("AT+T2", timeout_s=1)
        assert self.written[first + 1 :] == ["AT+T2"]
        return self.written[:first]

    # --- events

    def doubt(self) -> None:
        self.far.say("OK")

    def restart(self) -> None:
        self.far.say("Ready")

    def data(self) -> None:
        self.link.begin_data()

    def data_end(self) -> None:
        self.link.end_data()

    def unplug(self) -> None:
        self.far.transport.unplug()


def on_a_line(work: Callable[[Line], Awaitable[None]]) -> None:
    async def session() -> None:
        line = Line()
        await line.link.open()
        await work(line)
        await line.link.close()

    virtual_time.run(session())


@pytest.mark.parametrize(
    ("events", "written"),
    [
        ("", []),
        ("doubt", RESYNCHRONISED),
        ("doubt doubt", RESYNCHRONISED),
        ("doubt restart", RESTORED),
        ("restart", RESTORED),
        ("restart restart", RESTORED),
        ("restart doubt", RESTORED),
        ("data", LEFT_DATA_MODE),
        ("data data_end", []),
        ("data doubt", LEFT_DATA_MODE),
        ("data restart", RESTORED),
        ("data doubt data_end", []),
        ("data restart data_end", RESTORED),
        ("doubt data", LEFT_DATA_MODE),
        ("doubt data data_end", []),
        ("restart data", RESTORED),
    ],
)
def test_what_happened_decides_what_comes_before_the_next_command(
    events: str, written: list[str]
) -> None:
    async def work(line: Line) -> None:
        for event in events.split():
            getattr(line, event)()
        assert await line.before_the_next() == written

    on_a_line(work)


@pytest.mark.parametrize("events", ["", "doubt", "data", "restart", "unplug", "unplug doubt data"])
def test_from_every_state_a_lost_link_stays_lost(events: str) -> None:
    async def work(line: Line) -> None:
        for event in [*events.split(), "unplug", "doubt", "restart", "data", "data_end"]:
            getattr(line, event)()
        line.link.mark_suspect()
        line.link.mark_trusted()
        for _ in range(2):
            with pytest.raises(LinkLost, match="unplugged"):
                await line.link.ask("AT+T1", timeout_s=1)
        assert line.written == []

    on_a_line(work)


@pytest.mark.parametrize("events", ["", "doubt", "data", "restart"])
def test_who_proved_the_link_by_other_means_has_it_in_step(events: str) -> None:
    async def work(line: Line) -> None:
        for event in events.split():
            getattr(line, event)()
        line.link.mark_trusted()
        assert await line.before_the_next() == []

    on_a_line(work)


@pytest.mark.parametrize(
    ("event", "written"),
    [("doubt", [*RESTORED, *RESYNCHRONISED]), ("restart", [*RESTORED, *RESTORED])],
)
def test_what_happens_while_the_settings_are_restored_is_put_right_as_well(
    event: str, written: list[str]
) -> None:
    async def work(line: Line) -> None:
        line.restart()
        line.while_restoring = getattr(line, event)
        assert await line.before_the_next() == written

    on_a_line(work)


def test_a_loss_while_the_settings_are_restored_is_told() -> None:
    async def work(line: Line) -> None:
        line.restart()
        line.while_restoring = line.unplug
        for _ in range(2):
            with pytest.raises(LinkLost, match="unplugged"):
                await line.link.ask("AT+T1", timeout_s=1)

    on_a_line(work)


@pytest.mark.parametrize("error", [CommandTimeout("late"), ModemReset("again")])
def test_settings_that_could_not_be_restored_are_restored_again(error: AtError) -> None:
    async def work(line: Line) -> None:
        def fail() -> None:
            raise error

        line.restart()
        line.while_restoring = fail
        assert await line.before_the_next() == [*RESTORED, *RESTORED]

    on_a_line(work)


def test_a_cancel_between_two_settings_leaves_them_to_the_next_command() -> None:
    async def work(line: Line) -> None:
        def cancel() -> None:
            raise asyncio.CancelledError

        for event in (line.restart, line.doubt):
            line.restart()
            line.while_restoring = lambda event=event: (event(), cancel())
            with pytest.raises(asyncio.CancelledError):
                await line.link.ask("AT+T1", timeout_s=1)
            assert await line.before_the_next() == RESTORED

    on_a_line(work)


def test_a_modem_that_keeps_restarting_is_given_up() -> None:
    async def work(line: Line) -> None:
        def again() -> None:
            line.restart()
            line.while_restoring = again

        line.restart()
        line.while_restoring = again
        with pytest.raises(NoAnswer, match="keeps restarting"):
            await line.link.ask("AT+T1", timeout_s=1)
        line.while_restoring = lambda: None
        assert await line.before_the_next() == RESTORED

    on_a_line(work)


@given(
    st.lists(
        st.sampled_from(
            ["doubt", "restart", "data", "transferred", "ask", "late", "cancelled", "restoring"]
        ),
        max_size=10,
    )
)
def test_after_any_events_a_command_gets_its_own_answer(events: list[str]) -> None:
    async def work(line: Line) -> None:
        for number, event in enumerate(events):
            slow = event in {"late", "cancelled"}
            line.far.delay = lambda _command, slow=slow: 0.3 if slow else 0.0
            if event in {"ask", "late"}:
                with contextlib.suppress(CommandTimeout, NoAnswer):
                    answer = await line.link.ask(f"AT+N{number}", timeout_s=0.2)
                    assert answer.lines == (f"for AT+N{number}",)
            elif event == "cancelled":
                task = asyncio.create_task(line.link.ask(f"AT+N{number}", timeout_s=1))
                await asyncio.sleep(0.1)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            elif event == "transferred":
                async with line.link.turns:
                    with contextlib.suppress(NoAnswer):
                        await line.link.make_ready()
                        line.data()
                        line.data_end()
            elif event == "restoring":
                line.restart()
                line.while_restoring = line.restart
            else:
                getattr(line, event)()
        line.far.delay = lambda _command: 0.0
        await asyncio.sleep(1)
        assert (await line.link.ask("AT+LAST", timeout_s=1)).lines == ("for AT+LAST",)

    on_a_line(work)
