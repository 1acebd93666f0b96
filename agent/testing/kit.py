"""The kit of a test: its power, its cable, its faults, the world around it."""

import shlex
import subprocess
from collections.abc import Callable
from typing import TypeVar

import pytest

from agent.errors import AgentError, UsageError
from agent.redact import redact
from agent.testing.choice import KitEntry
from agent.testing.live_kit import VirtualSource
from agent.testing.loop_thread import LoopThread
from agent.testing.sources import KitSource
from at.virtual.kit import VirtualKit
from at.virtual.radio_world import Coordinates
from at.virtual.server.kit_ports import KitPorts
from at.virtual.server.pty import PtyServer

T = TypeVar("T")
_POWER_TIMEOUT_S = 60.0
_SHOWN = 200  # characters


class Kit:
    """What a test does to its kit. On a replay nothing: what came of it is in the recording.

    A real kit has power, where its entry names the command for it; a test that asks for more of a
    real kit is skipped.
    """

    def __init__(self, source: KitSource | None, entry: KitEntry, thread: LoopThread) -> None:
        self._source, self._entry, self._thread = source, entry, thread

    # --- power and cable

    def power_off(self) -> None:
        """Switch its power off: its ports go, and what it had not stored."""
        if not self._switched("off"):
            self._on_ports(_unplug, "power")

    def power_on(self) -> None:
        """Switch its power on: it starts anew."""
        if not self._switched("on"):
            self._on_ports(_start, "power")

    def power_cycle(self) -> None:
        """Switch its power off and on."""
        if not self._switched("cycle"):
            self._on_ports(_unplug, "power")
            self._on_ports(_start, "power")

    def reset(self) -> None:
        """Press its reset button: the ports stay."""
        self._on_ports(_reset, "a reset button")

    def unplug(self) -> None:
        """Pull the cable: the ports go, the kit runs on."""
        self._on_ports(_unplug, "a cable that can be pulled")

    def plug_in(self) -> None:
        """Plug the cable in again."""
        self._on_ports(_plug_in, "a cable that can be plugged in")

    # --- what happens to it

    def crash(self) -> None:
        """Crash its application, which prints its core dump on the console."""
        self._on_ports(lambda ports: ports.runner.crash(), "a crash")

    def fault(self, entry: str) -> None:
        """Switch a fault on, NAME or NAME=ARG of `cellagent modem virtual --fault help`."""
        self._on_kit(lambda kit: kit.faults.switch_on(entry), "faults")

    def mend(self, name: str) -> None:
        """Switch a fault off."""
        self._on_kit(lambda kit: kit.faults.switch_off(name), "faults")

    def move_to(self, latitude: float, longitude: float) -> None:
        """Carry it to a place, in degrees: it hears the cells of that place."""
        if not (abs(latitude) <= 90 and abs(longitude) <= 180):
            raise UsageError(
                f"no place on Earth: latitude {latitude}, longitude {longitude}",
                hint="degrees, such as `kit.move_to(59.9, 10.7)`",
            )

        def moved(kit: VirtualKit) -> None:
            kit.position_hook = Coordinates(latitude, longitude)

        self._on_kit(moved, "a place of its own")

    def notify(self, line: str) -> None:
        """Have the modem print a notice, such as "+CEREG: 2"."""
        self._on_kit(lambda kit: kit.notify(line), "notices at will")

    def print(self, *lines: str) -> None:
        """Have the application print lines on its console."""
        self._on_kit(lambda kit: kit.print(lines), "an application of ours")

    # --- internals

    def _switched(self, action: str) -> bool:
        """Switch a real kit's power; return whether it was one."""
        if self._source is None or isinstance(self._source, VirtualSource):
            return False
        if not self._entry.power:
            pytest.skip(
                f"nothing switches the power of {self._entry.port}: "
                f"--cellagent-kit='{self._entry.port},power=CMD {{action}}'"
            )
        _run([word.replace("{action}", action) for word in shlex.split(self._entry.power)])
        return True

    def _on_kit(self, act: Callable[[VirtualKit], None], what: str) -> None:
        def on_ports(ports: KitPorts) -> None:
            ports.runner.have(lambda: act(ports.runner.modem.kit))

        self._on_ports(on_ports, what)

    def _on_ports(self, act: Callable[[KitPorts], None], what: str) -> None:
        source = self._source
        if source is None:
            return
        if not isinstance(source, VirtualSource):
            pytest.skip(f"{self._entry.port} is a real kit: it has not {what}")

        self._thread.run(lambda: act(source.ports))


def _run(words: list[str]) -> None:
    """Run the power command. Raises AgentError, which names it and says how it ended."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_POWER_TIMEOUT_S,
            check=False,
        )
    except OSError as error:
        ended, said = f"did not start: {error.strerror}", b""
    except subprocess.TimeoutExpired as error:
        ended, said = f"did not end in {_POWER_TIMEOUT_S:g} s", error.stdout or b""
    else:
        if not done.returncode:
            return
        ended, said = f"ended with exit code {done.returncode}", done.stdout
    last = said.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
    raise AgentError(
        f"the power command `{redact(shlex.join(words))}` {ended}"
        + (f": {redact(last[:_SHOWN])}" if last else ""),
        hint="run it by hand; it stands behind power= in `--cellagent-kit`",
    )


def _unplug(ports: KitPorts) -> None:
    for terminal in _terminals(ports):
        terminal.close()


def _plug_in(ports: KitPorts) -> None:
    for terminal in _terminals(ports):
        terminal.plug_in()


def _terminals(ports: KitPorts) -> list[PtyServer]:
    found = [port for port in (ports.at, ports.console) if isinstance(port, PtyServer)]
    if not found:
        pytest.skip("this system has no terminals that could be unplugged")
    return found


def _reset(ports: KitPorts) -> None:
    ports.runner.have(ports.runner.modem.restart)


def _start(ports: KitPorts) -> None:
    _plug_in(ports)
    _reset(ports)
