"""Faults of a whole station: of its process, the service, the ledger.

Each is injected once a step of a board stands in the ledger. Every board that the run named must
then end as the fault says; after the repair, a rerun must end with a tray that is done.
"""

import signal
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.provisioning.tray_trial import Ran, Run, Trial

FULL_AT_BYTES = 64_000
"""Of any file that the bench writes: less than the ledger of a tray, more than an empty one."""


@dataclass(frozen=True)
class StationFault:
    """`code` is what the command returns, `fails` what each board that is not done may say."""

    name: str
    code: int
    fails: tuple[str, ...] = ()
    step: str = ""
    """Injected once this step of a board is in the ledger; "" for a fault that is there before."""
    ledgers: tuple[str, ...] = ("sqlite", "postgresql")
    before: Callable[[Trial], None] = lambda _: None
    inject: Callable[[Trial, Run], None] = lambda *_: None
    repair: Callable[[Trial], None] = lambda _: None
    orphans: bool = False
    """Whether a key may have been made of which nobody knows: it is made again."""

    def on(self, trial: Trial, board: int) -> Ran:
        """Run the station on a trial and inject the fault at the step of `board`."""
        self.before(trial)
        run = trial.begin("--expect", str(len(trial.ports)))
        if self.step:
            run.until(board, self.step)
            self.inject(trial, run)
        return run.ended()

    def deviations(self, ran: Ran) -> list[str]:
        """Return in what a run with the fault did not end as it should."""
        wrongs = [] if ran.code == self.code else [f"{self.name}: exit {ran.code}, not {self.code}"]
        for port, line in ran.by_port.items():
            said = any(words in line["reason"] for words in self.fails)
            if not (said and line["try"] if line["exit"] else line["outcome"] == "done"):
                wrongs.append(f"{self.name}: {port} ended as {line}")
        return wrongs


def _kill_service(trial: Trial, _run: Run) -> None:
    trial.cloud.kill()


def _start_service(trial: Trial) -> None:
    trial.cloud.start()


def _injecting(fault: str) -> Callable[[Trial], None]:
    return lambda trial: trial.cloud.control(faults=[fault])


def _clear_faults(trial: Trial) -> None:
    trial.cloud.control(faults=[])


def _kill_database(trial: Trial, _run: Run) -> None:
    trial.forget_ledger()
    trial.server.kill()
    trial.server.start()


def _drop_connections(trial: Trial, _run: Run) -> None:
    trial.forget_ledger()
    trial.server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'tray%'"
    )


def _read_only(trial: Trial) -> None:
    trial.open_ledger(writes=True).close()  # there is one, and then it may only be read
    trial.server.execute(f"ALTER DATABASE {trial.database} SET default_transaction_read_only = on")


def _writable(trial: Trial) -> None:
    trial.server.execute(f"ALTER DATABASE {trial.database} RESET default_transaction_read_only")


def _fill_disk(trial: Trial) -> None:
    trial.largest_file = FULL_AT_BYTES


def _make_room(trial: Trial) -> None:
    trial.largest_file = None


def _signal(number: signal.Signals) -> Callable[[Trial, Run], None]:
    return lambda _trial, run: run.stop(number)


# The service registers the key of each board, and keeps it waiting for the end of the answer:
# however slow the machine is, no bench is done before the fault is there.
_HELD = "slow-body=60@POST /v1/devices*"

AWAY = ("nothing listens there",)
LOST = ("connection", "terminat")

STATION_FAULTS = (
    *(StationFault(f"killed at {step}", -signal.SIGKILL, step=step, orphans=True,
                  before=_injecting(_HELD), inject=_signal(signal.SIGKILL), repair=_clear_faults)
      for step in ("ca-chain", "key", "certificate", "write", "register", "clock")),
    *(StationFault(f"Ctrl-C at {step}", 130, step=step, before=_injecting(_HELD),
                  inject=_signal(signal.SIGINT), repair=_clear_faults)
      for step in ("ca-chain", "key", "register")),
    StationFault("told to end", 143, step="register", before=_injecting(_HELD),
                inject=_signal(signal.SIGTERM), repair=_clear_faults),
    StationFault("service killed", 6, AWAY, "key", inject=_kill_service, repair=_start_service),
    StationFault("service in trouble", 6, ("500",),
                before=_injecting("server-error=500*1000@/v1/*"), repair=_clear_faults),
    StationFault("service overrun", 6, ("429",), before=_injecting("too-many-requests=1@/v1/*"),
                repair=_clear_faults),
    StationFault("service forbids", 5, ("403",), before=_injecting("array-error=403@/v1/*"),
                repair=_clear_faults),
    StationFault("database restarted", 1, LOST, "key", ("postgresql",), inject=_kill_database,
                orphans=True),
    StationFault("connection dropped", 1, LOST, "write", ("postgresql",), inject=_drop_connections,
                orphans=True),
    StationFault("ledger read-only", 1, ("read-only",), "", ("postgresql",), before=_read_only,
                repair=_writable),
    StationFault("ledger's disk full", 1, ("full", "I/O error"), "", ("sqlite",),
                before=_fill_disk, repair=_make_room, orphans=True),
)  # fmt: skip
