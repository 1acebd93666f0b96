"""A batch of virtual boards at the stand-in: each is done once, and stops no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509

from agent.errors import RefusedByRule
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.ca.certificates import public_key_of
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.running.batch import require_count
from at.virtual.transport import VirtualTransport
from tests.support.cloud.standin import StandIn
from tests.support.keys.operator_ca import openssl_verifies_all
from tests.support.provisioning.ledgers import boards_of
from tests.support.provisioning.virtual_tray import Tray, provision, station_of


@pytest.mark.contract("C10", "D9.3", "D10.3", "D10.8", "D2.2")
async def test_a_tray_of_sixteen_is_provisioned_and_a_rerun_writes_nothing(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)
    async with station_of(standin, tmp_path) as station:
        first = await provision(station, tray, 16)
        assert {(one.outcome, one.writes, one.reason) for one in first} == {("done", 3, "")}
        again = await provision(station, tray, 16)
        assert {(one.outcome, one.writes) for one in again} == {("unchanged", 0)}
        records = await station.ledger.call(boards_of)
    assert len({record.registered_key for record in records}) == 16
    assert {record.writes for record in records} == {3}


@pytest.mark.contract("D10.8")
async def test_openssl_accepts_every_certificate_of_a_tray_of_64(
    standin: StandIn, tmp_path: Path
) -> None:
    async with station_of(standin, tmp_path) as station:
        outcomes = await provision(station, Tray(tmp_path), 64)
        assert {(one.outcome, one.reason) for one in outcomes} == {("done", "")}
        records = await station.ledger.call(boards_of)
    leaves = [x509.load_pem_x509_certificate(record.certificate.encode()) for record in records]
    assert len({leaf.serial_number for leaf in leaves}) == 64
    assert [public_key_of(leaf) for leaf in leaves] == [record.public_key for record in records]
    openssl_verifies_all(tmp_path / "ca/ca.pem", [record.certificate for record in records])


async def test_one_board_that_fails_stops_no_other(standin: StandIn, tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    healthy = tray.transport

    def one_is_silent(port: str) -> VirtualTransport:
        if port == "board1":
            return VirtualTransport(instant=True, faults=("silent",))
        return healthy(port)

    tray.transport = one_is_silent  # type: ignore[method-assign]
    async with station_of(standin, tmp_path) as station:
        outcomes = await provision(station, tray, 3)
    assert [one.outcome for one in outcomes] == ["done", "failed", "done"]
    assert outcomes[1].exit == 3


async def test_a_defect_of_ours_at_one_board_stops_no_other(
    standin: StandIn, tmp_path: Path
) -> None:
    tray = Tray(tmp_path)

    def trips(location: BoardLocation, at: ProvisioningStep) -> None:
        if (location.port, at) == ("board1", ProvisioningStep.KEY):
            raise ZeroDivisionError

    async with station_of(standin, tmp_path) as station:
        outcomes = await provision(station, tray, 3, trips)
        again = await provision(station, tray, 3)
    assert [one.outcome for one in outcomes] == ["done", "failed", "done"]
    assert (outcomes[1].exit, outcomes[1].step) == (1, "key")
    assert "ZeroDivisionError" in outcomes[1].reason
    assert [one.outcome for one in again] == ["unchanged", "done", "unchanged"]


def test_another_number_of_boards_than_expected_stops_everything(tmp_path: Path) -> None:
    locations = Tray(tmp_path).locations(3)
    require_count(locations, None)
    require_count(locations, 3)
    for number in (2, 4):
        with pytest.raises(RefusedByRule, match=f"3 boards found, {number} expected: S0, S1, S2"):
            require_count(locations, number)
