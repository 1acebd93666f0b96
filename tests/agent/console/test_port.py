"""Which port of a kit is its console."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.profile import KitSettings
from agent.console import port
from agent.console.port import ByteQueue, Heard, find_console, own_port
from agent.errors import UsageError
from at.ports.usb import UsbPort
from at.protocol.errors import LinkLost
from at.transport.base import Receiver
from tests.support.harness import virtual_time
from tests.support.modem.memory_transport import MemoryTransport


@pytest.mark.parametrize(
    ("console_port", "own"),
    [("same", ""), ("none", ""), ("auto", ""), ("/dev/ttyACM1", "/dev/ttyACM1")],
)
async def test_the_console_is_on_a_port_of_its_own_only_where_that_is_known(console_port, own):
    kit = KitSettings(port="tcp://127.0.0.1:1", console_port=console_port)
    assert await own_port(kit) == Heard(own)


async def test_the_at_port_of_a_kit_that_is_named_by_its_serial_number_is_not_its_console(
    monkeypatch: pytest.MonkeyPatch,
):
    async def listen(ports: list[str], *_: object) -> list[Heard]:
        return [Heard(port, is_text=True) for port in ports]

    monkeypatch.setattr(port, "ports_of", lambda _kit: ["/dev/ttyACM0", "/dev/ttyACM1"])
    monkeypatch.setattr(port, "device_of", lambda _port: "/dev/ttyACM0")
    monkeypatch.setattr(port, "_listen", listen)
    found = await own_port(KitSettings(port="serial:960012345"))
    assert found.port == "/dev/ttyACM1"


@pytest.mark.parametrize("console_port", ["/dev/ttyACM1", "same"])
async def test_a_named_console_is_taken_without_listening(console_port):
    kit = KitSettings(port="tcp://127.0.0.1:1", console_port=console_port)
    notes: list[str] = []
    found = await find_console(kit, notes.append)
    assert found == Heard("/dev/ttyACM1" if console_port != "same" else kit.port)
    assert notes == []


async def test_a_kit_without_a_console_is_a_usage_error():
    kit = KitSettings(port="tcp://127.0.0.1:1", console_port="none")
    with pytest.raises(UsageError, match="no console"):
        await find_console(kit, pytest.fail)


@pytest.mark.parametrize(
    ("named", "looked_at"),
    [("/dev/ttyACM0", ["/dev/ttyACM0", "/dev/ttyACM1"]), ("/dev/ttyS0", ["/dev/ttyS0"])],
)
def test_the_console_is_looked_for_on_every_port_of_a_known_kit(named: str, looked_at: list[str]):
    serial = "001050912345"
    kit = [UsbPort(f"/dev/ttyACM{n}", 0x1366, 0x1055, serial) for n in range(2)]
    assert port.ports_of(KitSettings(port=named), lambda: kit) == looked_at


async def test_a_port_that_cannot_be_opened_prints_nothing_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
):
    notes: list[str] = []
    ports = ["tcp://127.0.0.1:1", "tcp://127.0.0.1:2"]
    monkeypatch.setattr(port, "ports_of", lambda _kit, _listing: ports)
    assert await find_console(KitSettings(), notes.append) == Heard(ports[0])
    assert [note for note in notes if note.startswith(f"{ports[1]}: ")]


@pytest.mark.contract("O3.4")
def test_what_a_kit_prints_while_its_console_is_looked_for_is_given_to_who_reads_it(
    monkeypatch: pytest.MonkeyPatch,
):
    """Also behind the line by which it was found, as long as another port is listened to."""

    class Kit(MemoryTransport):
        def __init__(self, name: str) -> None:
            super().__init__(lambda _data: None)
            self.prints = name == "/dev/ttyACM2"

        async def open(self, receiver: Receiver) -> None:
            await super().open(receiver)
            if self.prints:
                self.deliver(first)
                asyncio.get_running_loop().call_later(1.0, self.deliver, second)

    first, second = b"*** Booting nRF Connect SDK ***\r\n", b"MC:AAAA:\r\nMC:"
    monkeypatch.setattr(port, "ports_of", lambda _kit: [f"/dev/ttyACM{n}" for n in range(3)])
    kits = {f"/dev/ttyACM{n}": Kit(f"/dev/ttyACM{n}") for n in range(3)}
    monkeypatch.setattr(port, "console_transport", lambda name, _baud: kits[name])

    async def search() -> Heard:
        return await own_port(KitSettings(port="/dev/ttyACM0"))

    assert virtual_time.run(search()) == Heard("/dev/ttyACM2", first + second, is_text=True)
    for kit in kits.values():  # none is held, so that its reader can open it
        with pytest.raises(LinkLost):
            kit.write(b"")


@given(st.lists(st.binary(min_size=1)), st.lists(st.binary(min_size=1)))
def test_a_byte_queue_joins_what_is_at_hand_and_ends_once_all_is_read(first, second):
    async def read() -> list[bytes | None]:
        queue = ByteQueue()
        for piece in first:
            queue.data_received(piece)
        found = [await queue.next()] if first else []
        for piece in second:
            queue.data_received(piece)
        queue.connection_lost(OSError("unplugged"))
        found += [await queue.next()] if second else []
        assert isinstance(queue.reason, OSError)
        return [*found, await queue.next()]

    joined = [b"".join(pieces) for pieces in (first, second) if pieces]
    assert asyncio.run(read()) == [*joined, None]
