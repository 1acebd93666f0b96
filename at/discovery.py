"""Discovery of kits: which is on which port, which port answers AT, and why another does not."""

import asyncio
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from at.driver.modem import Modem
from at.driver.opening import is_garbage, transport_of
from at.ports.usb import Listing, UsbPort
from at.protocol.counts import counted
from at.protocol.errors import AtError, LinkLost, NoAnswer, PortBusy, PortForbidden
from at.protocol.line.answer_or_notice import line_name
from at.protocol.line.framing import Framer, Log
from at.transport.base import Transport

# Speeds of the kits' firmwares, the likeliest first; the first is Serial Modem's and AT host's.
BAUD_RATES = (115200, 1000000, 921600, 460800, 230400)
_ANSWER_TIMEOUT_S = 0.4
_OTHER_RATE_S = 0.3
_QUESTION_S = 2.0
_OF_A_SHELL = (b"command not found", b":~$")
Opener = Callable[..., Transport]
"""Returns the transport of a device at a speed: `transport_of`, or another with its names."""


@dataclass(frozen=True, slots=True)
class PortReport:
    """The result of probing one port. `role`: "at", "console", "trace" or "unknown".

    If it does not answer AT, `reason` says why and `hint` what to try.
    """

    usb: UsbPort
    role: str = "unknown"
    answers: bool = False
    dialect: str | None = None
    terminator: str | None = None
    baud: int | None = None
    firmware: str | None = None
    imei: str | None = None
    reason: str = ""
    hint: str = ""


async def survey(
    *,
    probe_all: bool = False,
    named: Iterable[str] = (),
    listing: Listing,
    transport: Opener | None = None,
) -> list[PortReport]:
    """Probe the ports concurrently; return a report for each.

    Bytes are written only to ports of known kits, to those in `named`, and with `probe_all` to
    all: another device might take them for one of its commands.
    """
    ports = all_ports = listing()
    transport = transport or partial(transport_of, listing=lambda: all_ports)
    names = list(named)
    if names:
        known = {port.device: port for port in ports}
        ports = [known.get(name, UsbPort(name)) for name in names]

    async def report_of(port: UsbPort) -> PortReport:
        if not (probe_all or names or port.model):
            return PortReport(
                port,
                reason="not probed: its USB identity is not that of a kit",
                hint=f"`cellagent ports --port {shlex.quote(port.device)}`, "
                "or `cellagent ports --probe-all`",
            )
        return await probe(port, transport)

    return list(await asyncio.gather(*map(report_of, ports)))


async def probe(port: UsbPort, transport: Opener = transport_of) -> PortReport:
    """Probe one port for AT. Raises no AtError: an error becomes the report's reason."""
    try:
        return await _probe(port, BAUD_RATES[0], transport, _ANSWER_TIMEOUT_S)
    except PortBusy as busy:
        return PortReport(
            port, reason=f"in use by {busy.holder or 'another program'}", hint=busy.hint
        )
    except PortForbidden as forbidden:
        group = f"; the group {forbidden.group} may open it" if forbidden.group else ""
        return PortReport(port, reason=f"no permission{group}", hint=forbidden.hint)
    except NoAnswer as silent:
        if is_garbage(silent.received):
            return await _other_rates(port, transport, silent)
        return _silent(port, silent)
    except AtError as error:
        return PortReport(port, reason=str(error), hint=error.hint)


async def _probe(
    port: UsbPort, baud: int, transport: Opener, answer_timeout_s: float
) -> PortReport:
    modem = Modem(transport(port.device, baud=baud))
    await modem.open(answer_timeout_s=answer_timeout_s)
    try:
        report = PortReport(
            port,
            role="at",
            answers=True,
            dialect=modem.dialect.value,
            terminator=modem.terminator.value,
            baud=baud,
        )
        try:
            firmware = await modem.execute("AT+CGMR", timeout_s=_QUESTION_S)
            imei = await modem.execute("AT+CGSN=1", timeout_s=_QUESTION_S)
        except LinkLost:
            raise
        except AtError as error:
            return replace(report, reason=f"it answered once: {error}", hint=error.hint)
        return replace(
            report,
            firmware=firmware.lines[0] if firmware.ok and len(firmware.lines) == 1 else None,
            imei=_imei(imei.lines) if imei.ok else None,
        )
    finally:
        await modem.close()


async def _other_rates(port: UsbPort, transport: Opener, silent: NoAnswer) -> PortReport:
    for baud in BAUD_RATES[1:]:
        try:
            return await _probe(port, baud, transport, _OTHER_RATE_S)
        except NoAnswer as error:
            if error.received and not is_garbage(error.received):
                return replace(_silent(port, error), baud=baud)
        except AtError as error:
            return PortReport(port, reason=str(error), hint=error.hint)
    rates = ", ".join(map(str, BAUD_RATES))
    garbage = counted(len(silent.received), "bytes")
    return PortReport(
        port,
        role="trace",
        reason=f"no AT answer, {garbage} of garbage at {BAUD_RATES[0]} baud; tried {rates}",
        hint="a modem trace looks like this; else name its speed with --baud",
    )


def _silent(port: UsbPort, silent: NoAnswer) -> PortReport:
    text = silent.received
    if not text:
        return PortReport(
            port,
            reason="silence: no answer with CR, CR LF, LF or NUL as line end",
            hint="is the kit on, and is it the right firmware? In its boot loader it answers "
            "nothing: press its reset button. Another port may be the AT port",
        )
    if any(word in text for word in _OF_A_SHELL):
        return PortReport(
            port,
            role="console",
            baud=BAUD_RATES[0],
            reason="a shell without an `at` command",
            hint="flash a firmware with the AT shell, or use the kit's other port",
        )
    framer = Framer()
    if any(isinstance(event, Log) for event in [*framer.feed(text), *framer.finish()]):
        return PortReport(
            port,
            role="console",
            baud=BAUD_RATES[0],
            reason="log lines, but no AT answer",
            hint="the kit's console: another port may be the AT port",
        )
    return PortReport(
        port, reason=f"{counted(len(text), 'bytes')} of text, but no AT answer", hint=silent.hint
    )


def _imei(lines: tuple[str, ...]) -> str | None:
    for line in lines:
        match = re.search(r"\d{15}", line)
        if match and line_name(line) in {"", "+CGSN"}:
            return match.group()
    return None
