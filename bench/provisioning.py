"""One board provisioned and eight at once, beside Nordic's installer on the same virtual modem."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.ledger import open_ledger
from agent.provisioning.planning.goal import CertificateSource, Goal, RegistrationMethod
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.provisioning.running.batch import run_boards
from agent.provisioning.running.board_run import Station
from at.driver.modem import Modem
from at.virtual.transport import VirtualTransport
from tests.support.keys.operator_ca import make_ca
from tests.support.modem.served_kit import PEERS, ServedKit, served
from tests.support.provisioning.far_database import far_database
from tests.support.provisioning.postgres import PostgresMissing, postgres_if_there

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

NAME = "provisioning"
AT_ONCE = 8
ONE_RATIO, EIGHT_RATIO, FAR_RATIO = 0.19, 0.2, 2.0
TRAY_RATIOS = {AT_ONCE: 1.25, 64: 1.5}
"""Boards -> how many times as long as one they may take, with modems that take their time."""
AGAIN_S, FIRST_S = 1.5, 0.06
FAR_S = 0.08
CA_CHAIN = "-----BEGIN CERTIFICATE-----\nTEST ONLY\n-----END CERTIFICATE-----\n"
PROFILE = """profile = "bench"
[profiles.bench.provisioning]
device_ca_file = "{folder}/ca.pem"
device_ca_key_file = "{folder}/ca.key"
ca_chain_file = "{folder}/chain.pem"
"""


def run(smoke: bool) -> Iterator[Row]:
    rounds = 1 if smoke else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_ca(folder)
        (folder / "chain.pem").write_text(CA_CHAIN)
        yield from with_delays(folder, smoke)
        yield from far_away(folder, rounds)
        ours = Ours(folder, "ours")
        ours(1)  # the first of a ledger's life makes its tables
        one = min(ours(1) for _ in range(rounds))
        news = [Ours(folder, f"new{n}", str(folder / f"new{n}.sqlite")) for n in range(rounds)]
        first = min(new(1) for new in news)
        yield Row("the first board of a new ledger", first, "s", one + FIRST_S,
                  f"of one that is there {one:.2f} s, best of {rounds}")  # fmt: skip
        eight = min(ours(AT_ONCE) for _ in range(rounds))
        if not (PEERS / "device_credentials_installer").exists():
            why = "./scripts/peers brings device_credentials_installer"
            yield Row("one board, whole process", one, "s", skipped=f"took {one:.2f} s; {why}")
            yield Row(f"{AT_ONCE} boards", eight, "s", skipped=f"took {eight:.2f} s; {why}")
            return
        theirs = Theirs(folder)
        control = min(theirs(1) for _ in range(rounds))
        yield Row("one board, whole process", one, "s", control * ONE_RATIO,
                  f"installer {control:.2f} s, best of {rounds}")  # fmt: skip
        control = min(theirs(AT_ONCE) for _ in range(rounds))
        yield Row(f"{AT_ONCE} boards, no delay", eight, "s", control * EIGHT_RATIO,
                  f"{AT_ONCE} installers at once {control:.2f} s, best of {rounds}")  # fmt: skip


class Ours:
    """`provision run` on fresh boards: keys, certificates, writes, verification; no service."""

    def __init__(self, folder: Path, name: str, ledger: str = "") -> None:
        self._folder = folder
        self._name = name
        self._made = 0
        self._settings = folder / f"{name}.toml"
        self._settings.touch(mode=0o600)
        address = f'ledger = "{ledger}"\n' if ledger else ""
        self._settings.write_text(PROFILE.format(folder=folder) + address)

    def __call__(self, boards: int) -> float:
        """Return the seconds that the whole process takes."""
        with self.kits(boards) as kits:
            return self.run(kits)

    @contextlib.contextmanager
    def kits(self, boards: int) -> Iterator[list[ServedKit]]:
        """Serve boards that nobody has seen."""
        first, self._made = self._made, self._made + boards
        with fresh_kits(self._folder, self._name, boards, first=first) as kits:
            yield kits

    def run(self, kits: list[ServedKit]) -> float:
        """Provision these, or find them unchanged; return the seconds of the whole process."""
        command = (
            *(sys.executable, "-m", "agent", "provision", "run"),
            *("--registration", "none", "--no-proof", *(str(kit.port) for kit in kits)),
        )
        environment = {
            **os.environ,
            "CELLAGENT_CONFIG": str(self._settings),
            "CELLAGENT_STATE_DIR": str(self._folder / "state"),
        }
        started = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
        return time.perf_counter() - started


def far_away(folder: Path, rounds: int) -> Iterator[Row]:
    """Compare a ledger whose answers take 80 ms with one next door, on boards without delay."""
    try:
        with postgres_if_there() as server:
            near, near_again = at_distance(folder, server.new_database("near"), 0.0, rounds)
            far, far_again = at_distance(folder, server.new_database("far"), FAR_S, rounds)
    except PostgresMissing as missing:
        yield Row("a ledger far away", 0.0, "s", skipped=str(missing))
        return
    away = f"ledger {FAR_S * 1000:.0f} ms away"
    yield Row(f"12 boards, {away}", far, "s", near * FAR_RATIO,
              f"next door {near:.2f} s, best of {rounds}")  # fmt: skip
    yield Row(f"recheck of 16, {away}", far_again, "s", near_again * FAR_RATIO,
              f"next door {near_again:.2f} s, best of {rounds}")  # fmt: skip


def at_distance(folder: Path, ledger: str, delay_s: float, rounds: int) -> tuple[float, float]:
    """Return the seconds of 12 fresh boards, and of those and four more when they are done."""
    took = []
    with far_database(ledger, delay_s) as far:
        ours = Ours(folder, f"far{delay_s}", far.url)
        for _ in range(rounds):
            with ours.kits(16) as kits:
                ours.run(kits[12:])  # the first of a ledger's life makes its tables
                took.append((ours.run(kits[:12]), ours.run(kits)))
    return min(fresh for fresh, _ in took), min(again for _, again in took)


class Theirs:
    """The installer, one process a board, for the same: it has no way to do many."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0

    def __call__(self, boards: int) -> float:
        """Return the seconds until the last of the processes is done."""
        with fresh_kits(self._folder, "theirs", boards, first=self._made) as kits:
            self._made += boards
            with ThreadPoolExecutor(boards) as side_by_side:
                started = time.perf_counter()
                list(side_by_side.map(self._install, kits))
                return time.perf_counter() - started

    def _install(self, kit: ServedKit) -> None:
        kit.run(
            *("device_credentials_installer", "--cmd-type", "at", "--port", str(kit.port)),
            *("--ca", str(self._folder / "ca.pem"), "--ca-key", str(self._folder / "ca.key")),
            "--verify",
        )


@contextlib.contextmanager
def fresh_kits(folder: Path, what: str, number: int, *, first: int) -> Iterator[list[ServedKit]]:
    with contextlib.ExitStack() as stack:
        kits = []
        for index in range(first, first + number):
            place = folder / f"{what}{index}"
            place.mkdir()
            kits.append(stack.enter_context(served(place, "--imei", f"0044010000{index:04}")))
        yield kits


def with_delays(folder: Path, smoke: bool) -> Iterator[Row]:
    """Compare trays with one board, on modems in this process that take the time of real ones."""
    rounds = 1 if smoke else 3
    one = min(asyncio.run(in_this_process(folder, 1, first))[0] for first in range(rounds))
    for tray, ratio in TRAY_RATIOS.items():
        firsts = range(100, 100 + rounds * tray, tray)
        runs = [asyncio.run(in_this_process(folder, tray, first)) for first in firsts]
        yield Row(f"{tray} boards at once, modems with delays", min(took for took, *_ in runs), "s",
                  one * ratio, f"one board {one:.2f} s")  # fmt: skip
    again, writes = min(again for _, again, _ in runs), sum(writes for *_, writes in runs)
    yield Row(f"recheck of {tray}, modems with delays", again, "s", AGAIN_S)
    yield Row(f"credential writes of that, in {rounds} rounds", writes, "writes", 0)


async def in_this_process(folder: Path, boards: int, first: int) -> tuple[float, float, int]:
    """Return the seconds of fresh boards and of the same again, and the writes of the latter."""
    ledger = AsyncLedger(lambda: open_ledger(str(folder / f"delays{boards}.sqlite"), "bench"))
    authority = DeviceCa.load(folder / "ca.pem", folder / "ca.key", lambda: "")
    goal = Goal(
        16842753, CA_CHAIN, certificate=CertificateSource.OPERATOR_CA,
        registration=RegistrationMethod.NONE, prove=False,
    )  # fmt: skip
    station = Station(goal, ledger, None, authority, folder / "keys")
    imeis = [f"0044019{first + index:07}" for index in range(boards)]
    kits = {imei: VirtualTransport(imei=imei) for imei in imeis}

    @contextlib.asynccontextmanager
    async def opened(location: BoardLocation) -> AsyncIterator[ModemBoard]:
        modem = Modem(kits[location.port])
        await modem.open()
        try:
            yield ModemBoard(modem)
        finally:
            await modem.close()

    async def run(expected: str) -> tuple[float, int]:
        locations, writes = [BoardLocation("", "", "", imei) for imei in imeis], 0
        started = time.perf_counter()
        async for outcome in run_boards(locations, station, opened, lambda *_: None):
            assert outcome.outcome == expected, outcome
            writes += outcome.writes
        return time.perf_counter() - started, writes

    try:
        await ledger.opened()
        took, _ = await run("done")
        return took, *await run("unchanged")
    finally:
        ledger.close()
