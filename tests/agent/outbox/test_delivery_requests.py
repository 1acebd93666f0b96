"""Each request of the outbox has an id made from its items."""

from __future__ import annotations

import json

import httpx
import pytest

from agent.auth.credential import Keyring, ProjectKey
from agent.call import Host
from agent.config.secrets import Secret
from agent.http import HttpClient, HttpTransport
from agent.observability.ingest.uploads import FileKind
from agent.outbox import ItemKind
from agent.outbox.delivery_requests import ServiceSender
from agent.outbox.items import Item
from agent.retry import NO_RETRY


class RecordingTransport(HttpTransport):
    """Accepts every request and records its path and request id."""

    def __init__(self) -> None:
        def accept(request: httpx.Request) -> httpx.Response:
            self.ids.append((request.url.path, request.headers.get("x-request-id")))
            if request.url.path == "/api/v0/upload":
                data = {"upload_url": "http://127.0.0.1:9/place", "token": "a test token"}
                place = {"data": data}
                return httpx.Response(200, stream=httpx.ByteStream(json.dumps(place).encode()))
            return httpx.Response(202, stream=httpx.ByteStream(b"{}"))

        super().__init__(transport=httpx.MockTransport(accept))
        self.ids: list[tuple[str, str | None]] = []


@pytest.mark.contract("O5.2")
async def test_the_same_items_have_the_same_request_id_and_others_have_another():
    def items(kind: ItemKind, *numbers: int) -> list[Item]:
        meta = {"form": FileKind.ELF_COREDUMP.name}
        return [Item(n, kind, "kit", b"{}", 0.0, 0, meta, f"box-{n}", n) for n in numbers]

    transport = RecordingTransport()
    keyring = Keyring([ProjectKey(Secret("a test project key"))])
    hosts = dict.fromkeys(Host, "http://127.0.0.1:9")
    async with HttpClient(transport, hosts, keyring, retries=NO_RETRY) as client:
        sender = ServiceSender(client)
        for kind in (ItemKind.CHUNK, ItemKind.EVENT):
            transport.ids.clear()
            for numbers in ((1, 2), (1, 2), (1, 2, 3), (1, 3), (1,), (1,)):
                await sender.send(items(kind, *numbers))
            ids = [found for _, found in transport.ids]
            assert ids[0] == ids[1]
            assert ids[4:] == ["box-1", "box-1"]
            assert len(set(ids)) == 4
        transport.ids.clear()
        await sender.send(items(ItemKind.COREDUMP, 7))
    assert transport.ids[-1] == ("/api/v0/upload/elf_coredump", "box-7")
