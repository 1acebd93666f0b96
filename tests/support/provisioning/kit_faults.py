"""Faults of one kit of a tray: how each comes about, what is reported, how it is repaired.

A fault is prepared before the run, or injected once the ledger says that a step has begun. After
the repair, a rerun with the options of `rerun` must end with a board that is done.
"""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import rsa

from at.commands.credentials import WriteCredential
from at.commands.keys import GenerateKey
from at.driver.modem import open_modem
from at.protocol.command import Command
from tests.support.keys.operator_ca import make_ca
from tests.support.provisioning.cable import Cable, cables
from tests.support.provisioning.tray import TAG
from tests.support.provisioning.tray_trial import Run, Trial

ANOTHER_BOARD = 90  # on the bench, in nobody's slot
BEFORE_THE_KEY = (b"AT%CMNG=0,", b"AT+CGSN")
"""The last write before the key is made, and the look whether it is still the same board."""
_HOLD = """
import sys
from at.transport.serial import open_handle
handle = open_handle(sys.argv[1], baud=115200, rtscts=False)
print("held", flush=True)
sys.stdin.read()
"""


@dataclass
class FaultyKit:
    """A kit with a fault: the trial, the kit's number, and what has to be released."""

    trial: Trial
    number: int
    stack: contextlib.ExitStack
    cable: Cable | None = None

    def restart(self) -> None:
        """Switch the kit off and on, without the fault that it had."""
        self.trial.unplug([self.number])
        self.trial.plug_in([self.number])

    def send(self, *commands: Command[object]) -> None:
        """Send commands to the kit before the station does."""

        async def send_all() -> None:
            async with open_modem(self.trial.port(self.number)) as modem:
                for command in commands:
                    await modem.send(command)

        asyncio.run(send_all())

    def lay_cable(self) -> Cable:
        """Put a cable between the bench and the kit, which is pulled out in the end."""
        link = self.trial.folder / f"cable{self.number}"
        cable = self.stack.enter_context(cables())(link, self.trial.kits[self.number].port)
        self.trial.ports[self.number] = str(link)
        return cable


@dataclass(frozen=True)
class KitFault:
    """One kind of failure. `says` stands in the reason, `tries` in what to try."""

    name: str
    outcome: str
    exit: int
    step: str
    says: str
    tries: str = ""
    modem_fault: str = ""
    at: str = ""
    prepare: Callable[[FaultyKit], None] = lambda _: None
    inject: Callable[[FaultyKit], None] = lambda _: None
    repair: Callable[[FaultyKit], None] = FaultyKit.restart
    waits: bool = False
    """Whether the bench waits for what does not come, so that it takes many seconds."""
    rerun: Sequence[str] = ()
    extra_writes: Sequence[int] = (0,)
    """How many writes more than three the board's flash may have seen in the end."""


def _kill(kit: FaultyKit) -> None:
    kit.trial.kits[kit.number].process.kill()


def _freeze(kit: FaultyKit) -> None:
    kit.trial.kits[kit.number].process.send_signal(signal.SIGSTOP)


def _pull_in_a_write(kit: FaultyKit) -> None:
    kit.cable = kit.lay_cable()
    kit.cable.pull_after(600)


def _plug_again(kit: FaultyKit) -> None:
    assert kit.cable is not None
    kit.cable.plug(kit.trial.kits[kit.number].port)


def _swap_before_the_key(kit: FaultyKit) -> None:
    kit.trial.plug_in([ANOTHER_BOARD])
    kit.cable = kit.lay_cable()
    other = kit.trial.kits[ANOTHER_BOARD].port
    kit.cable.swap_behind(BEFORE_THE_KEY, other)


def _swap_back(kit: FaultyKit) -> None:
    assert kit.cable is not None
    kit.cable.swap(kit.trial.kits[kit.number].port)


def _hold(kit: FaultyKit) -> None:
    holder = kit.stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", _HOLD, kit.trial.port(kit.number)],
            env=kit.trial.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    kit.stack.callback(holder.kill)


def _release(kit: FaultyKit) -> None:
    kit.stack.close()


def _write_rsa(kit: FaultyKit) -> None:
    folder = kit.trial.folder / "rsa"
    folder.mkdir()
    certificate, _ = make_ca(folder, key=rsa.generate_private_key(65537, 2048))
    kit.send(
        WriteCredential(TAG, 1, certificate.read_text()),
        WriteCredential(TAG, 2, "TEST ONLY, stands for an RSA key"),
    )


def _make_foreign_key(kit: FaultyKit) -> None:
    kit.send(GenerateKey(TAG))


def _provision_before(kit: FaultyKit) -> None:
    assert kit.trial.begin(ports=[kit.trial.port(kit.number)]).ended().code == 0


def _leave_it(_kit: FaultyKit) -> None:
    """Repair nothing: nothing was wrong."""


def _allowed(*kinds: int) -> tuple[str, ...]:
    return tuple(word for kind in kinds for word in ("--replace", f"{TAG}:{kind}"))


KIT_FAULTS = (
    KitFault("killed while its key is made", "failed", 3, "key", "the far end hung up",
           "plug the kit in", "slow=0.1", "key", inject=_kill, extra_writes=(0, 2)),
    KitFault("silent from a step on", "failed", 3, "", "no answer",
           "reset the kit", "slow=0.1", "certificate", inject=_freeze, waits=True),
    KitFault("its cable is pulled in the middle of a write", "failed", 3, "write",
           "the far end hung up", "plug the kit in", prepare=_pull_in_a_write, repair=_plug_again,
           waits=True),
    KitFault("another board is put in its place", "swapped", 4, "key", "became",
           "put the board back", prepare=_swap_before_the_key, repair=_swap_back),
    KitFault("credentials are refused", "failed", 1, "ca-chain", "+CME ERROR 514",
           modem_fault="cmng-refused=514"),
    KitFault("its store is full", "failed", 1, "ca-chain", "memory full", "delete",
           "memory-full"),
    KitFault("no key can be made", "failed", 1, "key", "key generation failed",
           modem_fault="keygen-failed=523"),
    KitFault("no token can be made", "failed", 1, "proof", "error in JWT creation",
           modem_fault="jwt-failed=525"),
    KitFault("line ends are changed on the way", "failed", 1, "verify", "CA chain: the modem lists",
           f"--replace {TAG}:0 --replace {TAG}:1", "line-ends-changed", rerun=_allowed(0, 1),
           extra_writes=(4,)),
    KitFault("old firmware", "refused", 4, "gate", "older than", "update the modem's firmware",
           "old-firmware=mfw_nrf91x1_1.2.8"),
    KitFault("RSA-provisioned", "refused", 4, "gate", "RSA-provisioned", f"--replace {TAG}:1",
           prepare=_write_rsa, repair=_leave_it, rerun=_allowed(1, 2), extra_writes=(4,)),
    KitFault("a key of somebody else", "refused", 4, "gate", "does not know", f"--replace {TAG}:2",
           prepare=_make_foreign_key, repair=_leave_it, rerun=_allowed(2), extra_writes=(2,)),
    KitFault("held by another process", "busy", 3, "find", "in use by", prepare=_hold,
           repair=_release),
    KitFault("not plugged in", "failed", 3, "find", "there is no port", "cellagent ports",
           prepare=lambda kit: kit.trial.unplug([kit.number]),
           repair=lambda kit: kit.trial.plug_in([kit.number])),
    KitFault("provisioned before", "unchanged", 0, "proof", "", prepare=_provision_before,
           repair=_leave_it),
)  # fmt: skip


@dataclass
class FaultInjection:
    """Faults of the kits of a trial, each kit with one at most."""

    trial: Trial
    by_number: dict[int, KitFault]
    stack: contextlib.ExitStack
    _kits: dict[int, FaultyKit] = field(default_factory=dict)

    def prepare(self) -> None:
        for number, fault in self.by_number.items():
            own = self.stack.enter_context(contextlib.ExitStack())
            self._kits[number] = FaultyKit(self.trial, number, own)
            fault.prepare(self._kits[number])

    def during(self, run: Run) -> None:
        """Inject each fault once its step has begun, in whatever order that happens."""
        waiting = {number: fault for number, fault in self.by_number.items() if fault.at}

        def injected_all() -> bool:
            for number, fault in list(waiting.items()):
                if self.trial.reached(number, fault.at):
                    fault.inject(self._kits[number])
                    del waiting[number]
            return not waiting

        if waiting:
            run.until_true(injected_all, f"the steps of {sorted(waiting)}")

    def repair(self) -> None:
        for number, fault in self.by_number.items():
            fault.repair(self._kits[number])

    def rerun_options(self) -> list[str]:
        return [word for fault in self.by_number.values() for word in fault.rerun]

    def deviations(self, number: int, line: dict[str, object]) -> list[str]:
        """Return in what a board's outcome is not what it should be."""
        fault = self.by_number[number]
        wanted = {"outcome": fault.outcome, "exit": fault.exit}
        if fault.step:
            wanted["step"] = fault.step
        wrongs = [
            f"{fault.name}: {name} is {line[name]!r}, not {value!r}"
            for name, value in wanted.items() if line[name] != value
        ]  # fmt: skip
        for name, words in (("reason", fault.says), ("try", fault.tries)):
            if words not in str(line[name]):
                wrongs.append(f"{fault.name}: {name} is {line[name]!r}, without {words!r}")
        return wrongs
