"""Large files over a link that breaks: what is there is not sent again, and nothing twice."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.call import Host
from agent.errors import AgentError, BadAnswer, InvalidRequest, Unavailable, Unreachable
from agent.http import HttpClient, HttpTransport
from agent.observability.ingest.device_identity import DeviceIdentity
from agent.observability.ingest.transfer import Upload, file_source, transfer
from agent.observability.ingest.upload_journal import UploadJournal, UploadProgress
from agent.observability.ingest.uploads import FileKind, UploadProject, commit_details
from agent.retry import NO_RETRY
from agent.standin.observability.file_storage import PARTS
from agent.standin.observability.tables import RELEASES
from tests.support.cloud.standin import StandIn, running_standin
from tests.support.cloud.standin_clients import client_with, organization_token, project_key
from tests.support.dumps.elf_files import linux_core

KIT = DeviceIdentity("none", "nrf9161dk", "main", "1.0.0")

MIB = 1024 * 1024


class BreakingTransport(HttpTransport):
    """Breaks the requests that `breaks` tells by method and path; remembers all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []
        self.breaks: list[str] = []
        self.loses: list[str] = []
        """Requests that arrive, but whose answer does not."""

    @asynccontextmanager
    async def open(self, method: str, url: str, **more: Any) -> AsyncIterator[Any]:
        last = url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
        if method == "PUT":
            last = f"part {last}" if last.isdigit() else "storage"
        name = f"{method} {last}"
        self.sent.append(name)
        if name in self.breaks:
            self.breaks.remove(name)
            raise Unreachable("the cable")
        async with super().open(method, url, **more) as stream:
            if name in self.loses:
                self.loses.remove(name)
                raise Unreachable("the cable")
            yield stream


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[StandIn]:
    async with running_standin(tmp_path / "cloud") as running:
        yield running


@pytest.fixture
async def client(cloud: StandIn) -> AsyncIterator[HttpClient]:
    keys = project_key(cloud), organization_token(cloud)
    async with client_with(cloud, *keys, transport=BreakingTransport(), retries=NO_RETRY) as opened:
        yield opened


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "app.bin"
    path.write_bytes(bytes(range(256)) * (20 * MIB // 256))
    return path


def update(cloud: StandIn) -> Upload:
    details = commit_details(FileKind.OTA, KIT)
    project = UploadProject(cloud.organization, cloud.project)
    return Upload(FileKind.OTA, KIT, details, project, anew=True)


async def no_wait(_seconds: float) -> None:
    return None


def transport_of(client: HttpClient) -> BreakingTransport:
    assert isinstance(client.transport, BreakingTransport)
    return client.transport


@pytest.mark.contract("O5.3")
async def test_a_large_update_goes_in_parts_and_only_the_missing_ones_again(cloud, client, image):
    transport = transport_of(client)
    transport.breaks = ["PUT part 2"]
    seen: list[tuple[int, int]] = []
    with file_source(image) as source:
        await transfer(
            client, update(cloud), source, progress=lambda *at: seen.append(at), wait=no_wait
        )
    puts = [name for name in transport.sent if name.startswith("PUT")]
    assert puts == ["PUT part 1", "PUT part 2", "PUT part 2", "PUT part 3"]
    assert transport.sent.count("POST upload_multipart") == 1
    assert seen[-1] == (20 * MIB, 20 * MIB)


@pytest.mark.contract("O5.3")
async def test_a_later_run_goes_on_with_the_part_that_is_missing(cloud, client, image, tmp_path):
    transport, path = transport_of(client), tmp_path / "journal" / "x.json"
    transport.breaks = ["PUT part 3"]
    with file_source(image) as source:
        with pytest.raises(Unreachable):
            await transfer(client, update(cloud), source, tries=1, journal=UploadJournal(path))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        transport.sent.clear()
        await transfer(client, update(cloud), source, journal=UploadJournal(path))
    assert [name for name in transport.sent if name.startswith("PUT")] == ["PUT part 3"]
    assert "POST upload_multipart" not in transport.sent


@pytest.mark.contract("O5.3")
async def test_what_is_there_whole_is_only_committed(client, tmp_path):
    transport, path = transport_of(client), tmp_path / "x.json"
    report = tmp_path / "report.zip"
    report.write_bytes(bytes(1000))
    transport.breaks = ["POST bugreport"]
    with file_source(report) as source:
        with pytest.raises(Unreachable):
            await transfer(
                client, Upload(FileKind.BUG_REPORT), source, journal=UploadJournal(path), tries=1
            )
        transport.sent.clear()
        await transfer(client, Upload(FileKind.BUG_REPORT), source, journal=UploadJournal(path))
    assert transport.sent == ["POST bugreport"]


@pytest.mark.contract("O5.3")
async def test_what_an_earlier_run_was_given_may_be_over_then_it_begins_anew(client, tmp_path):
    report = tmp_path / "report.zip"
    report.write_bytes(bytes(1000))
    for stale in (
        UploadProgress(token="gone", url="http://127.0.0.1:9/x", whole=True),
        UploadProgress(token="gone", part_urls=[client.base_url(Host.FILES) + "/storage/x/1"]),
    ):
        journal = UploadJournal()
        journal.save(stale)
        with file_source(report) as source:
            await transfer(
                client, Upload(FileKind.BUG_REPORT), source, journal=journal, wait=no_wait
            )
    assert transport_of(client).sent[-3:] == ["POST upload", "PUT storage", "POST bugreport"]


@pytest.mark.contract("O5.3")
async def test_a_place_for_the_whole_is_good_for_one_try(client, tmp_path):
    report = tmp_path / "report.zip"
    report.write_bytes(bytes(1000))
    transport, waits = transport_of(client), []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    transport.breaks = ["PUT storage", "PUT storage"]
    with file_source(report) as source:
        await transfer(client, Upload(FileKind.BUG_REPORT), source, wait=wait)
    assert waits == [2.0, 4.0]
    assert transport.sent.count("POST upload") == 3


@pytest.mark.contract("O5.3")
@pytest.mark.parametrize(
    ("asked", "waits"),
    [("17", [17.0]), ("1", [2.0]), ("33", None)],
    ids=["long", "short", "longer"],
)
async def test_a_storage_that_asks_for_a_wait_is_given_it(cloud, client, tmp_path, asked, waits):
    report = tmp_path / "report.zip"
    report.write_bytes(bytes(1000))
    waited = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    await cloud.control({"faults": [f"too-many-requests={asked}*1@/api/v0/storage/*"]})
    with file_source(report) as source:
        upload = transfer(client, Upload(FileKind.BUG_REPORT), source, wait=wait)
        if waits is None:
            with pytest.raises(Unavailable) as caught:
                await upload
            assert (caught.value.retry_after_s, waited) == (33.0, [])
        else:
            await upload
            assert waited == waits


@pytest.mark.contract("O5.3")
async def test_parts_whose_completion_was_lost_are_put_together_again_and_committed(
    cloud, client, image
):
    await cloud.control({"faults": ["connection-reset=after*1@POST /api/v0/storage/*"]})
    with file_source(image) as source:
        await transfer(client, update(cloud), source, wait=no_wait)
    sent = transport_of(client).sent
    assert [name for name in sent if name.startswith("PUT")] == [f"PUT part {n}" for n in (1, 2, 3)]
    assert sent.count("POST upload_multipart") == 1
    assert len(cloud.cloud.table(PARTS)) == 0


@pytest.mark.parametrize("tries", [1, 2], ids=["of an earlier run", "of this run"])
async def test_a_commit_whose_answer_was_lost_is_not_a_second_file(client, tmp_path, tries):
    report = tmp_path / "report.zip"
    report.write_bytes(bytes(1000))
    transport, path = transport_of(client), tmp_path / "x.json"
    transport.loses = ["POST bugreport"]

    async def run() -> None:
        journal = UploadJournal(path)
        upload = Upload(FileKind.BUG_REPORT)
        await transfer(client, upload, source, journal=journal, tries=tries, wait=no_wait)

    with file_source(report) as source:
        if tries == 1:
            with pytest.raises(Unreachable):
                await run()
        for _ in range(2):  # it stays so, however often it is tried
            with pytest.raises(AgentError, match="the service has the file, or the upload has exp"):
                await run()
    assert transport.sent.count("PUT storage") == 1


@pytest.mark.contract("O5.3")
@pytest.mark.parametrize("tries", [1, 2], ids=["of an earlier run", "of this run"])
async def test_an_update_whose_commit_was_not_answered_is_sent_anew_and_known(
    cloud, client, tmp_path, tries
):
    payload = tmp_path / "app.bin"
    payload.write_bytes(bytes(1000))
    transport, journal = transport_of(client), UploadJournal()
    transport.loses = ["POST ota_payload"]
    with file_source(payload) as source:
        if tries == 1:
            with pytest.raises(Unreachable):
                await transfer(client, update(cloud), source, journal=journal, tries=1)
        await transfer(client, update(cloud), source, journal=journal, wait=no_wait)
    assert transport.sent.count("POST ota_payload") == 3
    name = RELEASES.name.replace("*/*", f"{cloud.organization}/{cloud.project}")
    (release,) = cloud.cloud.table(RELEASES, name).values()
    assert len(release.artifacts) == 1


async def test_a_commit_that_was_not_taken_is_sent_again(cloud, client, tmp_path):
    report = tmp_path / "report.zip"
    report.write_bytes(bytes(1000))
    await cloud.control({"faults": ["connection-reset=before*1@POST /api/v0/upload/bugreport"]})
    with file_source(report) as source:
        await transfer(client, Upload(FileKind.BUG_REPORT), source, wait=no_wait)
    sent = transport_of(client).sent
    assert sent == ["POST upload", "PUT storage", "POST bugreport", "POST bugreport"]
    journal = UploadJournal()
    await cloud.control({"faults": ["too-many-requests=33*9@POST /api/v0/upload/bugreport"]})
    with file_source(report) as source, pytest.raises(Unavailable):
        await transfer(client, Upload(FileKind.BUG_REPORT), source, journal=journal)
    assert journal.progress is not None
    assert (journal.progress.whole, journal.progress.commit_sent) == (True, False)


async def test_a_refusal_is_not_tried_again(client, tmp_path):
    path = tmp_path / "core"
    path.write_bytes(linux_core())
    with file_source(path) as source, pytest.raises(InvalidRequest):
        # Whose core it is, is not said.
        await transfer(client, Upload(FileKind.ELF_COREDUMP), source, wait=no_wait)
    assert transport_of(client).sent.count("PUT storage") == 1


async def test_a_refusal_of_what_was_begun_anew_is_not_tried_again_either(client, tmp_path):
    path = tmp_path / "core"
    path.write_bytes(linux_core())
    journal = UploadJournal()
    journal.save(UploadProgress(token="gone", url="http://127.0.0.1:9/x", whole=True))
    upload = Upload(FileKind.ELF_COREDUMP)
    with file_source(path) as source, pytest.raises(InvalidRequest):
        await transfer(client, upload, source, journal=journal, wait=no_wait)
    assert transport_of(client).sent.count("PUT storage") == 1


def test_a_compressed_copy_is_the_same_whenever_it_is_made(tmp_path, monkeypatch):
    path, sums = tmp_path / "report.zip", set()
    path.write_bytes(bytes(1000))
    for at in (0.0, 1.7e9):
        monkeypatch.setattr("gzip.time", SimpleNamespace(time=lambda at=at: at))
        with file_source(path, compress=True) as source:
            sums.add(source.md5)
    assert len(sums) == 1, "what an earlier run has sent is committed with it"


async def test_a_storage_without_etags_is_a_bad_answer(cloud, client, image, monkeypatch):
    async def nothing(*_arguments: Any, **_more: Any) -> str:
        return ""

    monkeypatch.setattr("agent.observability.ingest.storage.put_bytes", nothing)
    with file_source(image) as source, pytest.raises(BadAnswer, match="ETag"):
        await transfer(client, update(cloud), source)
