"""The faults that can be switched on, by name: what goes wrong, and what its argument means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from at.virtual.options import OptionError


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `default` is its argument where none is given, None where it takes none."""

    description: str
    default: float | str | None = None


FAULTS = {
    "silent": Fault("answers nothing from command ARG on", 1.0),
    "slow": Fault("every answer comes ARG seconds later", 2.0),
    "late-answer": Fault("every third answer comes ARG seconds late", 8.0),
    "lost-bytes": Fault("ARG of the bytes it prints are lost", 0.02),
    "garbled-bytes": Fault("ARG of the bytes it prints have one bit turned", 0.02),
    "doubled-bytes": Fault("ARG of the bytes it prints come twice", 0.02),
    "reset-mid-command": Fault("restarts in the middle of every command number ARG", 3.0),
    "echo": Fault("echoes commands, as no AT host does"),
    "log-noise": Fault("log lines before, between and after the lines of answers"),
    "notice-mid-answer": Fault("a notice between each command and its answer"),
    "cmng-refused": Fault("credentials are neither written nor deleted: error ARG", 514.0),
    "memory-full": Fault("no room for another credential (515)"),
    "power-warning": Fault("the power-off warning blocks writing to flash (528)"),
    "line-ends-changed": Fault("line ends in written credentials become CR LF"),
    "jwt-failed": Fault("%JWT fails with error ARG", 525.0),
    "keygen-failed": Fault("%KEYGEN fails with error ARG", 523.0),
    "no-time": Fault("the network never gives a time"),
    "no-sim": Fault("there is no SIM"),
    "not-registered": Fault("never registers: +CEREG stays at ARG", 2.0),
    "old-firmware": Fault("the modem firmware is ARG", "mfw_nrf9160_1.2.8"),
    "no-cells": Fault("cell measurements find nothing"),
    "stuck-in-data-mode": Fault("starts in data mode, left by +++"),
    "open-quote": Fault("starts with half a command and an open quote in its buffer"),
    "urc-flood": Fault("ARG notices a second", 100.0),
    "no-newline": Fault("prints ARG bytes without a line end at the first command", 20000.0),
    "crash": Fault("the application crashes after ARG seconds and prints its core dump", 10.0),
    "flash-failed": Fault("firmware that was written does not verify"),
    "update-reverted": Fault("new firmware starts once, then the old one is put back"),
}


class Faults:
    """The faults that are on, each with its argument."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._on: dict[str, float | str] = {}
        for entry in names:
            name, given, argument = entry.partition("=")
            fault = FAULTS.get(name)
            if fault is None:
                raise OptionError(f"no such fault: {name!r}", hint="list them with --fault help")
            self._on[name] = _argument(name, fault, argument if given else None)

    def __contains__(self, name: str) -> bool:
        return name in self._on

    def number(self, name: str) -> float:
        """Return the argument of a fault that takes a number."""
        return float(self._on[name])

    def text(self, name: str) -> str:
        """Return the argument of a fault that takes a text."""
        return str(self._on[name])


def _argument(name: str, fault: Fault, argument: str | None) -> float | str:
    if argument is None:
        return 0.0 if fault.default is None else fault.default
    if fault.default is None:
        raise OptionError(f"the fault {name} takes no argument, yet got {argument!r}")
    if isinstance(fault.default, str):
        return argument
    try:
        number = float(argument)
    except ValueError as error:
        raise OptionError(f"the fault {name} takes a number, not {argument!r}") from error
    if not 0 <= number <= 10_000_000:
        raise OptionError(f"the argument of {name} is out of range: {argument}")
    return number
