"""A request of the Serial Modem for a position ends with its notice, or in time."""

from __future__ import annotations

import asyncio

import pytest

from at.commands.serial_modem.cloud import LocateByCloud
from at.driver.modem import Modem
from at.protocol.errors import CommandRejected
from at.virtual.transport import VirtualTransport
from tests.support.modem.line_modem import LineModem, run_session


async def connected() -> tuple[Modem, VirtualTransport]:
    transport = VirtualTransport(firmware="serial-modem-2.0.0", instant=True)
    modem = Modem(transport)
    await modem.open()
    for line in ("AT%KEYGEN=16842753,2,0", "AT+CFUN=1", "AT#XNRFCLOUD=1"):
        assert (await modem.execute(line)).ok
    return modem, transport


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("AT#XNRFCLOUDPOS=4,0", True),
        ("at#xnrfcloudpos=1,0", True),
        ("AT#XNRFCLOUDPOS", False),
        ("AT#XNRFCLOUD=1", False),
        ("AT", False),
    ],
)
async def test_only_the_command_that_asks_begins_one(line: str, is_one: bool) -> None:
    modem, _ = await connected()
    assert modem.own_position.begin_with(line, modem.notices) is is_one
    await modem.close()


async def test_the_notice_ends_it_and_so_does_a_refusal() -> None:
    modem, _ = await connected()
    await modem.send(LocateByCloud(1))
    await modem.own_position.wait()
    with pytest.raises(CommandRejected):
        await modem.send(LocateByCloud(0))
    assert_none(modem)
    assert not (await modem.execute("AT#XNRFCLOUDPOS=0,0")).ok
    assert_none(modem)
    await modem.close()


def test_one_whose_notice_is_lost_ends_in_half_a_minute() -> None:
    async def wait(modem: Modem, _far: LineModem) -> None:
        now = asyncio.get_running_loop().time
        before = now()
        modem.own_position.begin(modem.notices)
        await modem.own_position.wait()
        assert 25.0 < now() - before <= 30.0
        assert_none(modem)

    run_session(wait)


def assert_none(modem: Modem) -> None:
    waiting = modem.own_position.wait()
    with pytest.raises(StopIteration):  # it does not even begin to wait
        waiting.send(None)
