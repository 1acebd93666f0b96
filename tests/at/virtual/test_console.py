"""The application prints what happened: logs, a crash with its dump, chunks."""

from __future__ import annotations

import base64
import re

import cbor2
import pytest

from at.virtual.console import crc16, split
from at.virtual.modem import Port, VirtualModem
from tests.support.modem.virtual_modems import ask, switched_on


def test_a_crash_prints_its_dump_and_restarts() -> None:
    kit = switched_on(faults=("crash=5",))
    ask(kit, "AT+CMEE=1")
    kit.advance(4.9)
    assert kit.data_to_send() == b""
    kit.advance(5.1)
    text = kit.data_to_send().decode()
    dump = bytes.fromhex("".join(re.findall(r"#CD:([0-9a-f]+)\r", text)))
    assert dump[:2] == b"ZE"
    assert text.index("#CD:BEGIN#") < text.index("#CD:END#") < text.index("*** Booting")
    assert re.findall(r"MC:([A-Za-z0-9+/=]+):", text)
    assert ask(kit, "AT+CMEE?") == ["+CMEE: 0", "OK"]


def test_the_console_exports_what_is_pending_once() -> None:
    kit = switched_on(console_apart=True)
    kit.receive(b"mflt test heartbeat\rmflt export\r", 1.0, Port.CONSOLE)
    text = kit.data_to_send(Port.CONSOLE).decode()
    (chunk,) = [base64.b64decode(part) for part in re.findall(r"MC:([^:]+):", text)]
    assert chunk[0] == 0x08
    message = chunk[1:-2]
    assert int.from_bytes(chunk[-2:], "little") == crc16(message)
    assert 7 not in cbor2.loads(message[1:]), "the SDK leaves the serial out by default"
    assert kit.data_to_send() == b""


@pytest.mark.parametrize("size", [0, 1, 76, 77, 78, 79, 80, 155, 156, 157, 300])
def test_chunks_add_up(size: int) -> None:
    message = bytes(range(256))[:size] * 1 if size <= 256 else bytes(size)
    chunks = list(split(message))
    assert all(len(chunk) <= 80 for chunk in chunks)
    if len(chunks) == 1:
        assert chunks[0] == b"\x08" + message + crc16(message).to_bytes(2, "little")
    assert crc16(b"123456789") == 0x31C3


def typed(kit: VirtualModem, line: str) -> list[str]:
    kit.receive(line.encode() + b"\r", kit.kit.now, Port.CONSOLE)
    return kit.data_to_send(Port.CONSOLE).decode().split("\r\n")


def test_the_shell_answers_its_commands_and_no_others() -> None:
    kit = switched_on(console_apart=True)
    assert "nonsense: command not found" in typed(kit, "nonsense now")
    kit.advance(5.0)
    assert "Uptime: 5000 ms" in typed(kit, "kernel  uptime")
    assert "  mflt export" in typed(kit, "help")


def test_a_dump_is_stored_until_it_is_erased() -> None:
    kit = switched_on(console_apart=True)
    assert typed(kit, "coredump find")[-2] == "Stored coredump NOT found."
    typed(kit, "mflt test hardfault")
    kit.advance(10.0)
    kit.data_to_send(Port.CONSOLE)
    lines = typed(kit, "coredump print")
    assert {"#CD:BEGIN#", "#CD:END#", "Stored coredump found."} <= set(lines)
    typed(kit, "coredump erase")
    assert typed(kit, "coredump find")[-2] == "Stored coredump NOT found."
