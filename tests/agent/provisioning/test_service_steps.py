"""The service is asked for what is still needed, and never for another key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from standin import StandIn
from virtual_tray import GOAL, Tray, provision, station_of

from agent.provisioning.goal import CertificateSource, RegistrationMethod


@pytest.mark.contract("D10.5")
async def test_a_modem_without_time_is_told_how_to_get_it(standin: StandIn, tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path, replace(GOAL, set_clock=False)) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.step) == ("failed", "proof")
    assert "AT+CCLK" in outcome.hint


async def test_a_key_that_the_service_has_lost_is_registered_again_and_no_other(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        [first] = await provision(station, tray, 1)
        table = standin.cloud.table("device_keys")
        [(name, before)] = table.items()
        table.delete(name)
        [again] = await provision(station, tray, 1)
        assert (again.outcome, again.writes, again.reason) == ("done", 0, "")
        assert table.get(name)["public"] == before["public"]
        [last] = await provision(station, tray, 1)
    assert (first.outcome, last.outcome) == ("done", "unchanged")


async def test_a_board_that_is_not_to_be_registered_is_not_when_its_token_is_refused(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    goal = replace(GOAL, registration=RegistrationMethod.NONE, certificate=CertificateSource.NONE)
    async with station_of(standin, tmp_path, goal) as station:
        [outcome] = await provision(station, tray, 1)
    assert (outcome.outcome, outcome.step, outcome.exit) == ("failed", "proof", 5)
    assert not standin.cloud.table("device_keys").items()
