"""The bench as an operator has it: kits, service, ledger and `provision run`, each a process.

with tray_trial(tmp_path, 16) as trial:
    run = trial.begin()
    run.until(3, "key")
    trial.kits[3].process.kill()
    ran = run.ended()
    ran.outcome(3)

Everything lives in the trial's folder; `environment` points the commands there.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.errors import AgentError
from agent.provisioning.ledger import Ledger, open_ledger
from at.virtual.options import check_digit, device_uuid
from tests.support.cloud.restartable_standin import ROOT, RestartableStandIn, restartable_standin
from tests.support.keys.operator_ca import make_ca
from tests.support.modem.served_kit import ServedKit
from tests.support.provisioning.far_database import FarDatabase
from tests.support.provisioning.postgres import PostgresServer
from tests.support.provisioning.tray import (
    CA_CHAIN,
    PROFILE,
    credentials,
    imei,
    key_in,
    launched_kit,
)

HUB = Path(__file__).resolve().parent / "hub"
PATIENCE_S = 120.0
_LOOK_EVERY_S = 0.01
_NUMBERS = itertools.count()
NO_FAULTS: Mapping[int, str] = {}
SETTINGS = """
[profiles.{profile}.provisioning]
device_ca_file = "{folder}/ca.pem"
device_ca_key_file = "{folder}/ca.key"
ca_chain_file = "{folder}/chain.pem"
registration = "onboard"
ledger = "{ledger}"
[profiles.{profile}.provisioning.slots]
"""


@dataclass(frozen=True)
class Ran:
    """What a run printed: its exit code, the outcome of each port, the last object, the errors."""

    code: int
    by_port: dict[str, dict[str, Any]]
    last: dict[str, Any]
    errors: str


class Run:
    """A `provision run` that is under way."""

    def __init__(self, trial: Trial, arguments: Sequence[str]) -> None:
        self._trial = trial
        number = len(list(trial.folder.glob("*.out")))
        self._out, self._err = (trial.folder / f"{number}.{name}" for name in ("out", "err"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "agent", *arguments],
                env=trial.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        if trial.largest_file is not None:
            largest = trial.largest_file, trial.largest_file
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, largest)

    def until(self, number: int, step: str) -> None:
        """Wait until a board's step stands in the ledger."""
        self.until_true(lambda: self._trial.reached(number, step), f"{step} of board {number}")

    def until_true(self, reached: Any, what: str) -> None:
        """Look until something is so; fail where the run ends before, or nothing happens."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            assert self.process.poll() is None, f"it ended before {what}: {self.printed()}"
            assert time.monotonic() < deadline, f"{what} never came: {self.printed()}"
            time.sleep(_LOOK_EVERY_S)

    def until_ended(self, boards: int) -> list[dict[str, Any]]:
        """Wait until so many boards have ended; return their lines."""
        self.until_true(lambda: len(self.lines()) >= boards, f"{boards} boards have ended")
        return self.lines()

    def lines(self) -> list[dict[str, Any]]:
        """Return the objects that it has printed so far."""
        return [json.loads(line) for line in self._out.read_text().splitlines(keepends=True)
                if line.endswith("\n")]  # fmt: skip

    def printed(self) -> str:
        return self._out.read_text() + self._err.read_text()

    def stop(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> Ran:
        """Wait for its end."""
        code = self.process.wait(PATIENCE_S)
        lines = self.lines()
        boards = {str(line["board"]["port"]): line for line in lines if "board" in line}
        errors = self._err.read_text()
        assert "Traceback" not in errors, errors
        return Ran(code, boards, lines[-1] if lines else {}, errors)


class Trial:
    """`kits` by number; `ports` are what `provision run` is told, one for each kit at first."""

    def __init__(self, folder: Path, cloud: RestartableStandIn, environment: dict[str, str],
                 server: PostgresServer | None) -> None:  # fmt: skip
        self.folder = folder
        self.cloud = cloud
        self.environment = environment
        self._server = server
        self.database = f"tray_{os.getpid()}_{next(_NUMBERS)}"
        self.ledger = server.new_database(self.database) if server is not None else ""
        self.kits: dict[int, ServedKit] = {}
        self.ports: list[str] = []
        self.largest_file: int | None = None
        """In bytes, of all that the bench writes: where its disk is full."""
        self._reading: Ledger | None = None
        self._runs: list[Run] = []

    @property
    def server(self) -> PostgresServer:
        """The server of a ledger that is shared."""
        assert self._server is not None
        return self._server

    # --- kits

    def plug_in(self, numbers: Sequence[int], into: Sequence[int] = (), *, fault: str = "") -> None:
        """Start kits, with a fault or none; one that was there before is the same board again.

        `into` are the numbers of the ports, where they are not the kits' own.
        """
        options = ["--fault", fault] if fault else []
        for number, port in zip(numbers, into or numbers, strict=True):
            self.kits[number] = launched_kit(
                self.folder, number, *options, port=Path(self.port(port))
            )
        for number in numbers:
            self.kits[number].until_ready()

    def unplug(self, numbers: Sequence[int]) -> None:
        """Stop kits, whatever state they are in."""
        for number in numbers:
            kit = self.kits.pop(number)
            kit.stop()
            # Of a kit that was killed it is still there, and may lead to another's terminal.
            kit.port.unlink(missing_ok=True)

    def port(self, number: int) -> str:
        return str(self.folder / f"kit{number}" / "kit")

    # --- the bench

    def begin(self, *options: str, ports: Sequence[str] | None = None) -> Run:
        """Start `provision run` on the tray."""
        there = self.ports if ports is None else ports
        run = Run(self, ["provision", "run", *there, "--set-clock", "--json", *options])
        self._runs.append(run)
        return run

    def put_on_hub(self, numbers: Sequence[int]) -> None:
        """Have `provision run --all` find these kits, each in its socket of a USB hub."""
        hub = self.folder / "hub.json"
        self.environment |= {"PYTHONPATH": f"{ROOT}:{HUB}", "HUB": str(hub)}
        kits = [{"device": str(kit.port), "serial": serial_of(number), "place": place_of(number)}
                for number, kit in self.kits.items() if number in numbers]  # fmt: skip
        at_once = hub.with_suffix(".new")
        at_once.write_text(json.dumps(kits))
        at_once.replace(hub)

    def run(self, *options: str) -> Ran:
        return self.begin(*options).ended()

    def clear(self) -> None:
        """End everything that still runs."""
        self.forget_ledger()
        for run in self._runs:
            run.process.kill()
            run.process.wait()
        self.unplug(list(self.kits))

    # --- what is true then

    def uuid(self, number: int) -> str:
        digits = imei(number)
        return device_uuid(digits + check_digit(digits))

    def reached(self, number: int, step: str) -> bool:
        """Tell whether a step of a board stands in the ledger: begun, or done if only that is."""
        try:
            if self._reading is None:
                self._reading = self.open_ledger()
            notes = self._reading.steps(self.uuid(number))
        except AgentError:  # it is being made, or its server restarts
            self.forget_ledger()
            return False
        if not notes:  # one that was not there yet as it was opened stays empty
            self.forget_ledger()
        return any(note.step == step for note in notes)

    def open_ledger(self, *, writes: bool = False) -> Ledger:
        address = self.ledger or str(self.folder / "state" / "ledger.sqlite")
        return open_ledger(address, "judge", writes=writes)

    def forget_ledger(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def wrongs(self, numbers: Sequence[int]) -> list[str]:
        """Return what is not as it must be once every board is done. The service is stopped."""
        self.forget_ledger()
        self.cloud.stop()
        registered = self.cloud.registered_keys()
        wrongs = []
        ledger = self.open_ledger()
        try:
            for number in numbers:
                kit, uuid = self.kits[number], self.uuid(number)
                record, notes = ledger.board(uuid), ledger.steps(uuid)
                sent = {n.detail for n in notes if (n.step, n.state) == ("register", "begun")}
                if sorted(credentials(kit)) != [0, 1, 2]:
                    wrongs.append(f"{number} holds {sorted(credentials(kit))}")
                if len(sent) != 1:
                    wrongs.append(f"{number}: {len(sent)} keys were sent to the service")
                if registered.get(uuid) != key_in(kit):
                    wrongs.append(f"{number}: the service has another key than the board")
                if record is None or record.outcome not in {"done", "unchanged"}:
                    wrongs.append(f"{number}: the ledger says {record and record.outcome}")
        finally:
            ledger.close()
        return wrongs


@contextlib.contextmanager
def tray_trial(
    folder: Path,
    numbers: Sequence[int],
    *,
    server: PostgresServer | None = None,
    far: FarDatabase | None = None,
    faults: Mapping[int, str] = NO_FAULTS,
) -> Iterator[Trial]:
    """Serve kits and the service, with an operator's profile; stop all of it in the end.

    `faults`: by the number of a kit. `server`: has the ledger; without one it is a file.
    `far`: the station reaches that server through it, and whoever judges does not.
    """
    folder.mkdir(exist_ok=True)
    make_ca(folder)
    (folder / "chain.pem").write_text(CA_CHAIN)
    config = folder / "config" / "config.toml"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("CELLAGENT_")},
        "PYTHONPATH": str(ROOT),
        "CELLAGENT_CONFIG": str(config),
        "CELLAGENT_STATE_DIR": str(folder / "state"),
        "CELLAGENT_PROFILE": PROFILE,
    }
    with restartable_standin(folder, environment, PROFILE) as cloud:
        trial = Trial(folder, cloud, environment, server)
        with config.open("a") as file:
            ledger = trial.ledger if far is None else far.url_of(trial.ledger)
            file.write(SETTINGS.format(profile=PROFILE, folder=folder, ledger=ledger))
            for number in numbers:
                for name in (trial.port(number), place_of(number)):
                    file.write(f'"{name}" = "{slot_of(number)}"\n')
        trial.ports = [trial.port(number) for number in numbers]
        try:
            for number in numbers:
                options = ["--fault", faults[number]] if number in faults else []
                trial.kits[number] = launched_kit(folder, number, *options)
            for kit in trial.kits.values():
                kit.until_ready()
            yield trial
        finally:
            trial.clear()


def serial_of(number: int) -> str:
    """Return the serial number of a kit, one of an nRF9161 DK."""
    return f"0010509{number:05}"


def place_of(number: int) -> str:
    """Return a kit's socket: four hubs of four sockets."""
    return f"1-1.{number // 4 + 1}.{number % 4 + 1}"


def slot_of(number: int) -> str:
    """Return the name of a kit's slot: A1 to A4, B1 to B4 and so on."""
    return f"{chr(ord('A') + number // 4)}{number % 4 + 1}"
