"""Archives of Linux devices: unpacked into what is listed, whatever is wrong with them."""

from __future__ import annotations

import contextlib
import gzip
import io
import zipfile
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.observability.ingest import archives
from agent.standin.observability.ingest.archives import BadArchive, read_archive
from tests.support.cloud.observability import upload, with_project_key, with_token
from tests.support.cloud.standin import StandIn
from tests.support.dumps.mar_files import DEVICE, archive, elf_core, entry, mar
from tests.support.dumps.sdk_bytes import single

IDENTITY = {name: value for name, value in DEVICE.items() if name != "project_key"}


async def take(standin: StandIn, data: bytes) -> None:
    caller = with_project_key(standin)
    answer = await upload(caller, data, "MAR", "/api/v0/upload/mar", IDENTITY)
    assert answer.status_code == 202, answer.text


@pytest.mark.contract("O5.2")
@pytest.mark.parametrize("way", ["uploaded", "in chunks"])
async def test_what_an_archive_holds_is_listed(standin: StandIn, way: str) -> None:
    if way == "uploaded":
        await take(standin, mar())
    else:
        answer = await with_project_key(standin)(
            "POST",
            "/api/v0/chunks/linux-1",
            content=single(b"\x05" + mar()),
            headers={"Content-Type": "application/octet-stream"},
        )
        assert answer.status_code == 202
    caller = with_token(standin)
    events = {event["type"]: event for event in await caller.data("~/events")}
    assert events["heartbeat"]["event_info"]["metrics"] == {"load": 0.5, "os": "linux"}
    assert events["heartbeat"]["device"]["device_serial"] == "linux-1"
    started, plain = events["log"]["event_info"]["lines"]
    assert (started["level"], started["text"]) == ("info", "started")
    assert plain["text"] == "a line that is no JSON"
    traces = await caller.data("~/traces")
    assert {trace["reason"] for trace in traces} == {"Kernel Panic", "TooHot", "Unknown"}
    (dump,) = await caller.data("~/coredumps")
    assert dump["size"] == len(elf_core())
    config = await with_project_key(standin)(
        "POST", "/api/v0/device-config", json={"device": IDENTITY}
    )
    assert config.json()["data"]["completed"] == config.json()["data"]["revision"]
    if way == "uploaded":
        (stored,) = await caller.data("~/files")
        assert {one["type"] for one in stored["details"]["entries"]} == {
            "elf-coredump", "linux-reboot", "linux-metric-report", "linux-logs",
            "device-attributes", "device-config",
        }  # fmt: skip


async def test_a_device_that_confirmed_nothing_is_told_its_configuration(standin: StandIn) -> None:
    device = with_project_key(standin)
    answer = await device("POST", "/api/v0/device-config", json={"device": IDENTITY})
    data = answer.json()["data"]
    assert (data["revision"], data["completed"]) == (1, None)
    assert data["config"]["memfault"]["sampling"]["logging.resolution"] == "normal"
    bad = await device("POST", "/api/v0/device-config", json={"device": {}})
    assert bad.status_code == 400


NOBODY = {**DEVICE, "device_serial": "not a slug"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no archive"),
        (b"PK\x03\x04 and no more", "no archive"),
        (archive(), "no entry"),
        (archive((entry("linux-reboot", {"reason": 1}, device=NOBODY), {})), "device_serial"),
        (archive((entry("linux-reboot", {}), {})), "reason"),
        (archive((entry("linux-metric-report", {"metrics": 7}), {})), "metrics"),
        (archive((entry("elf-coredump", {"coredump_file_name": "../../x"}), {})), "there is no"),
        (archive((entry("linux-logs", {"log_file_name": "a", "compression": "gzip"}),
                  {"a": gzip.compress(b"x" * 100)[:-9]})), "cut short"),
        (archive((entry("linux-logs", {"log_file_name": "a", "compression": "lz4"}),
                  {"a": b"x"})), "lz4"),
        (archive((entry("device-config", {"revision": "new"}), {})), "revision"),
    ],
    ids=count(),  # an archive holds its time, which is another in each worker
)  # fmt: skip
async def test_what_is_wrong_with_an_archive_is_told(
    standin: StandIn, data: bytes, said: str
) -> None:
    await take(standin, data)
    lines = [line["message"] for line in await with_token(standin).data("~/processing-log")]
    assert any(said in line for line in lines), lines
    assert len(await with_token(standin).data("~/files")) == 1


def test_an_entry_that_is_broken_leaves_the_others() -> None:
    good, bad = entry("linux-reboot", {"reason": 1}), entry("linux-logs", {"log_file_name": "x"})
    entries, problems = read_archive(archive((bad, {}), (good, {})))
    assert [one.kind for one in entries] == ["linux-reboot"]
    assert len(problems) == 1


def test_an_archive_that_swells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_EXPANDED_BYTES", 100_000)
    for compression, content in (("none", bytes(200_000)), ("gzip", gzip.compress(bytes(200_000)))):
        logs = {"log_file_name": "a", "compression": compression}
        entries, problems = read_archive(archive((entry("linux-logs", logs), {"a": content})))
        assert not entries
        assert "more than" in problems[0]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for number in range(archives.MAX_ENTRIES + 1):
            file.writestr(f"{number}/manifest.json", "{}")
    with pytest.raises(BadArchive, match="at most"):
        read_archive(out.getvalue())


@given(data=st.data())
def test_no_bytes_raise_anything_else(data: st.DataObject) -> None:
    raw = bytearray(mar())
    for _ in range(data.draw(st.integers(0, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BadArchive):
        read_archive(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
