"""The state of a kit before an update: what is not read is not put back."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agent.fota.kit_state import ModemState
from at.driver.modem import Modem
from at.protocol.errors import LinkLost, NoAnswer
from tests.support.harness import virtual_time
from tests.support.modem.damaged_line import DamagedLine
from tests.support.modem.line_modem import LineModem, run_session


def same(modem: Modem) -> Callable[[], Awaitable[Modem]]:
    async def link() -> Modem:
        return modem

    return link


def test_a_kit_that_is_silent_while_its_state_is_read_is_not_updated_without_it():
    """Else it would be left off, and the job would be told as done."""

    async def work(modem: Modem, far: LineModem) -> None:
        far.delay = lambda command: 20.0 * (command == "AT+CNEC?")
        with pytest.raises(NoAnswer):
            await ModemState(same(modem), 1.0).find()

    run_session(work)


def test_a_kit_that_is_away_is_not_updated_without_its_state():
    async def away() -> Modem:
        await asyncio.sleep(3600.0)
        raise AssertionError

    async def find() -> None:
        with pytest.raises(LinkLost, match="away"):
            await ModemState(away, 1.0).find()

    virtual_time.run(find())


def test_a_modem_that_refuses_to_tell_its_mode_is_updated_all_the_same():
    async def work(modem: Modem, far: LineModem) -> None:
        far.reads, far.body = {}, lambda _command: None
        assert await ModemState(same(modem), 1.0).find() is None

    run_session(work)


async def test_a_link_that_is_lost_is_no_kit_without_a_state() -> None:
    # The install would begin over the next link, and what it restarts would be put back by nobody.
    modem = Modem(DamagedLine("AT+CFUN?", cuts=True))
    await modem.open()
    with pytest.raises(LinkLost):
        await ModemState(same(modem), 0.0).find()
    await modem.close()
