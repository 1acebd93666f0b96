"""Each request of the outbox has an id made from its items, and a failure means something."""

from __future__ import annotations

import json
from contextlib import suppress

import httpx
import pytest

from agent.auth.credential import Keyring, ProjectKey
from agent.call import Host
from agent.config.secrets import Secret
from agent.errors import (
    BadAnswer,
    Conflict,
    DeadlineExceeded,
    Forbidden,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    ServerTrouble,
    Unavailable,
    Unreachable,
    Untrusted,
    UsageError,
)
from agent.http import HttpClient, HttpTransport
from agent.observability.ingest.uploads import DIRECT_LIMIT, FileKind
from agent.outbox import ItemKind
from agent.outbox.delivery_requests import FailureKind, ServiceSender, classify_failure
from agent.outbox.items import Item
from agent.retry import NO_RETRY
from at.protocol.errors import LinkLost


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
        return [Item(n, kind, "kit", b"{}", 0.0, meta, f"box-{n}", n) for n in numbers]

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
        transport.ids.clear()
        largest = bytes(DIRECT_LIMIT)
        await sender.send([Item(8, ItemKind.COREDUMP, "kit", largest, 0.0, {}, "box-8", 8)])
        assert [found for _, found in transport.ids] == ["box-8"], "in one piece"


@pytest.mark.contract("O5.2")
@pytest.mark.parametrize(
    ("answers", "commits", "puts"),
    [
        ([503, 503, 202], ["1", "1", "1"], 1),
        ([502, 409], ["1", "1"], 1),
        ([502, 404, 202], ["1", "1", "2"], 2),
    ],
    ids=["not taken", "there already", "its token used up"],
)
async def test_a_dump_that_waits_for_its_commit_is_committed_not_sent_again(answers, commits, puts):
    paths: list[str] = []
    tokens: list[str] = []

    def service(request: httpx.Request) -> httpx.Response:
        path, left = request.url.path, iter(answers[len(tokens) :])
        paths.append(path)
        if path == "/api/v0/upload":
            token = str(paths.count(path))
            data = {"upload_url": "http://127.0.0.1:9/place", "token": token}
            return httpx.Response(200, stream=httpx.ByteStream(json.dumps({"data": data}).encode()))
        if path == "/place":
            return httpx.Response(200, stream=httpx.ByteStream(b""))
        tokens.append(json.loads(request.content)["file"]["token"])
        return httpx.Response(next(left), stream=httpx.ByteStream(b"{}"))

    transport = HttpTransport(transport=httpx.MockTransport(service))
    keyring = Keyring([ProjectKey(Secret("a test project key"))])
    hosts = dict.fromkeys(Host, "http://127.0.0.1:9")
    dump = Item(7, ItemKind.COREDUMP, "kit", bytes(DIRECT_LIMIT + 1), 0.0, {}, "box-7", 7)
    async with HttpClient(transport, hosts, keyring, retries=NO_RETRY) as client:
        sender = ServiceSender(client)
        while tokens != commits:
            with suppress(Unavailable):
                await sender.send([dump])
    assert paths.count("/place") == puts


@pytest.mark.contract("O3.4", "O5.1")
@pytest.mark.parametrize("kind", [ItemKind.CHUNK, ItemKind.EVENT])
async def test_what_the_service_has_already_is_delivered_unless_a_proxy_says_it(kind: ItemKind):
    bodies = iter([b"{}", b"<p>a proxy's page</p>"])
    service = httpx.MockTransport(
        lambda _request: httpx.Response(409, stream=httpx.ByteStream(next(bodies)))
    )
    keyring = Keyring([ProjectKey(Secret("a test project key"))])
    hosts = dict.fromkeys(Host, "http://127.0.0.1:9")
    transport = HttpTransport(transport=service)
    item = Item(1, kind, "kit", b"{}", 0.0, {}, "box-1", 1)
    async with HttpClient(transport, hosts, keyring, retries=NO_RETRY) as client:
        await ServiceSender(client).send([item])
        with pytest.raises(BadAnswer) as page:
            await ServiceSender(client).send([item])
    assert classify_failure(page.value, 2) is FailureKind.LATER


@pytest.mark.parametrize(
    ("error", "count", "verdict"),
    [
        (ServerTrouble("", status=500), 1, FailureKind.FAULT),
        (ServerTrouble("", status=502), 9, FailureKind.FAULT),
        (ServerTrouble("", status=503), 1, FailureKind.AWAY),
        (Unreachable("reset"), 1, FailureKind.AWAY),
        (DeadlineExceeded("no whole answer"), 1, FailureKind.AWAY),
        (Unreachable("no such name", sent=False), 1, FailureKind.LATER),
        (Untrusted("another certificate"), 1, FailureKind.LATER),
        (RateLimited("", status=429), 1, FailureKind.LATER),
        (ServerTrouble("", status=529), 1, FailureKind.LATER),
        (LinkLost("the modem makes no token"), 1, FailureKind.LATER),
        (Conflict("", status=409), 1, FailureKind.LATER),
        (InvalidRequest("", status=408), 1, FailureKind.LATER),
        (InvalidRequest("", status=411), 1, FailureKind.LATER),
        (InvalidRequest("", status=425), 1, FailureKind.LATER),
        (InvalidRequest("", status=400), 1, FailureKind.REFUSED),
        (InvalidRequest("", status=400), 2, FailureKind.REFUSED),
        (InvalidRequest("", status=415), 1, FailureKind.REFUSED),
        (NotFound("", status=404), 1, FailureKind.REFUSED),
        (PayloadTooLarge("", status=413), 9, FailureKind.SMALLER),
        (PayloadTooLarge("", status=413), 1, FailureKind.REFUSED),
        (Forbidden("", status=403), 5, FailureKind.BLOCKED),
        (UsageError("no slug"), 1, FailureKind.REFUSED),
        (BadAnswer("", status=302), 1, FailureKind.LATER),
        (ZeroDivisionError("a defect"), 1, FailureKind.FAULT),
    ],
)
def test_each_refusal_has_its_meaning(error, count, verdict):
    assert classify_failure(error, count) is verdict
