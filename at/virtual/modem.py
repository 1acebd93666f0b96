r"""The virtual modem behind its ports: bytes in, bytes out, with times as arguments; no waiting.

modem = VirtualModem(VirtualOptions(), now=0.0, unix_time=1_700_000_000.0)
modem.receive(b"AT+CGMR\r", now=0.1)
modem.data_to_send()            # b"mfw_nrf91x1_2.0.4\r\nOK\r\n"
modem.next_at                   # call advance(now) then; None: nothing is scheduled
"""

from collections.abc import Mapping
from enum import Enum
from functools import cache, partial
from importlib import import_module

from at.virtual import command_line
from at.virtual.console import Console
from at.virtual.families import functional_mode, wifi
from at.virtual.families.serial_modem.firmware_update import BOOTLOADER_COMMANDS
from at.virtual.faults import LineFaults
from at.virtual.kit import DataMode, Reply, VirtualKit, fail, ok
from at.virtual.options import MODULE, TERMINATORS, VirtualOptions
from at.virtual.session import ModemMode
from at.virtual.state import SavedState


def _list_of(signs: str) -> command_line.Handler:
    """Return the handler of +CLAC or #XCLAC: lists the commands that begin with one of `signs`."""

    def command_list(kit: VirtualKit, _request: command_line.CommandRequest) -> Reply:
        others = {*wifi.COMMANDS, *(SINCE_2 if kit.generation < 2 else ())}
        others |= set() if kit.is_module else _NOT_OF_THE_MODEM
        known = commands_of(kit)
        own = [name for name in known if name and name[0] in signs and name not in others]
        return ok(*(f"AT{name}" for name in own))

    return command_line.only(command_list, command_line.RequestForm.RUN)


# Each is a module of `families` with its COMMANDS, in the order in which +CLAC lists them.
_FAMILIES = (
    *("identity", "functional_mode", "registration", "network", "contexts", "power_saving"),
    *("signal", "cells", "system_mode", "sim", "device_status", "settings", "clock"),
    *("credentials", "keys", "wifi"),
    *("serial_modem.application", "serial_modem.cloud", "serial_modem.gnss"),
    *("serial_modem.firmware_update", "serial_modem.observability", "serial_modem.provisioning"),
)
_MODULES = [import_module(f"at.virtual.families.{family}") for family in _FAMILIES]
COMMANDS: Mapping[str, command_line.Handler] = {
    name: handler for module in _MODULES for name, handler in module.COMMANDS.items()
} | {"+CLAC": _list_of("+%"), "#XCLAC": _list_of("#")}
SINCE_2 = frozenset(name for module in _MODULES for name in getattr(module, "SINCE_2", ()))
"""The commands that only the second generation of the Serial Modem has."""
_NOT_OF_THE_MODEM = {"+IPR"}


def commands_of(kit: VirtualKit) -> Mapping[str, command_line.Handler]:
    """Return the commands that a kit's model has."""
    return _of_module() if kit.is_module else COMMANDS


@cache
def _of_module() -> Mapping[str, command_line.Handler]:
    from at.virtual.families.nrf93m1 import cloud, module, update

    shared = {name: COMMANDS[name] for name in (*module.SHARED, "+CLAC")}
    return shared | module.COMMANDS | cloud.COMMANDS | update.COMMANDS


PROMPT = b"\x1b[1;32muart:~$ \x1b[m"  # in the colours that Zephyr's shell has
BOOT_S = 2.0
_BLANK_LINES = ("serial-modem", MODULE)
_TEXTS = 2  # +CMEE: errors as texts
_ON_FOR_S = 30.0  # a kit that is registered from the start was switched on so long ago


class Port(Enum):
    """The serial ports of the kit."""

    AT = "at"
    CONSOLE = "console"
    COMPANION = "companion"


class VirtualModem:
    """One kit behind its serial ports. `kit` is its state, with its true position."""

    def __init__(
        self,
        options: VirtualOptions | None = None,
        *,
        now: float,
        unix_time: float,
        saved: SavedState | None = None,
        console_apart: bool = False,
    ) -> None:
        options = options or VirtualOptions()
        on_for_s = _ON_FOR_S if options.registered else 0.0
        self.kit = VirtualKit(
            options, now=now - on_for_s, unix_time=unix_time - on_for_s, saved=saved
        )
        self.console_apart = console_apart
        self.commands = 0
        self._line_faults = LineFaults(self.kit.faults, self.kit.random)
        self._companion = wifi.VirtualCompanion(self.kit)
        self._out = {
            Port.AT: bytearray(),
            Port.CONSOLE: bytearray(),
            Port.COMPANION: self._companion.out,
        }
        self._receivers = {
            Port.AT: self._receive_commands,
            Port.CONSOLE: self._receive_console,
            Port.COMPANION: self._companion.receive,
        }
        self._inbox = bytearray()
        self._busy = False
        self._booting = False
        self._data: DataMode | None = None
        given = self.kit.options
        self._at_verb = "modem at" if given.dialect == "modem-shell" else "at"
        self._dialect = "shell" if given.dialect == "modem-shell" else given.dialect
        self._reader = command_line.LineReader(self._dialect, TERMINATORS[given.terminator])
        self.console = Console(self.kit, logs=console_apart)
        """The application; `console.crash()` crashes it at the next `advance`."""
        self._shell = command_line.LineReader("shell", b"\r")
        if "open-quote" in self.kit.faults:
            self._reader.type_ahead(b'AT+COPS=1,2,"half')
        if "stuck-in-data-mode" in self.kit.faults:
            # The Serial Modem says how it ended; another firmware has no data mode to end.
            self._data = DataMode(None, lambda _: self.kit.notify("#XDATAMODE: 0"))
        self._line_faults.start_flood(self.kit.notify, self.kit.schedule)
        self.console.begin()
        if options.registered:
            functional_mode.switch_on(self.kit, ModemMode.NORMAL)
            self.advance(now)
            self._out[Port.AT].clear()  # nobody was there to read it

    @property
    def next_at(self) -> float | None:
        """When to call `advance` next, on the clock of `now`; None if nothing is scheduled."""
        return self.kit.next_at

    def data_to_send(self, port: Port = Port.AT) -> bytes:
        """Remove and return the bytes that the kit has printed on a port."""
        data = bytes(self._out[port])
        self._out[port].clear()
        return data

    def advance(self, now: float) -> None:
        """Run what is scheduled up to `now`."""
        while self.kit.run_next(now):
            self._settle()
        self.kit.now = max(self.kit.now, now)

    def receive(self, data: bytes, now: float, port: Port = Port.AT) -> None:
        """Receive bytes at a port."""
        self.advance(now)
        self._receivers[port](data)

    def _receive_commands(self, data: bytes) -> None:
        if self._booting or not self.kit.powered:
            return
        if self._busy and self._dialect == "at-host":
            return  # the receiver is off while a command runs: bytes sent then are lost
        self._inbox += data
        self._pump()

    def _receive_console(self, data: bytes) -> None:
        buffer = bytearray(data)
        while not self._booting and buffer:
            before = bytes(buffer)
            typed = self._shell.read_line(buffer)
            eaten = before[: len(before) - len(buffer)]
            self._out[Port.CONSOLE] += eaten.replace(b"\r", b"\r\n")
            if typed is not None:
                self.console.run(typed.text or "")
                self._settle()
                self._out[Port.CONSOLE] += PROMPT
        self.advance(self.kit.now)

    def _pump(self) -> None:
        while self._inbox and not self._busy:
            if self._data is not None:
                if not self._receive_data(self._data):
                    return
                continue
            echoes = self.kit.session.echo or "echo" in self.kit.faults
            before = bytes(self._inbox) if echoes or self._dialect == "shell" else b""
            typed = self._reader.read_line(self._inbox)
            if before:
                self.print_raw(self._echoed(before[: len(before) - len(self._inbox)]))
            if typed is not None:
                self._run(typed)
                # Actions that are due now run before the next command, however bytes were cut.
                self.advance(self.kit.now)

    def _echoed(self, typed: bytes) -> bytes:
        return typed.replace(b"\r", b"\r\n") if self._dialect == "shell" else typed

    def _run(self, typed: command_line.CommandLine) -> None:
        self.commands += 1
        answer = self._answer(typed)
        if answer is None:
            return
        takes_s = self._line_faults.answer_delay(answer.takes_s, self.commands)
        if takes_s <= 0:
            self._finish(answer)
            return
        if self._dialect == "at-host":
            self._inbox.clear()
            self._flush_notices()
        self._busy = True
        self.kit.schedule(takes_s, lambda: self._finish_late(answer))

    def _answer(self, typed: command_line.CommandLine) -> Reply | None:
        if self._line_faults.leaves_unanswered(self.commands):
            return None
        text = typed.text
        if text is None:
            return fail()
        if self._dialect == "shell":
            stripped = text.strip()
            if not stripped:
                self.print_raw(PROMPT)
                return None
            rest = stripped.removeprefix(f"{self._at_verb} ")
            if rest == stripped or (self.kit.is_module and stripped.startswith("at at")):
                self.console.run(stripped)
                self._settle()
                self.print_raw(PROMPT)
                return None
            # A shell line holds no line end: this firmware makes CR LF of the two characters.
            text = rest.strip().strip("'").replace("\\n", "\r\n")
        if self._dialect in _BLANK_LINES and text.strip()[2:].upper() in {"E0", "E1"}:
            self.kit.session.echo = text.strip().endswith("1")
            return ok()
        try:
            request = command_line.parse_request(text)
            return self._dispatch(request)
        except command_line.BadRequest as wrong:
            return fail(wrong.code)

    def _dispatch(self, request: command_line.CommandRequest) -> Reply:
        handler = commands_of(self.kit).get(request.name)
        if handler is None or (request.name[:1] == "#" and self._dialect != "serial-modem"):
            return fail()
        if request.name in SINCE_2 and self.kit.generation < 2:
            return fail()
        if self.kit.bootloader_mode and request.name not in BOOTLOADER_COMMANDS:
            return fail()
        return handler(self.kit, request)

    def _finish_late(self, answer: Reply) -> None:
        self._busy = False
        self._finish(answer)
        self._pump()

    def _finish(self, answer: Reply) -> None:
        if self._dialect != "serial-modem":
            self._flush_notices()
        text = self._line_faults.before_answer(self.commands) + self._formatted(answer)
        if self._line_faults.resets_during(self.commands):
            self.print_raw(text[: text.rfind(b"\n", 0, len(text) * 3 // 4) + 1])
            self.restart()
            return
        self.print_raw(text)
        self._data = answer.data
        self._settle()

    def _formatted(self, answer: Reply) -> bytes:
        """Return a reply as this firmware prints it."""
        if not answer.failed:
            final = "OK"
        elif answer.code is None or not self.kit.session.cmee:
            final = "ERROR"
        else:
            final = f"+CME ERROR: {self._error(answer.code)}"
        noise = self._line_faults.log_line
        lines = [line.encode("latin-1", "replace") for line in answer.lines]
        body = b"".join(noise() + line + b"\r\n" for line in lines)
        end = noise() + final.encode() + b"\r\n"
        if self._dialect in _BLANK_LINES:
            return (b"\r\n" + body if body else b"") + b"\r\n" + end
        return body + end + noise() + (PROMPT if self._dialect == "shell" else b"")

    def _error(self, code: int) -> str:
        if self.kit.session.cmee < _TEXTS:
            return str(code)
        from at.virtual.families.nrf93m1.module import ERROR_TEXTS

        return ERROR_TEXTS.get(code, str(code))

    def _settle(self) -> None:
        """Print queued notices and console lines, then restart if that was requested."""
        if not (self._busy and self._dialect == "serial-modem"):
            self._flush_notices()
        self._flush_console()
        if self.kit.restart_requested:
            self.restart()

    def _flush_notices(self) -> None:
        if self._data is not None and self._dialect == "serial-modem":
            return  # held back until the data mode ends
        for line in self.kit.notices:
            self.print_raw(self.notice(line))
        self.kit.notices.clear()

    def notice(self, line: str) -> bytes:
        """Return a notice as this firmware prints it."""
        lead = b"\r\n" if self._dialect in _BLANK_LINES else b""
        return lead + line.encode("latin-1", "replace") + b"\r\n"

    def _flush_console(self) -> None:
        text = "".join(line + "\r\n" for line in self.kit.console).encode("utf-8")
        self.kit.console.clear()
        if self.console_apart:
            self._out[Port.CONSOLE] += text
        elif self._dialect not in _BLANK_LINES:  # whose logs go to its second UART
            self.print_raw(text)

    def print_raw(self, data: bytes) -> None:
        """Print bytes on the AT port, after the faults of the line have damaged them."""
        self._out[Port.AT] += self._line_faults.damaged(data)

    def _receive_data(self, mode: DataMode) -> bool:
        """Move received bytes to the data mode; return False while no progress is possible."""
        if mode.left is not None:
            piece = bytes(self._inbox[: mode.left])
            mode.left -= len(piece)
            ended = mode.left == 0
            del self._inbox[: len(piece)]
        else:
            end = self._inbox.find(b"+++")
            ended = end >= 0
            # The last bytes may be the beginning of +++.
            size = end if ended else len(self._inbox.rstrip(b"+"))
            piece = bytes(self._inbox[:size])
            del self._inbox[: size + (3 if ended else 0)]
        mode.received += piece
        if ended:
            self._data = None
            mode.done(bytes(mode.received))
            self._settle()
            self.advance(self.kit.now)
        return ended or bool(piece)

    def restart(self) -> None:
        """Restart the kit: only the contents of its flash are kept."""
        self.kit.restart()
        self._reader.reset()
        self._inbox.clear()
        self._data = None
        boot_s = self.kit.delay(BOOT_S)
        self._busy = self._booting = boot_s > 0
        lines, self.kit.loader_lines = self.kit.loader_lines, []
        for number, line in enumerate(lines, 1):
            text = self.notice(line)
            self.kit.schedule(boot_s * number / (len(lines) + 1), partial(self.print_raw, text))
        self.kit.schedule(boot_s, self._booted)

    def _booted(self) -> None:
        self._busy = self._booting = False
        if self._dialect == "serial-modem":
            mode = b"Bootloader mode ready" if self.kit.bootloader_mode else b"Ready"
            self.print_raw(mode + b"\r\n")
            self.kit.report_update()
        elif self._dialect == MODULE:
            self.print_raw(self.notice("RDY"))
        self.console.begin()
        self._settle()
        if self._dialect == "shell":
            self.print_raw(PROMPT)
