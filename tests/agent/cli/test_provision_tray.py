"""A tray of sixteen kits and everything that can go wrong with it, then the same command again.

Kits, service, bench and PostgreSQL are processes of their own. The whole table of failures is run
by `scripts/soak provisioning`; here are many at once, and those of the whole station.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.provisioning.kit_faults import KIT_FAULTS, FaultInjection
from tests.support.provisioning.ledgers import until_free
from tests.support.provisioning.postgres import PostgresMissing, PostgresServer, postgres_if_there
from tests.support.provisioning.station_faults import STATION_FAULTS, StationFault
from tests.support.provisioning.tray import flash_writes
from tests.support.provisioning.tray_trial import Trial, place_of, serial_of, slot_of, tray_trial

# Thirty processes each: what waits for an event that never comes ends by itself, after 120 s.
pytestmark = pytest.mark.timeout(600)

SIXTEEN = range(16)
LEDGERS = ["sqlite", "postgresql"]
IN_CI = [
    pytest.param(fault, ledger, id=f"{fault.name}, {ledger}")
    for name, ledgers in (
        ("killed at key", LEDGERS),
        ("told to end", ["sqlite"]),
        ("database restarted", ["postgresql"]),
        ("ledger's disk full", ["sqlite"]),
    )
    for fault in STATION_FAULTS
    if fault.name == name
    for ledger in ledgers
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgresServer]:
    with contextlib.ExitStack() as stack:
        try:
            yield stack.enter_context(postgres_if_there())
        except PostgresMissing as missing:
            pytest.skip(str(missing))


def server_of(ledger: str, request: pytest.FixtureRequest) -> PostgresServer | None:
    return request.getfixturevalue("cluster") if ledger == "postgresql" else None


def more_writes(trial: Trial) -> dict[int, int]:
    """Return how many writes more than three each board's flash has seen."""
    return {number: flash_writes(trial.kits[number]) - 3 for number in SIXTEEN}


@pytest.mark.parametrize("ledger", LEDGERS)
@pytest.mark.contract("C10", "D9.3", "D10.2", "D10.8")
def test_many_failures_at_once_then_a_rerun_and_every_board_is_done_once(
    tmp_path: Path, ledger: str, request: pytest.FixtureRequest
) -> None:
    # What the ledger does not change need not be waited for twice.
    injected = [fault for fault in KIT_FAULTS if ledger == "sqlite" or not fault.waits]
    by_number = dict(enumerate(injected))
    faults = {number: fault.modem_fault for number, fault in by_number.items() if fault.modem_fault}
    server = server_of(ledger, request)
    with (
        tray_trial(tmp_path / "tray", SIXTEEN, server=server, faults=faults) as trial,
        contextlib.ExitStack() as stack,
    ):
        injection = FaultInjection(trial, by_number, stack)
        injection.prepare()
        run = trial.begin("--expect", "16")
        injection.during(run)
        ran = run.ended()
        assert len(ran.by_port) == 16
        lines = {number: ran.by_port[trial.ports[number]] for number in SIXTEEN}
        wrongs = [
            wrong for number in by_number for wrong in injection.deviations(number, lines[number])
        ]
        assert wrongs == []
        others = [lines[number]["outcome"] for number in SIXTEEN if number not in by_number]
        assert others == ["done"] * (16 - len(injected))
        assert ran.code == max(fault.exit for fault in injected)

        injection.repair()
        again = trial.run(*injection.rerun_options())
        assert {line["reason"] for line in again.by_port.values()} == {""}
        assert {line["outcome"] for line in again.by_port.values()} == {"done", "unchanged"}
        assert again.code == 0
        settled = more_writes(trial)
        last = trial.run()
        assert last.last == {"summary": {"boards": 16, "unchanged": 16, "ok": True}}
        assert more_writes(trial) == settled
        assert trial.wrongs(SIXTEEN) == []
    for number in SIXTEEN:
        allowed = by_number[number].extra_writes if number in by_number else (0,)
        assert settled[number] in allowed, by_number.get(number)


@pytest.mark.parametrize(("fault", "ledger"), IN_CI)
def test_whatever_happens_to_the_station_a_rerun_finishes_the_tray(
    tmp_path: Path, fault: StationFault, ledger: str, request: pytest.FixtureRequest
) -> None:
    with tray_trial(tmp_path / "tray", SIXTEEN, server=server_of(ledger, request)) as trial:
        assert fault.deviations(fault.on(trial, board=5)) == []
        fault.repair(trial)
        if trial.ledger:
            until_free(trial.ledger)
        again = trial.run()
        assert [line for line in again.by_port.values() if line["exit"]] == []
        assert again.code == 0, again.errors
        assert trial.wrongs(SIXTEEN) == []
        assert set(more_writes(trial).values()) <= ({0, 2} if fault.orphans else {0})


def test_two_stations_share_a_tray_and_each_board_is_done_by_one(
    tmp_path: Path, cluster: PostgresServer
) -> None:
    """Two processes that were both told of all sixteen kits, and one PostgreSQL ledger."""
    with tray_trial(tmp_path / "tray", SIXTEEN, server=cluster) as trial:
        backwards = list(reversed(trial.ports))
        stations = [trial.begin(), trial.begin(ports=backwards)]
        here, there = (station.ended() for station in stations)
        for port in trial.ports:
            ended = sorted([here.by_port[port]["outcome"], there.by_port[port]["outcome"]])
            assert ended in (["busy", "done"], ["done", "unchanged"])
        assert trial.run().code == 0
        assert trial.wrongs(SIXTEEN) == []
        assert set(more_writes(trial).values()) == {0}


def test_every_kit_on_the_hub_is_found_counted_and_named_by_its_socket(tmp_path: Path) -> None:
    with tray_trial(tmp_path / "tray", SIXTEEN) as trial:
        trial.put_on_hub(SIXTEEN)
        miscounted = trial.begin("--all", "--expect", "17", ports=[]).ended()
        assert (miscounted.code, miscounted.last["error"]["exit"]) == (4, 4)
        assert "16 boards found, 17 expected" in miscounted.last["error"]["message"]
        assert set(more_writes(trial).values()) == {-3}
        ran = trial.begin("--all", "--expect", "16", ports=[]).ended()
        assert ran.last == {"summary": {"boards": 16, "done": 16, "ok": True}}
        for number in SIXTEEN:
            line = ran.by_port[f"serial:{serial_of(number)}"]
            assert line["uuid"] == trial.uuid(number)
            assert line["board"] == {
                "serial": serial_of(number), "usb_place": place_of(number),
                "slot": slot_of(number), "port": f"serial:{serial_of(number)}",
            }  # fmt: skip
        assert trial.wrongs(SIXTEEN) == []


def test_trays_are_swapped_while_the_bench_watches(tmp_path: Path) -> None:
    """Tray A out, tray B in, then A again: it is only checked. Other boards, the same ports."""
    tray_b = range(100, 116)
    with tray_trial(tmp_path / "tray", SIXTEEN) as trial:
        run = trial.begin("--watch")
        lines = run.until_ended(16)
        trial.unplug(SIXTEEN)
        trial.plug_in(tray_b, into=SIXTEEN)
        lines = run.until_ended(32)
        trial.unplug(tray_b)
        trial.plug_in(SIXTEEN)
        lines = run.until_ended(48)
        run.stop(signal.SIGINT)
        ended = run.ended()
        assert ended.code == 130
        trays = [lines[:16], lines[16:32], lines[32:48]]
        boards = [{line["uuid"] for line in tray} for tray in trays]
        assert boards[0] == boards[2] == {trial.uuid(number) for number in SIXTEEN}
        assert boards[1] == {trial.uuid(number) for number in tray_b}
        outcomes = [{(line["outcome"], line["writes"]) for line in tray} for tray in trays]
        assert outcomes == [{("done", 3)}, {("done", 3)}, {("unchanged", 0)}]
        assert trial.wrongs(SIXTEEN) == []


def test_kits_that_come_to_an_empty_hub_are_done_as_they_come(tmp_path: Path) -> None:
    with tray_trial(tmp_path / "tray", range(4)) as trial:
        trial.put_on_hub([])
        run = trial.begin("--all", "--watch", ports=[])
        trial.put_on_hub([0, 1])
        run.until_ended(2)
        trial.put_on_hub([0, 1, 2, 3])
        run.until_ended(4)
        run.stop(signal.SIGINT)
        ended = run.ended()
        assert ended.code == 130
        assert [line["outcome"] for line in ended.by_port.values()] == ["done"] * 4
        assert trial.wrongs(range(4)) == []
