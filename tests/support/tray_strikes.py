"""What can go wrong with one kit of a tray: how it comes about, what is said, how it is mended.

A strike is prepared before the run; what has to happen at a step happens once the ledger says that
the step has begun; after it is mended, a rerun with `rerun` ends with a board that is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cable import Cable, cables
from cryptography.hazmat.primitives.asymmetric import rsa
from operator_ca import make_ca
from tray import TAG
from tray_trial import Run, Trial

from at.commands.credentials import WriteCredential
from at.commands.keys import GenerateKey
from at.driver.modem import open_modem
from at.protocol.command import Command

ANOTHER_BOARD = 90  # on the bench, in nobody's slot
_ANSWERS_BEFORE_THE_KEY = 12
_HOLD = """
import sys
from at.transport.serial import open_handle
handle = open_handle(sys.argv[1], baud=115200, rtscts=False)
print("held", flush=True)
sys.stdin.read()
"""


@dataclass
class Struck:
    """A strike at work: the trial, the kit's number, and what has to be let go of."""

    trial: Trial
    number: int
    stack: contextlib.ExitStack
    cable: Cable | None = None

    def restart(self) -> None:
        """Switch the kit off and on, without the fault that it had."""
        self.trial.unplug([self.number])
        self.trial.plug_in([self.number])

    def send(self, *commands: Command[object]) -> None:
        """Say something to the kit before the bench does."""

        async def said() -> None:
            async with open_modem(self.trial.port(self.number)) as modem:
                for command in commands:
                    await modem.send(command)

        asyncio.run(said())

    def lay_cable(self) -> Cable:
        """Put a cable between the bench and the kit, which is pulled out in the end."""
        link = self.trial.folder / f"cable{self.number}"
        cable = self.stack.enter_context(cables())(link, self.trial.kits[self.number].port)
        self.trial.ports[self.number] = str(link)
        return cable


@dataclass(frozen=True)
class Strike:
    """One kind of failure. `says` stands in the reason, `tries` in what to try."""

    name: str
    outcome: str
    exit: int
    step: str
    says: str
    tries: str = ""
    fault: str = ""
    at: str = ""
    prepare: Callable[[Struck], None] = lambda _: None
    strike: Callable[[Struck], None] = lambda _: None
    mend: Callable[[Struck], None] = Struck.restart
    waits: bool = False
    """Whether the bench waits for what does not come, so that it takes many seconds."""
    rerun: Sequence[str] = ()
    extra_writes: Sequence[int] = (0,)
    """How many writes more than three the board's flash may have seen in the end."""


def _kill(struck: Struck) -> None:
    struck.trial.kits[struck.number].process.kill()


def _freeze(struck: Struck) -> None:
    struck.trial.kits[struck.number].process.send_signal(signal.SIGSTOP)


def _pull_in_a_write(struck: Struck) -> None:
    struck.cable = struck.lay_cable()
    struck.cable.pull_after(600)


def _plug_again(struck: Struck) -> None:
    assert struck.cable is not None
    struck.cable.plug(struck.trial.kits[struck.number].port)


def _swap_before_the_key(struck: Struck) -> None:
    struck.trial.plug_in([ANOTHER_BOARD])
    struck.cable = struck.lay_cable()
    other = struck.trial.kits[ANOTHER_BOARD].port
    struck.cable.swap_after(_ANSWERS_BEFORE_THE_KEY, other)


def _swap_back(struck: Struck) -> None:
    assert struck.cable is not None
    struck.cable.swap(struck.trial.kits[struck.number].port)


def _hold(struck: Struck) -> None:
    holder = struck.stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", _HOLD, struck.trial.port(struck.number)],
            env=struck.trial.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    struck.stack.callback(holder.kill)


def _let_go(struck: Struck) -> None:
    struck.stack.close()


def _write_rsa(struck: Struck) -> None:
    folder = struck.trial.folder / "rsa"
    folder.mkdir()
    certificate, _ = make_ca(folder, key=rsa.generate_private_key(65537, 2048))
    struck.send(
        WriteCredential(TAG, 1, certificate.read_text()),
        WriteCredential(TAG, 2, "TEST ONLY, stands for an RSA key"),
    )


def _make_foreign_key(struck: Struck) -> None:
    struck.send(GenerateKey(TAG))


def _provision_before(struck: Struck) -> None:
    assert struck.trial.begin(ports=[struck.trial.port(struck.number)]).ended().code == 0


def _leave_it(_struck: Struck) -> None:
    """Mend nothing: nothing was wrong."""


def _allowed(*kinds: int) -> tuple[str, ...]:
    return tuple(word for kind in kinds for word in ("--replace", f"{TAG}:{kind}"))


STRIKES = (
    Strike("killed while its key is made", "failed", 3, "key", "the far end hung up",
           "plug the kit in", "slow=0.1", "key", strike=_kill, extra_writes=(0, 2)),
    Strike("silent from a step on", "failed", 3, "", "no answer",
           "modem check", "slow=0.1", "certificate", strike=_freeze, waits=True),
    Strike("its cable is pulled in the middle of a write", "failed", 3, "write",
           "the far end hung up", "plug the kit in", prepare=_pull_in_a_write, mend=_plug_again,
           waits=True),
    Strike("another board is put in its place", "swapped", 4, "key", "became",
           "put the board back", prepare=_swap_before_the_key, mend=_swap_back),
    Strike("credentials are refused", "failed", 1, "ca-chain", "+CME ERROR 514",
           fault="cmng-refused=514"),
    Strike("its store is full", "failed", 1, "ca-chain", "memory full", "delete",
           "memory-full"),
    Strike("no key can be made", "failed", 1, "key", "key generation failed",
           fault="keygen-failed=523"),
    Strike("no token can be made", "failed", 1, "proof", "error in JWT creation",
           fault="jwt-failed=525"),
    Strike("line ends are changed on the way", "failed", 1, "verify", "CA chain: the modem lists",
           f"--replace {TAG}:0 --replace {TAG}:1", "line-ends-changed", rerun=_allowed(0, 1),
           extra_writes=(4,)),
    Strike("old firmware", "refused", 4, "gate", "older than", "update the modem's firmware",
           "old-firmware=mfw_nrf91x1_1.2.8"),
    Strike("RSA-provisioned", "refused", 4, "gate", "RSA-provisioned", f"--replace {TAG}:1",
           prepare=_write_rsa, mend=_leave_it, rerun=_allowed(1, 2), extra_writes=(4,)),
    Strike("a key of somebody else", "refused", 4, "gate", "does not know", f"--replace {TAG}:2",
           prepare=_make_foreign_key, mend=_leave_it, rerun=_allowed(2), extra_writes=(2,)),
    Strike("held by another process", "busy", 3, "find", "in use by", prepare=_hold,
           mend=_let_go),
    Strike("not plugged in", "failed", 3, "find", "there is no port", "cellagent ports",
           prepare=lambda struck: struck.trial.unplug([struck.number]),
           mend=lambda struck: struck.trial.plug_in([struck.number])),
    Strike("provisioned before", "unchanged", 0, "proof", "", prepare=_provision_before,
           mend=_leave_it),
)  # fmt: skip


@dataclass
class Strikes:
    """Strikes on the kits of a trial, each kit with one at most."""

    trial: Trial
    by_number: dict[int, Strike]
    stack: contextlib.ExitStack
    _struck: dict[int, Struck] = field(default_factory=dict)

    def prepare(self) -> None:
        for number, strike in self.by_number.items():
            own = self.stack.enter_context(contextlib.ExitStack())
            self._struck[number] = Struck(self.trial, number, own)
            strike.prepare(self._struck[number])

    def during(self, run: Run) -> None:
        """Strike when the steps have come, and not in any order that was foreseen."""
        waiting = {number: strike for number, strike in self.by_number.items() if strike.at}

        def struck_all() -> bool:
            for number, strike in list(waiting.items()):
                if self.trial.reached(number, strike.at):
                    strike.strike(self._struck[number])
                    del waiting[number]
            return not waiting

        if waiting:
            run.until_true(struck_all, f"the steps of {sorted(waiting)}")

    def mend(self) -> None:
        for number, strike in self.by_number.items():
            strike.mend(self._struck[number])

    def rerun_options(self) -> list[str]:
        return [word for strike in self.by_number.values() for word in strike.rerun]

    def unlike(self, number: int, line: dict[str, object]) -> list[str]:
        """Return in what a board's outcome is not what it should be."""
        strike = self.by_number[number]
        wanted = {"outcome": strike.outcome, "exit": strike.exit}
        if strike.step:
            wanted["step"] = strike.step
        wrongs = [
            f"{strike.name}: {name} is {line[name]!r}, not {value!r}"
            for name, value in wanted.items() if line[name] != value
        ]  # fmt: skip
        for name, words in (("reason", strike.says), ("try", strike.tries)):
            if words not in str(line[name]):
                wrongs.append(f"{strike.name}: {name} is {line[name]!r}, without {words!r}")
        return wrongs
