"""What the agent pushes arrives at the stand-in, over real sockets, each kind at its own host."""

from __future__ import annotations

import gzip
import hashlib
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.auth.credential import ProjectKey
from agent.config.profile import OutboxSettings
from agent.config.secrets import Secret
from agent.console.line_classifier import ConsoleReader
from agent.http import HttpClient
from agent.observability.ingest.chunk_codec import encode
from agent.observability.ingest.device_identity import DeviceIdentity, IdentityTracker
from agent.observability.ingest.events import check_event, heartbeat
from agent.observability.ingest.transfer import Upload, file_source, transfer
from agent.observability.ingest.uploads import FileKind, UploadProject, commit_details
from agent.outbox import ItemKind, NewItem, Outbox
from agent.outbox.delivery_loop import Delivery
from agent.outbox.delivery_requests import ServiceSender
from agent.wiring.forwarding import Forwarder
from tests.support.cloud.standin import StandIn, running_standin
from tests.support.cloud.standin_clients import client_with, organization_token, project_key
from tests.support.dumps.sdk_bytes import EXAMPLE_MESSAGE
from tests.support.dumps.zephyr_dumps import arch, header, memory, printed
from tests.support.outbox.outboxes import outbox

KIT = DeviceIdentity("kit-1", "nrf9161dk", "main", "1.0.0")


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[StandIn]:
    """A stand-in of which no host takes what another is for."""
    async with running_standin(tmp_path / "cloud", strict=True) as running:
        yield running


@pytest.fixture
async def client(cloud: StandIn) -> AsyncIterator[HttpClient]:
    keys = project_key(cloud), organization_token(cloud)
    async with client_with(cloud, *keys) as opened:
        yield opened


@pytest.fixture
def box(tmp_path: Path):
    with outbox(tmp_path, OutboxSettings(min_free_bytes=0)) as opened:
        yield opened


async def listed(cloud: StandIn, resource: str) -> list[dict[str, object]]:
    place = f"/api/v0/organizations/{cloud.organization}/projects/{cloud.project}/{resource}"
    headers = cloud.bearer("organization_auth_token")
    answer = await cloud.client.get(cloud.urls["api"] + place, headers=headers)
    found: list[dict[str, object]] = answer.json()["data"]
    return found


async def delivered(box: Outbox, client: HttpClient) -> int:
    count = await Delivery(box, ServiceSender(client)).flush()
    parked = [item.parked for item in box.transact(lambda store: store.list_items())]
    assert parked == []
    return count


def device_coredump(size: int) -> bytes:
    """Return a core dump of the device SDK, written by hand from its format."""
    texts = [(2, b"kit-1"), (10, b"1.0.0"), (11, b"main"), (4, b"nrf9161dk")]
    numbers = [(7, struct.pack("<I", 40)), (5, struct.pack("<I", 0x8001))]
    body = b"".join(
        struct.pack("<B3xII", kind, 0, len(content)) + content
        for kind, content in [(0, bytes(64)), *texts, *numbers, (1, bytes(size))]
    )
    body += b"DUMP" + bytes(12)
    return b"CORE" + struct.pack("<II", 2, 12 + len(body)) + body


@pytest.mark.contract("O5.1", "O1.4", "O4.3")
@pytest.mark.parametrize("mtu", [9, 46, 87])
async def test_chunks_of_every_size_are_put_together_again(cloud, client, box, mtu):
    chunks = [
        NewItem(ItemKind.CHUNK, "TESTSERIAL", chunk) for chunk in encode(EXAMPLE_MESSAGE, mtu)
    ]
    await box.aput(chunks)
    assert await delivered(box, client) == len(chunks)
    (event,) = await listed(cloud, "events")
    assert event["event_info"]["metrics"] == {"chunk_test_success": 1}


@pytest.mark.contract("O3.4", "C7")
async def test_events_arrive_in_one_batch(cloud, client, box):
    now = cloud.clock.now()
    items = [
        NewItem(ItemKind.EVENT, "kit-1", heartbeat(KIT, {"number": number}, now))
        for number in range(150)
    ]
    await box.aput(items)
    assert await delivered(box, client) == 150
    assert len(await listed(cloud, "events?per_page=100")) == 100


@pytest.mark.contract("O5.2", "C7", "O1.4")
@pytest.mark.parametrize("size", [100, 2_000_000])
async def test_device_core_dumps_of_any_size_become_traces(cloud, client, box, size):
    await box.aput([NewItem(ItemKind.COREDUMP, "kit-1", device_coredump(size))])
    assert await delivered(box, client) == 1
    (trace,) = await listed(cloud, "traces")
    assert trace["device"]["device_serial"] == "kit-1"


@pytest.mark.contract("O5.2", "C7")
async def test_a_zephyr_dump_of_the_console_arrives_with_a_trace(cloud, client, box):
    dump = header(reason=25) + arch() + memory(0x20000000, bytes(100))
    now = cloud.clock.now()
    reader = ConsoleReader()
    forwarder = Forwarder(box, IdentityTracker.of(KIT))
    for _ in range(2):  # a kit prints the same dump again when it is asked to
        await forwarder.forward(reader.receive(printed(dump)), now)
    assert await delivered(box, client) == 2
    (event,) = await listed(cloud, "events")
    assert event["event_info"] == {"reason": 0x9100, "pc": 0x106, "lr": 0x105, "sp": 0x108}


@pytest.mark.contract("O5.3")
@pytest.mark.parametrize("compress", [False, True])
async def test_files_of_a_build_go_to_the_files_host(cloud, client, tmp_path, compress):
    path = tmp_path / "app.bin"
    path.write_bytes(bytes(700_000))
    project = UploadProject(cloud.organization, cloud.project)
    seen: list[tuple[int, int]] = []
    for kind in (FileKind.SYMBOLS, FileKind.OTA):
        with file_source(path, compress=compress) as source:
            upload = Upload(kind, KIT, commit_details(kind, KIT), project)
            await transfer(client, upload, source, progress=lambda *at: seen.append(at))
            assert seen[-1] == (source.size, source.size)
    if compress:
        assert seen[-1][0] < 10_000
    (release,) = await listed(cloud, "releases")
    assert release["version"] == "1.0.0"
    report = Upload(FileKind.BUG_REPORT)
    with file_source(path) as source:
        await transfer(client, report, source)
        # What the service has already is as good.
        await transfer(client, report, source)


def test_a_source_knows_what_it_will_send(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc" * 1000)
    with file_source(path, compress=True) as source:
        source.file.seek(0)
        sent = source.file.read()
        assert gzip.decompress(sent) == path.read_bytes()
        assert (source.size, source.md5) == (len(sent), hashlib.md5(sent).hexdigest())


async def test_a_wrong_key_stops_the_sender_and_keeps_everything(cloud, box, tmp_path):
    now = cloud.clock.now()
    event = check_event(
        {
            "type": "heartbeat",
            "device_serial": "kit-1",
            "hardware_version": "a",
            "software_type": "b",
            "software_version": "1.0.0",
            "sdk_version": "0.5.0",
            "event_info": {"metrics": {}},
        },
        now,
    )
    await box.aput([NewItem(ItemKind.EVENT, "kit-1", event)])
    async with client_with(cloud, ProjectKey(Secret("0" * 32))) as client:
        delivery = Delivery(box, ServiceSender(client))
        await delivery.flush()
    assert "403" in str(delivery.schedule.blocked)
    assert box.transact(lambda store: store.totals()).waiting == 1
