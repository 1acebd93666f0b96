"""The application's console: boot banner, logs, a crash with its core dump, a small shell."""

from __future__ import annotations

from at.virtual import chunks
from at.virtual.kit import Kit

BOOT_BANNER = (
    "*** Booting MCUboot v2.1.0-dev ***",
    "I: Starting bootloader",
    "I: Bootloader chainload address offset: 0x10000",
    "*** Booting nRF Connect SDK v3.1.1 ***",
    "*** Using Zephyr OS v4.1.99 ***",
)
SENSOR_S = 10.0
_FAULT_PC, _FAULT_LR = 0x0001_2A3C, 0x0001_2A15


class Console:
    """What the application does beside passing AT commands on."""

    def __init__(self, kit: Kit, *, logs: bool) -> None:
        self._kit = kit
        self._logs = logs
        self._pending: list[bytes] = []
        self._dump = b""
        self._boots = 0
        self._commands = {
            "mflt export": self._export,
            "mflt test heartbeat": self._heartbeat,
            "mflt test hardfault": self._crash_soon,
            "mflt test assert": self._crash_soon,
            "mflt get_device_info": self._device,
            "coredump find": self._find,
            "coredump print": self._print_dump,
            "coredump erase": self._erase,
            "kernel uptime": self._uptime,
            "kernel reboot": self._reboot,
            "kernel reboot cold": self._reboot,
            "kernel reboot warm": self._reboot,
            "help": self._help,
        }

    def begin(self) -> None:
        """Start the application's own work, after each boot."""
        if self._boots:
            self._kit.print(BOOT_BANNER)
            for message in self._pending if not self._logs else ():
                self._kit.print(chunks.export_lines(message))
        self._boots += 1
        if self._logs:
            self.log("inf", "app", f"version {self._kit.saved.app_version} started")
            self._later_sense()
        if "crash" in self._kit.faults and self._boots == 1:
            self._kit.later(self._kit.faults.number("crash"), self.crash)

    def _later_sense(self) -> None:
        def sense() -> None:
            heard = self._kit.heard()
            level = f"{heard[0].rsrp_dbm} dBm" if heard else "none"
            self.log("inf", "sensor", f"temperature 24.1 C, signal {level}")
            self._kit.later(SENSOR_S, sense)

        self._kit.later(SENSOR_S, sense)

    def log(self, level: str, module: str, text: str) -> None:
        """Print a line of the log."""
        self._kit.print([f"{self._stamp()} <{level}> {module}: {text}"])

    def _stamp(self) -> str:
        micros = round((self._kit.now - self._kit.session.booted_at) * 1_000_000)
        seconds, micros = divmod(micros, 1_000_000)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"[{hours:02}:{minutes:02}:{seconds:02}.{micros // 1000:03},{micros % 1000:03}]"

    def crash(self) -> None:
        """Crash: the fault and the core dump are printed, and the kit restarts."""
        pointer = chunks.stack_pointer()
        self.log("err", "os", "***** HARD FAULT *****")
        self.log("err", "os", f"Faulting instruction address (r15/pc): {_FAULT_PC:#010x}")
        self.log("err", "os", ">>> ZEPHYR FATAL ERROR 0: CPU exception on CPU 0")
        self._dump = chunks.core_dump(_FAULT_PC, _FAULT_LR, pointer)
        prefix = f"{self._stamp()} <err> coredump: "
        self._kit.print(chunks.core_dump_lines(self._dump, prefix))
        self.log("err", "fatal_error", "Resetting system")
        self._pending += [chunks.trace(self._kit, _FAULT_PC, _FAULT_LR)]
        self._pending += [chunks.heartbeat(self._kit)]
        self._kit.restart_wanted = True

    def run(self, text: str) -> None:
        """Do what was typed at the console's shell."""
        words = " ".join(text.split())
        if not words:
            return
        command = self._commands.get(words)
        if command is None:
            self._kit.print([f"{words.split()[0]}: command not found"])
        else:
            command()

    def _export(self) -> None:
        if not self._pending:
            self._pending.append(chunks.heartbeat(self._kit))
        for message in self._pending:
            self._kit.print(chunks.export_lines(message))
        self._pending.clear()

    def _heartbeat(self) -> None:
        self._pending.append(chunks.heartbeat(self._kit))

    def _crash_soon(self) -> None:
        self._kit.later(0.0, self.crash)

    def _device(self) -> None:
        saved = self._kit.saved
        self._kit.print([f"S/N: {saved.imei}", "SW type: virtual-app"])
        self._kit.print([f"SW version: {saved.app_version}", f"HW version: {saved.model}dk"])

    def _find(self) -> None:
        found = "Stored coredump found." if self._dump else "Stored coredump NOT found."
        self._kit.print([found])

    def _print_dump(self) -> None:
        if self._dump:
            self._kit.print(chunks.core_dump_lines(self._dump, ""))
        self._find()

    def _erase(self) -> None:
        self._dump = b""
        self._kit.print(["Stored coredump erased."])

    def _uptime(self) -> None:
        self._kit.print([f"Uptime: {self._kit.uptime_ms} ms"])

    def _reboot(self) -> None:
        self._kit.restart_wanted = True

    def _help(self) -> None:
        self._kit.print(["Available commands:", *(f"  {name}" for name in self._commands)])
