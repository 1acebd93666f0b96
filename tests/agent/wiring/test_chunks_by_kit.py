"""A kit sends its own chunks, and everything else goes over the host's network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from agent.errors import PayloadTooLarge, ResourceUnavailable
from agent.outbox import ItemKind
from agent.outbox.delivery_requests import FailureKind, classify_failure
from agent.outbox.items import Item
from agent.wiring.chunks_by_kit import ChunksByKit
from at.driver.modem import Modem
from at.virtual.state import CredentialSlot
from at.virtual.transport import VirtualTransport

KEY = "test-project-key-0123456789abcde"
KITS = {
    "nrf93m1": {"model": "nrf93m1"},
    "serial": {"dialect": "serial-modem", "firmware": "serial-modem-2.0.0"},
}


@asynccontextmanager
async def kit(name: str, *, online: bool = True) -> AsyncIterator[tuple[Modem, list[bytes]]]:
    transport = VirtualTransport(instant=True, **KITS[name])
    modem = Modem(transport)
    await modem.open()
    virtual = transport.modem.kit
    virtual.saved.credentials["16842753,2"] = CredentialSlot("")
    try:
        if online:
            await go_online(modem)
        yield modem, virtual.forwarded
    finally:
        await modem.close()


async def go_online(modem: Modem) -> None:
    with modem.notices("+CEREG", "#XNRFCLOUD") as notices:
        await modem.execute("AT+CEREG=5")
        await modem.execute("AT+CFUN=1")
        async for notice in notices:
            if notice.line.startswith("+CEREG: 1"):
                break
        if not modem.dialect.traits.is_module:
            assert (await modem.execute("AT#XNRFCLOUD=1")).ok
            await anext(notices)


class Host:
    def __init__(self) -> None:
        self.sent: list[Item] = []

    async def send(self, items: Sequence[Item]) -> None:
        self.sent += items


def item(number: int, kind: ItemKind = ItemKind.CHUNK, device: str = "kit", size: int = 4) -> Item:
    body = bytes([number]) * size
    return Item(number, kind, device, body, 0.0, {}, f"box-{number}", number)


def sender_of(modem: Modem, host: Host) -> ChunksByKit:
    async def find(device: str) -> Modem | None:
        return modem if device == "kit" else None

    return ChunksByKit(host, find, KEY)


@pytest.mark.parametrize("name", KITS)
async def test_chunks_go_through_their_kit_and_nothing_else_does(name: str) -> None:
    async with kit(name) as (modem, forwarded):
        host = Host()
        sender = sender_of(modem, host)
        await sender.send([item(1), item(2)])
        others = [item(3, device="another"), item(4, ItemKind.EVENT), item(5, ItemKind.COREDUMP)]
        for one in others:
            await sender.send([one])
    assert forwarded == [b"\1" * 4, b"\2" * 4]
    assert host.sent == others


@pytest.mark.parametrize("name", KITS)
async def test_a_kit_that_cannot_send_leaves_them_to_a_later_try(name: str) -> None:
    async with kit(name, online=False) as (modem, forwarded):
        sender = sender_of(modem, Host())
        with pytest.raises(ResourceUnavailable) as failed:
            await sender.send([item(1)])
        assert classify_failure(failed.value, 1) is FailureKind.LATER
        assert forwarded == []
        await go_online(modem)
        await sender.send([item(1)])
        assert forwarded == [b"\1" * 4]


@pytest.mark.parametrize("name", KITS)
async def test_what_was_taken_of_a_request_that_failed_is_not_given_again(name: str) -> None:
    async with kit(name) as (modem, forwarded):
        sender = sender_of(modem, Host())
        too_long = item(2, size=9000)
        with pytest.raises(PayloadTooLarge) as failed:
            await sender.send([item(1), too_long])
        assert classify_failure(failed.value, 2) is FailureKind.SMALLER
        await sender.send([item(1)])
        assert classify_failure(failed.value, 1) is FailureKind.REFUSED
        await sender.send([item(1)])
    assert forwarded == [b"\1" * 4, b"\1" * 4]  # the third was a request of its own


async def test_a_kit_without_a_client_of_its_own_says_so() -> None:
    transport = VirtualTransport(instant=True)
    modem = Modem(transport)
    await modem.open()
    try:
        with pytest.raises(ResourceUnavailable, match="no cloud client"):
            await sender_of(modem, Host()).send([item(1)])
    finally:
        await modem.close()
