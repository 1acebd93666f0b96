"""A kit's own token, made by its modem and judged by the stand-in over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent.auth.modem_jwt import ModemJwt, ask_modem
from agent.call import Scheme
from agent.cloud.device_reads import FetchDevice
from agent.cloud.fota_jobs import FetchCurrentJob
from agent.cloud.public_keys import FetchBulkOperation, NewDevice, OnboardDevices
from agent.errors import Forbidden, Unauthorized
from agent.location.calls import LocateCell
from at.commands.functional_mode import SetFunctionalMode
from at.commands.identity import ReadDeviceUuid
from at.commands.keys import GenerateKey
from at.driver.modem import Modem
from at.virtual.radio_world import Coordinates, load_world
from at.virtual.transport import VirtualTransport
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import api_key, speaking_for_kit
from tests.support.location.moving_kit import path

TAG = 16842753
NAMED = "nrf-001018340000012"


@pytest.fixture
async def modem() -> AsyncIterator[Modem]:
    made = Modem(VirtualTransport(instant=True))
    await made.open()
    yield made
    await made.close()


async def in_service(modem: Modem, standin: StandIn, device_id: str) -> None:
    """Make a key on the modem, register its public half for the device, and switch the kit on."""
    key = await modem.send(GenerateKey(TAG, response_content=1))
    async with speaking_for_kit(standin, api_key(standin)) as client:
        request = await client.send(OnboardDevices((NewDevice(device_id, key.public_key_pem),)))
        while not (found := await client.send(FetchBulkOperation(request))).done:
            standin.clock.advance(1)
        assert found.status == "SUCCEEDED"
    await modem.subscribe("AT+CEREG=1")
    with modem.notices("+CEREG") as heard:
        await modem.send(SetFunctionalMode(1))
        while not (await anext(heard)).line.startswith("+CEREG: 1"):
            pass


@pytest.mark.contract("D10.3", "D1.5")
async def test_a_kit_whose_id_is_its_uuid_signs_without_a_subject(
    modem: Modem, standin: StandIn
) -> None:
    uuid = (await modem.send(ReadDeviceUuid())).uuid
    await in_service(modem, standin, uuid)
    for configured in ("", uuid, uuid.upper()):
        async with speaking_for_kit(standin, ModemJwt(ask_modem(modem, TAG), configured)) as client:
            found = await client.send(FetchDevice(uuid), scheme=Scheme.DEVICE_JWT)
            assert found.id == uuid
            assert await client.send(FetchCurrentJob(uuid), scheme=Scheme.DEVICE_JWT) is None


@pytest.mark.contract("D10.5", "D10.3")
async def test_a_kit_with_another_id_signs_with_it_as_the_subject(
    modem: Modem, standin: StandIn
) -> None:
    await in_service(modem, standin, NAMED)
    async with speaking_for_kit(standin, ModemJwt(ask_modem(modem, TAG), NAMED)) as client:
        assert (await client.send(FetchDevice(NAMED), scheme=Scheme.DEVICE_JWT)).id == NAMED


async def test_a_kit_without_a_key_in_the_tag_signs_with_its_identity_key(
    modem: Modem, standin: StandIn
) -> None:
    await in_service(modem, standin, NAMED)
    assert (await ask_modem(modem, TAG + 1)(NAMED, 600)).claims["sub"] == NAMED


@pytest.mark.contract("D10.5")
async def test_without_its_subject_the_401_names_both_ways(modem: Modem, standin: StandIn) -> None:
    await in_service(modem, standin, NAMED)
    async with speaking_for_kit(standin, ModemJwt(ask_modem(modem, TAG))) as client:
        with pytest.raises((Unauthorized, Forbidden)) as told:
            await client.send(FetchDevice(NAMED), scheme=Scheme.DEVICE_JWT)
    assert isinstance(told.value, Unauthorized)
    assert "kit.device_id" in told.value.hint
    assert "certificate that uses the UUID" in told.value.hint


@pytest.mark.contract("D8.3", "D10.3")
async def test_the_legacy_location_path_takes_the_kits_own_token(
    modem: Modem, standin: StandIn
) -> None:
    await in_service(modem, standin, NAMED)
    lat, lon = path()[0]
    cells = [
        {"mcc": 1, "mnc": 1, "eci": heard.cell.eci, "tac": heard.cell.tac, "rsrp": heard.rsrp_dbm}
        for heard in load_world().cells(Coordinates(lat, lon))[:5]
    ]
    async with speaking_for_kit(standin, ModemJwt(ask_modem(modem, TAG), NAMED)) as client:
        place = await client.send(LocateCell(None, cells=cells))
    assert place is not None
    assert place.uncertainty_m is not None
    assert place.distance_m(lat, lon) <= place.uncertainty_m
    # Its 401 is about the kit's token, and about no other.
    async with speaking_for_kit(standin, ModemJwt(ask_modem(modem, TAG), "another")) as client:
        with pytest.raises(Unauthorized) as told:
            await client.send(LocateCell(None, cells=cells))
    assert told.value.hint.startswith("is the device's public key registered?")
