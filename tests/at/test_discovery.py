"""Which port answers AT, and why the others do not: over PTYs, with an injected listing."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

import pytest

from at.discovery import PortReport, survey
from at.ports.usb import UsbPort
from at.protocol.errors import PortBusy, PortForbidden, PortNotFound
from at.transport.event_loop import SerialTransport
from tests.support.harness import virtual_time
from tests.support.modem.memory_transport import MemoryTransport
from tests.support.modem.pty_far_end import PtyFarEnd, modem_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from at.transport.base import Transport

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a PTY: run it on Linux or macOS")
LOG = b"[00:00:01.000,000] <inf> app: hello\r\n"


def kit(device: str, serial: str = "000960012345", interface: int = 0) -> UsbPort:
    return UsbPort(device, 0x1366, 0x1051, serial, "1-2.3", interface)


async def one(far: PtyFarEnd) -> PortReport:
    with far:
        (report,) = await survey(listing=lambda: [kit(far.path)])
    return report


async def test_a_kit_that_answers_is_described() -> None:
    report = await one(PtyFarEnd())
    assert report == PortReport(
        report.usb,
        role="at",
        answers=True,
        dialect="at-host",
        terminator="cr",
        baud=115200,
        firmware="mfw_nrf9160_1.3.5",
        imei="352656100367872",
    )


async def test_serial_modem_is_told_by_its_empty_lines() -> None:
    def answer(line: bytes) -> bytes:
        body, _, final = modem_answer(line).rpartition(b"OK\r\n")[0], b"", b"\r\nOK\r\n"
        return (b"\r\n" + body if body else b"") + final

    assert (await one(PtyFarEnd(answer))).dialect == "serial-modem"


@pytest.mark.parametrize(
    ("name", "wire"), [("crlf", b"\r\n"), ("lf", b"\n"), ("null", b"\x00"), ("cr", b"\r")]
)
async def test_the_line_end_is_found_by_asking(name: str, wire: bytes) -> None:
    def answer(line: bytes) -> bytes:
        # With LF alone as the line end, a CR is text, and the command none that is known.
        return b"ERROR\r\n" if name == "lf" and b"\r" in line else modem_answer(line)

    report = await one(PtyFarEnd(answer, terminator=wire))
    assert (report.answers, report.terminator) == (True, name)


async def test_the_at_shell_is_told_from_an_at_host() -> None:
    def shell(line: bytes) -> bytes:
        text = line.decode()
        echo = text + "\r\n"
        if not text.startswith("at '"):
            return (echo + f"{text.split(' ')[0]}: command not found\r\nuart:~$ ").encode()
        reply = modem_answer(text[4:-1].encode()).decode()
        return (echo + reply + "uart:~$ ").encode()

    report = await one(PtyFarEnd(shell))
    assert (report.dialect, report.firmware) == ("shell", "mfw_nrf9160_1.3.5")


async def test_silence_says_what_was_tried() -> None:
    report = await one(PtyFarEnd(lambda _line: b""))
    assert not report.answers
    assert "silence" in report.reason
    assert report.hint


async def test_a_console_is_told_by_its_log_lines() -> None:
    report = await one(PtyFarEnd(lambda _line: LOG))
    assert (report.answers, report.role) == (False, "console")
    assert "log lines" in report.reason


async def test_a_shell_without_at_is_named() -> None:
    report = await one(PtyFarEnd(lambda line: line + b": command not found\r\nuart:~$ "))
    assert (report.answers, report.role) == (False, "console")
    assert "shell" in report.reason


async def test_garbage_names_its_size_and_the_rates_tried() -> None:
    report = await one(PtyFarEnd(lambda _line: bytes(range(128, 192))))
    assert not report.answers
    assert "garbage" in report.reason
    assert "115200, 1000000" in report.reason


@pytest.mark.parametrize(("answer", "role"), [(modem_answer, "at"), (lambda _line: LOG, "console")])
async def test_another_speed_is_found_where_the_first_gives_garbage(
    answer: Callable[[bytes], bytes], role: str
) -> None:
    def transport(_device: str, baud: int) -> Transport:
        def far(data: bytes) -> None:
            line = data.strip(b"\r\n")
            memory.deliver(answer(line) if baud == 921600 else bytes(range(200, 240)))

        memory = MemoryTransport(far)
        return memory

    (report,) = await survey(listing=lambda: [kit("/dev/ttyACM0")], transport=transport)
    assert (report.role, report.answers, report.baud) == (role, role == "at", 921600)


async def test_a_kit_that_is_unplugged_while_it_is_asked_does_not_answer() -> None:
    def far(data: bytes) -> None:
        if data.startswith(b"AT+CGMR"):
            memory.unplug()
        else:
            memory.deliver(modem_answer(data))

    memory = MemoryTransport(far)
    (report,) = await survey(listing=lambda: [kit("x")], transport=lambda _, baud: memory)
    assert (report.answers, report.reason) == (False, "memory was lost: unplugged")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PortBusy("busy", holder="picocom (PID 7)"), "in use by picocom (PID 7)"),
        (PortForbidden("no", group="dialout"), "no permission; the group dialout may open it"),
        (PortNotFound("gone"), "gone"),
    ],
    ids=["busy", "forbidden", "gone"],
)
async def test_a_port_that_cannot_be_opened_says_why(error: Exception, reason: str) -> None:
    class Closed(MemoryTransport):
        async def open(self, receiver: object) -> None:
            raise error

    (report,) = await survey(listing=lambda: [kit("x")], transport=lambda _, baud: Closed())
    assert (report.answers, report.reason) == (False, reason)


@pytest.mark.contract("C8")
async def test_nothing_is_written_to_a_port_that_is_no_kits_unless_asked() -> None:
    with PtyFarEnd() as far:
        stranger = UsbPort(far.path, 0x0403, 0x6001, "A1")
        (report,) = await survey(listing=lambda: [stranger])
        assert "not probed" in report.reason
        assert (
            report.hint == f"`cellagent ports --port {far.path}`, or `cellagent ports --probe-all`"
        )
        assert report.usb == stranger
        await asyncio.sleep(0)
        assert far.received == b""
        (report,) = await survey(listing=lambda: [stranger], probe_all=True)
        assert report.answers
        (report,) = await survey(listing=lambda: [stranger], named=[far.path])
        assert report.answers


def test_48_ports_are_probed_in_the_time_of_the_slowest() -> None:
    virtual_time.run(probe_a_hub())


async def probe_a_hub() -> None:
    opened = []

    def transport(device: str, baud: int) -> Transport:
        opened.append(device)
        return MemoryTransport()

    loop = asyncio.get_running_loop()
    ports = [kit(f"/dev/ttyACM{number}", f"00096{number:07}") for number in range(48)]
    started = loop.time()
    single = await survey(listing=lambda: ports[:1], transport=transport)
    alone = loop.time() - started
    started = loop.time()
    reports = await survey(listing=lambda: ports, transport=transport)
    assert len(reports) == 48
    assert len(opened) == 49
    assert single[0].reason == reports[47].reason
    assert alone > 1
    assert loop.time() - started <= alone + 1


async def test_a_busy_port_is_reported_with_its_holder() -> None:
    class Nobody:
        def data_received(self, data: bytes) -> None: ...
        def connection_lost(self, reason: Exception | None) -> None: ...

    with PtyFarEnd() as far, contextlib.ExitStack():
        holder = SerialTransport(far.path)
        await holder.open(Nobody())
        (report,) = await survey(listing=lambda: [kit(far.path)])
        await holder.close()
    assert f"(PID {os.getpid()})" in report.reason
