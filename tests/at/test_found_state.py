from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from at.driver.modem import Modem
from at.found_state import FoundState, put_back, read_found_state
from at.protocol.command import Command
from at.protocol.errors import LinkLost, NoAnswer
from at.virtual.transport import VirtualTransport
from tests.support.harness.manual_clock import ManualClock
from tests.support.modem.damaged_line import DamagedLine


@asynccontextmanager
async def kit(*faults: str) -> AsyncIterator[Modem]:
    modem = Modem(VirtualTransport(dialect="serial-modem", instant=True, faults=faults))
    await modem.open()
    try:
        yield modem
    finally:
        await modem.close()


async def mode(modem: Modem) -> str:
    return (await modem.execute("AT+CFUN?")).lines[0]


async def until_registered(modem: Modem) -> None:
    with modem.notices("+CEREG") as notices:
        await modem.execute("AT+CEREG=2")
        while not (await read_found_state(modem)).registered:
            await anext(notices)


async def test_what_a_restart_clears_is_put_back() -> None:
    async with kit() as modem:
        for line in ("AT%XSYSTEMMODE=1,0,0,0", "AT+CFUN=1", "AT+CNEC=24", "AT+CSCON=1"):
            assert (await modem.execute(line)).ok, line
        await until_registered(modem)
        found = await read_found_state(modem)
        assert found.settings["+CEREG"] == "2"
        assert found.clock
        await modem.execute("AT#XMODEMRESET")
        assert await mode(modem) == "+CFUN: 0"
        await modem.execute("AT%XSYSTEMMODE=0,1,0,0")
        said = await put_back(modem, found, 30.0, ManualClock())
        assert said.startswith("back online after 3")
        now = await read_found_state(modem)
    assert (now.mode, now.registered, now.settings) == (1, True, found.settings)
    assert now.clock


@pytest.mark.parametrize("before", [0, 4])
async def test_a_modem_that_was_found_off_stays_off(before: int) -> None:
    clock = ManualClock()
    async with kit() as modem:
        await modem.execute(f"AT+CFUN={before}")
        found = await read_found_state(modem)
        await modem.execute("AT#XMODEMRESET")
        assert await put_back(modem, found, 30.0, clock) == ""
        assert await mode(modem) == f"+CFUN: {before}"
    assert not clock.waits


async def test_the_firmware_may_turn_it_on_itself_and_its_system_mode_is_left() -> None:
    found = FoundState(1, registered=True, settings={"%XSYSTEMMODE": "0,1,0,0"})
    clock = ManualClock()
    async with kit() as modem:
        await modem.execute("AT+CFUN=1")
        assert (await put_back(modem, found, 30.0, clock)).startswith("back online after ")
        settings = (await read_found_state(modem)).settings
    assert settings["%XSYSTEMMODE"] != "0,1,0,0"
    assert sum(clock.waits) < 30.0


async def test_a_modem_that_is_mute_while_it_starts_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silences = iter([NoAnswer("mute"), NoAnswer("mute")])
    async with kit() as modem:
        await modem.execute("AT+CFUN=1")
        send = modem.send

        async def late(command: Command[object]) -> object:
            if error := next(silences, None):
                raise error
            return await send(command)

        monkeypatch.setattr(modem, "send", late)
        said = await put_back(modem, FoundState(1), 30.0, ManualClock())
    assert said == "on again after 2 s"


async def test_a_kit_that_is_unplugged_is_not_waited_for() -> None:
    clock = ManualClock()
    async with kit() as modem:
        await modem.close()
        with pytest.raises(LinkLost):
            await put_back(modem, FoundState(1), 30.0, clock)
    assert clock.waits == []


async def test_the_clock_goes_on_where_the_network_gives_no_time() -> None:
    found = FoundState(1, clock="26/03/30,12:00:00+08", at=time.time())
    async with kit("no-time") as modem:
        await put_back(modem, found, 0.0, ManualClock())
        assert (await read_found_state(modem)).clock.startswith("26/03/30,")


async def test_the_time_that_the_network_gave_stays() -> None:
    found = FoundState(1, registered=True, clock="20/03/30,12:00:00+08", at=time.time())
    async with kit() as modem:
        await put_back(modem, found, 0.0, ManualClock())
        assert not (await read_found_state(modem)).clock.startswith("20/")


@pytest.mark.parametrize(
    ("fault", "words"), [("denied=15", "not back online: "), ("no-sim", "not back online: ")]
)
async def test_a_kit_that_does_not_come_back_is_told_with_its_cause(fault: str, words: str) -> None:
    async with kit(fault) as modem:
        said = await put_back(modem, FoundState(1, registered=True), 0.0, ManualClock())
    assert said.startswith(words)
    assert "does not say why" not in said
    assert "has not registered" not in said


@pytest.mark.parametrize("command", ["AT+CFUN?", "AT+CFUN=1"])
async def test_one_byte_that_the_line_loses_leaves_no_kit_offline(command: str) -> None:
    line = DamagedLine(command, registered=True)
    modem = Modem(line)
    await modem.open()
    try:
        found = await read_found_state(modem)
        await modem.execute("AT#XMODEMRESET")
        line.done = False
        said = await put_back(modem, found, 0.0, ManualClock())
        assert said.startswith("back online after ")
        assert (await mode(modem), line.done) == ("+CFUN: 1", True)
    finally:
        await modem.close()
