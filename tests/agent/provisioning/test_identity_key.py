"""A device identity key at work dies in no silence: the modem lists it nowhere, and it may sign."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec.structs import replace

from agent.cloud import DeviceCloud
from agent.cloud.public_keys import NewDevice, PublicKey
from agent.provisioning.ledger import Ledger
from agent.provisioning.planning.goal import RegistrationMethod
from agent.standin.faults import set_faults
from tests.support.cloud.standin import StandIn
from tests.support.provisioning.tray import registered_keys
from tests.support.provisioning.virtual_tray import GOAL, Tray, provision, station_of


async def register_identity_key(
    standin: StandIn, folder: Path, tray: Tray, method: RegistrationMethod
) -> None:
    """Have the service know the first board by its identity key, as another station may."""
    [location] = tray.locations(1)
    folder.mkdir()  # noqa: ASYNC240 - nothing else runs
    async with station_of(standin, folder) as station, tray.open(location) as board:
        device_id = (await board.read()).uuid
        public = tray.identity_key(location)
        pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        assert station.registrar is not None
        cloud = DeviceCloud(station.registrar.client)
        if method is RegistrationMethod.ONBOARD:
            request = await cloud.onboard([NewDevice(device_id, pem, "", (), ("APP",))])
        else:
            request = await cloud.register_public_keys([PublicKey(device_id, pem)])
        await cloud.wait_for_bulk(request)


@pytest.mark.contract("D10.8")
@pytest.mark.parametrize("method", [RegistrationMethod.ONBOARD, RegistrationMethod.PUBLIC_KEY])
async def test_a_new_ledger_does_not_lock_out_a_board_that_its_identity_key_registered(
    standin: StandIn, tmp_path: Path, method: RegistrationMethod
) -> None:
    tray = Tray(tmp_path)
    await register_identity_key(standin, tmp_path / "factory", tray, method)
    before = registered_keys(standin)
    async with station_of(standin, tmp_path) as station:
        [refused] = await provision(station, tray, 1)
    assert registered_keys(standin) == before
    assert (refused.outcome, refused.exit, refused.step) == ("refused", 4, "other-keys")
    assert (refused.reason_code, refused.writes) == ("second-tag", 0)
    assert "the service has the device identity key of this modem" in refused.reason
    assert refused.hint.startswith("`--second-tag` allows it")
    async with station_of(standin, tmp_path, replace(GOAL, second_tag=True)) as station:
        [told] = await provision(station, tray, 1)
        assert told.outcome == "done"
        runs = await station.ledger.call(lambda ledger: ledger.runs(told.uuid))
    assert registered_keys(standin) != before
    assert runs[-1].consent.startswith("--second-tag: the service has the device identity key")


async def test_a_service_that_says_404_to_any_token_has_no_key_by_that(
    standin: StandIn, tmp_path: Path
) -> None:
    set_faults(standin.cloud, ["server-error=404*2@GET /v1/devices/*"])
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, Tray(tmp_path), 1)
    assert outcome.outcome == "done"


async def test_a_board_that_is_right_has_its_identity_key_asked_for_no_more(
    standin: StandIn, tmp_path: Path
) -> None:
    tray, seen = Tray(tmp_path), list[str]()
    async with station_of(standin, tmp_path) as station:
        await provision(station, tray, 1)
        [again] = await provision(station, tray, 1, lambda _, step: seen.append(step.value))
    assert (again.outcome, "other-keys" in seen) == ("unchanged", False)


async def test_an_erased_board_goes_on_and_its_proof_says_that_the_device_was_there_before(
    standin: StandIn, tmp_path: Path
) -> None:
    now = standin.cloud.clock.time()
    standin.cloud.clock.set(now - 86400)
    await register_identity_key(
        standin, tmp_path / "factory", Tray(tmp_path / "factory"), RegistrationMethod.ONBOARD
    )
    standin.cloud.clock.set(now)
    proofs = []
    async with station_of(standin, tmp_path) as station:
        for _ in range(2):
            [outcome] = await provision(station, Tray(tmp_path), 1)
            assert outcome.ok
            steps = await station.ledger.call(partial(Ledger.steps, uuid=outcome.uuid))
            proofs.append(steps[-1].detail)
    assert "the service has had the device since" in proofs[0]
    assert proofs[1] == "the JWT is accepted"
