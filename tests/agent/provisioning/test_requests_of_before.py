"""The request of an earlier registration is not taken for that of the one that was cut off."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from standin import StandIn
from virtual_tray import GOAL, PowerPulled, Tray, provision, station_of

from agent.provisioning.goal import Goal
from agent.provisioning.registrar import Registrar

BY_IMEI = replace(GOAL, id_prefix="nrf-", prove=False)


class KilledBeforeItSends(Registrar):
    async def submit(self, device_id: str, pem: str, attestation: str) -> str:
        raise PowerPulled


async def killed_at_register(standin: StandIn, folder: Path, tray: Tray, goal: Goal) -> None:
    async with station_of(standin, folder, goal) as station:
        assert station.registrar is not None
        station.registrar = KilledBeforeItSends(station.registrar.client, goal.registration)
        with suppress(PowerPulled):
            await provision(station, tray, 1)


async def test_another_device_id_is_registered_after_a_kill(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        [usual] = await provision(station, tray, 1)
    await killed_at_register(standin, tmp_path, tray, BY_IMEI)
    async with station_of(standin, tmp_path, BY_IMEI) as station:
        [outcome] = await provision(station, tray, 1)
    assert outcome.outcome == "done"
    owners = {row["device_id"] for _, row in standin.cloud.table("device_keys").items()}
    assert owners == {usual.device_id, outcome.device_id}


async def test_a_key_that_the_service_has_lost_is_registered_after_a_kill(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        await provision(station, tray, 1)
    table = standin.cloud.table("device_keys")
    [(name, _)] = table.items()
    table.delete(name)
    await killed_at_register(standin, tmp_path, tray, GOAL)
    async with station_of(standin, tmp_path) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.reason) == ("done", "")
