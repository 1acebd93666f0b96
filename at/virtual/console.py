"""The application's console: boot banner, logs, crash and core dump, chunk export, shell."""

import base64
import binascii
import random
import struct
from collections.abc import Iterator

from at.virtual.kit import VirtualKit

EVENT_MESSAGE = 0x02
HEARTBEAT, TRACE = 1, 2
_LARGEST_CHUNK = 80  # bytes
_SINGLE, _FIRST, _MIDDLE, _LAST = 0x08, 0x48, 0xC0, 0x80
HARD_FAULT = 0x9400
_FAULT_PC, _FAULT_LR, _FAULT_SP = 0x0001_2A3C, 0x0001_2A15, 0x2000_9F40

_CORTEX_M = 3
_POINTER_BITS = 5  # log2 of 32
_HEX_BYTES = 32  # in a line of a core dump


def event(kit: VirtualKit, kind: int, information: dict[int, object]) -> bytes:
    """Return a message with one event, as the SDK serializes it: by default without a serial."""
    import cbor2

    fields: dict[int, object] = {
        2: kind,
        3: 1,
        10: "virtual-app",
        9: kit.saved.app_version,
        6: f"{kit.saved.model}dk",
    }
    now = kit.modem_time()
    if now is not None:
        fields[1] = int(now)
    fields[4] = information
    return bytes([EVENT_MESSAGE]) + cbor2.dumps(fields)


def heartbeat(kit: VirtualKit) -> bytes:
    """Return a heartbeat: its metrics in the order of the firmware's definitions."""
    cells = kit.cells_in_range()
    level = cells[0].rsrp_dbm if cells else None
    return event(kit, HEARTBEAT, {2: 1, 1: [kit.uptime_ms, kit.restarts, level, kit.firmware]})


def trace(kit: VirtualKit) -> bytes:
    """Return the reboot event of a hard fault, with a core dump saved."""
    return event(kit, TRACE, {1: HARD_FAULT, 2: _FAULT_PC, 3: _FAULT_LR, 5: 1})


def crc16(data: bytes) -> int:
    """Return CRC-16/XMODEM."""
    return binascii.crc_hqx(data, 0)


def split(message: bytes) -> Iterator[bytes]:
    """Cut a message into chunks."""
    check = struct.pack("<H", crc16(message))
    if 1 + len(message) + 2 <= _LARGEST_CHUNK:
        yield bytes([_SINGLE]) + message + check
        return
    offset = 0
    while True:
        number = _varint(offset or len(message))
        room = _LARGEST_CHUNK - 1 - len(number)
        data = message[offset : offset + room]
        if offset and len(data) + 2 <= room:
            yield bytes([_LAST]) + number + data + check
            return
        yield bytes([_MIDDLE if offset else _FIRST]) + number + data
        offset += len(data)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def export_lines(message: bytes) -> list[str]:
    """Return the lines that export a message over a UART."""
    return [f"MC:{base64.b64encode(chunk).decode('ascii')}:" for chunk in split(message)]


def core_dump() -> bytes:
    """Return a core dump of a Cortex-M: registers and the stack, its bytes made up."""
    dice = random.Random(_FAULT_PC)  # noqa: S311 - made-up memory, the same each time
    registers = [dice.randrange(1 << 32) for _ in range(5)]
    registers += [_FAULT_LR, _FAULT_PC, 0x6100_0000, _FAULT_SP]
    registers += [dice.randrange(1 << 32) for _ in range(8)]
    architecture = struct.pack("<17I", *registers)
    stack = bytes(dice.randrange(256) for _ in range(192))
    header = struct.pack("<2sHHBBI", b"ZE", 2, _CORTEX_M, _POINTER_BITS, 0, 0)
    return (
        header
        + struct.pack("<cHH", b"A", 2, len(architecture))
        + architecture
        + struct.pack("<cHII", b"M", 1, _FAULT_SP, _FAULT_SP + len(stack))
        + stack
    )


def core_dump_lines(dump: bytes, prefix: str) -> list[str]:
    """Return the lines that print a core dump in the log."""
    body = [dump[offset : offset + _HEX_BYTES].hex() for offset in range(0, len(dump), _HEX_BYTES)]
    return [f"{prefix}#CD:{text}" for text in ("BEGIN#", *body, "END#")]


BOOT_BANNER = (
    "*** Booting MCUboot v2.1.0-dev ***",
    "I: Starting bootloader",
    "I: Bootloader chainload address offset: 0x10000",
    "*** Booting nRF Connect SDK v3.1.1 ***",
    "*** Using Zephyr OS v4.1.99 ***",
)
SENSOR_S = 10.0


class Console:
    """The application beside its AT host: logs, crash, chunks, shell commands."""

    def __init__(self, kit: VirtualKit, *, logs: bool) -> None:
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
        """Print the boot banner and start the application's work; called after each boot."""
        if self._boots:
            self._kit.print(BOOT_BANNER)
            for message in self._pending if not self._logs else ():
                self._kit.print(export_lines(message))
        self._boots += 1
        if self._logs:
            self.log("inf", "app", f"version {self._kit.saved.app_version} started")
            self._schedule_sensor_log()
        crash_s = self._kit.faults.number("crash")
        if crash_s is not None and self._boots == 1:
            self._kit.schedule(crash_s, self.crash)

    def _schedule_sensor_log(self) -> None:
        def sense() -> None:
            cells = self._kit.cells_in_range()
            level = f"{cells[0].rsrp_dbm} dBm" if cells else "none"
            self.log("inf", "sensor", f"temperature 24.1 C, signal {level}")
            self._kit.schedule(SENSOR_S, sense)

        self._kit.schedule(SENSOR_S, sense)

    def log(self, level: str, module: str, text: str) -> None:
        """Print a log line."""
        self._kit.print([f"{self._stamp()} <{level}> {module}: {text}"])

    def _stamp(self) -> str:
        micros = round((self._kit.now - self._kit.session.booted_at) * 1_000_000)
        seconds, micros = divmod(micros, 1_000_000)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"[{hours:02}:{minutes:02}:{seconds:02}.{micros // 1000:03},{micros % 1000:03}]"

    def crash(self) -> None:
        """Crash: print the fault and the core dump, then request a restart."""
        self.log("err", "os", "***** HARD FAULT *****")
        self.log("err", "os", f"Faulting instruction address (r15/pc): {_FAULT_PC:#010x}")
        self.log("err", "os", ">>> ZEPHYR FATAL ERROR 0: CPU exception on CPU 0")
        self._dump = core_dump()
        prefix = f"{self._stamp()} <err> coredump: "
        self._kit.print(core_dump_lines(self._dump, prefix))
        self.log("err", "fatal_error", "Resetting system")
        self._pending += [trace(self._kit), heartbeat(self._kit)]
        self._kit.restart_requested = True

    def run(self, text: str) -> None:
        """Run a command line of the console's shell."""
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
            self._pending.append(heartbeat(self._kit))
        for message in self._pending:
            self._kit.print(export_lines(message))
        self._pending.clear()

    def _heartbeat(self) -> None:
        self._pending.append(heartbeat(self._kit))

    def _crash_soon(self) -> None:
        self._kit.schedule(0.0, self.crash)

    def _device(self) -> None:
        saved = self._kit.saved
        self._kit.print([f"S/N: {saved.uuid}", "SW type: virtual-app"])
        self._kit.print([f"SW version: {saved.app_version}", f"HW version: {saved.model}dk"])

    def _find(self) -> None:
        found = "Stored coredump found." if self._dump else "Stored coredump NOT found."
        self._kit.print([found])

    def _print_dump(self) -> None:
        if self._dump:
            self._kit.print(core_dump_lines(self._dump, ""))
        self._find()

    def _erase(self) -> None:
        self._dump = b""
        self._kit.print(["Stored coredump erased."])

    def _uptime(self) -> None:
        self._kit.print([f"Uptime: {self._kit.uptime_ms} ms"])

    def _reboot(self) -> None:
        self._kit.restart_requested = True

    def _help(self) -> None:
        self._kit.print(["Available commands:", *(f"  {name}" for name in self._commands)])
