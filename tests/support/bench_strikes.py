"""What can go wrong with a whole bench: its process, the service, the ledger.

Each strikes once a step of a board stands in the ledger. Then every board that the run named ended
as it says, and after it is mended a rerun ends with a tray that is done.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass

from tray_trial import Ran, Run, Trial

FULL_AT_BYTES = 64_000
"""Of any file that the bench writes: less than the ledger of a tray, more than an empty one."""


@dataclass(frozen=True)
class BenchStrike:
    """`code` is what the command returns, `fails` what each board that is not done may say."""

    name: str
    code: int
    fails: tuple[str, ...] = ()
    step: str = ""
    """Struck once this step of a board stands in the ledger; "" where it was wrong before."""
    ledgers: tuple[str, ...] = ("sqlite", "postgresql")
    before: Callable[[Trial], None] = lambda _: None
    strike: Callable[[Trial, Run], None] = lambda *_: None
    mend: Callable[[Trial], None] = lambda _: None
    orphans: bool = False
    """Whether a key may have been made of which nobody knows: it is made again."""

    def on(self, trial: Trial, board: int) -> Ran:
        """Run the bench on a trial and strike it there; `board` is the one whose steps count."""
        self.before(trial)
        run = trial.begin("--expect", str(len(trial.ports)))
        if self.step:
            run.until(board, self.step)
            self.strike(trial, run)
        return run.ended()

    def unlike(self, ran: Ran) -> list[str]:
        """Return in what a run that was struck did not end as it should."""
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


def _spoiling(fault: str) -> Callable[[Trial], None]:
    return lambda trial: trial.cloud.control(faults=[fault])


def _spoil_no_more(trial: Trial) -> None:
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


# The last step of each board asks the service for the device, and is kept waiting: however slow the
# machine is, no bench is done before it is struck.
_HELD = "latency=60@GET /v1/devices/*"

AWAY = ("connection attempts failed",)
LOST = ("connection", "terminat")

BENCH_STRIKES = (
    *(BenchStrike(f"killed at {step}", -signal.SIGKILL, step=step, orphans=True,
                  before=_spoiling(_HELD), strike=_signal(signal.SIGKILL), mend=_spoil_no_more)
      for step in ("ca-chain", "key", "certificate", "write", "register", "clock")),
    *(BenchStrike(f"Ctrl-C at {step}", 130, step=step, before=_spoiling(_HELD),
                  strike=_signal(signal.SIGINT), mend=_spoil_no_more)
      for step in ("ca-chain", "key", "register")),
    BenchStrike("told to end", 143, step="register", before=_spoiling(_HELD),
                strike=_signal(signal.SIGTERM), mend=_spoil_no_more),
    BenchStrike("service killed", 6, AWAY, "key", strike=_kill_service, mend=_start_service),
    BenchStrike("service in trouble", 6, ("500",), before=_spoiling("server-error=500*1000@/v1/*"),
                mend=_spoil_no_more),
    BenchStrike("service overrun", 6, ("429",), before=_spoiling("too-many-requests=1@/v1/*"),
                mend=_spoil_no_more),
    BenchStrike("service forbids", 5, ("403",), before=_spoiling("array-error=403@/v1/*"),
                mend=_spoil_no_more),
    BenchStrike("database restarted", 1, LOST, "key", ("postgresql",), strike=_kill_database,
                orphans=True),
    BenchStrike("connection dropped", 1, LOST, "write", ("postgresql",), strike=_drop_connections,
                orphans=True),
    BenchStrike("ledger read-only", 1, ("read-only",), "", ("postgresql",), before=_read_only,
                mend=_writable),
    BenchStrike("ledger's disk full", 1, ("full", "I/O error"), "", ("sqlite",),
                before=_fill_disk, mend=_make_room, orphans=True),
)  # fmt: skip
