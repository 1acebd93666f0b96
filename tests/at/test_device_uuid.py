"""The modem's UUID, from whichever question its firmware answers."""

from __future__ import annotations

import pytest

from at.device_uuid import read_device_uuid
from at.driver.modem import Modem
from at.protocol.errors import CommandRejected
from at.virtual.transport import VirtualTransport
from tests.support.modem.line_modem import LineModem, run_session

UUID = "50363154-3931-44f0-8022-121b6401627d"
REFUSALS = (None, "%DEVICEUUID: cut sho")


@pytest.mark.parametrize("first", REFUSALS)
def test_serial_modem_is_asked_where_the_modem_does_not_answer(first: str | None) -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.body = {"AT%DEVICEUUID": first, "AT#XUUID": f"#XUUID: {UUID}"}.get
        assert await read_device_uuid(modem) == UUID

    run_session(work)


async def test_an_nrf9160_states_it_in_a_token() -> None:
    modem = Modem(VirtualTransport(model="nrf9160", instant=True))
    await modem.open()
    try:
        assert len(await read_device_uuid(modem)) == len(UUID)
    finally:
        await modem.close()


def test_the_last_refusal_is_raised_where_nothing_is_told() -> None:
    async def work(modem: Modem, far: LineModem) -> None:
        far.body = lambda _command: None
        with pytest.raises(CommandRejected, match="%JWT"):
            await read_device_uuid(modem)
        # A refusal right behind another may be its copy: the link makes sure before the next one.
        asked = [line.partition("=")[0] for line in far.received]
        assert [
            line for line in asked if line not in {"~~~~", "AT+CMEE", "AT+CMEE?", "AT+CGMM"}
        ] == ["AT%DEVICEUUID", "AT#XUUID", "AT%JWT"]

    run_session(work)
