"""The state file: private from its first moment, not shared, and true after any end."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.standin.device_cloud.tables import MESSAGES
from agent.standin.observability.project import Project
from agent.standin.observability.tables import EVENTS
from agent.standin.state import Cloud, open_cloud
from agent.standin.store import Store, TableOf, make_private
from tests.support.cloud.observability import (
    an_event,
    problems,
    push_chunk,
    with_project_key,
    with_token,
)
from tests.support.cloud.standin import running_standin, serve
from tests.support.dumps.sdk_bytes import chunks, event_message, single, trace


@pytest.mark.parametrize("content", [b"root:x:0:0\n" * 20, b"SQLite format 3\0" + bytes(84)])
def test_a_state_file_of_another_program_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "other"
    other.write_bytes(content)
    other.chmod(0o644)
    done = serve("--state", str(other), "--", "true")
    assert done.returncode == 2
    assert "no state file" in done.stderr
    assert "Traceback" not in done.stderr
    assert other.read_bytes() == content
    assert stat.S_IMODE(other.stat().st_mode) == 0o644


def test_two_stand_ins_do_not_share_a_state_file(tmp_path: Path) -> None:
    state = tmp_path / "state"
    again = [sys.executable, "-m", "agent", "cloud", "serve", "--state", str(state), "--", "true"]
    done = serve("--state", str(state), "--", *again)
    assert done.returncode == 2
    assert "cannot be used" in done.stderr
    assert serve("--state", str(state), "--", "true").returncode == 0


def fill(cloud: Cloud) -> sqlite3.Connection:
    """Let the state file of a stand-in grow no more; a larger `max_page_count` makes room again."""
    connection = cloud.store._connection
    assert connection is not None
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages}")
    return connection


ROOM = "PRAGMA max_page_count=1000000"


async def test_a_full_disk_is_an_error_of_the_request_and_of_no_other(tmp_path: Path) -> None:
    many = [an_event(user_info={"text": "x" * 1000}) for _ in range(200)]
    async with running_standin(tmp_path, state=tmp_path / "cloud.sqlite") as standin:
        key = standin.bearer("api_key")
        assert (await standin.client.get("/v1/devices", headers=key)).status_code == 200
        connection = fill(standin.cloud)
        full = await with_project_key(standin)("POST", "/api/v0/events", json=many)
        assert full.status_code == 507
        assert "state file" in full.json()["error"]["message"]
        assert (await standin.client.get("/v1/devices", headers=key)).status_code == 200
        connection.execute(ROOM)
        again = await with_project_key(standin)("POST", "/api/v0/events", json=many)
        assert again.status_code == 202
        assert len(Project(standin.cloud, "acme", "kits").table(EVENTS)) == len(many)
    cloud = open_cloud(tmp_path / "cloud.sqlite")
    with contextlib.closing(cloud.store):
        assert len(Project(cloud, "acme", "kits").table(EVENTS)) == len(many)


def test_a_full_disk_is_named_as_one_from_the_start_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cloud.sqlite"
    cloud = open_cloud(path)
    fill(cloud)
    cloud.store.table(TEXTS).put("long", "x" * 100_000)
    with pytest.raises(OSError, match="disk is full") as full:
        cloud.store.close()
    assert (full.value.errno, full.value.filename) == (errno.ENOSPC, str(path))

    def connect_on_full_disk(path: Path) -> sqlite3.Connection:
        connection = _connect(path)
        connection.execute("PRAGMA max_page_count=1")
        return connection

    _connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect_on_full_disk)
    with pytest.raises(OSError, match="disk is full") as full:
        open_cloud(tmp_path / "new.sqlite")
    assert full.value.errno == errno.ENOSPC


async def test_what_a_full_disk_refused_is_known_nowhere(tmp_path: Path) -> None:
    """Neither the devices of the first request nor half of a message, which memory holds, too."""
    first, rest = chunks(event_message(trace("kit-1") | {4: {"text": "x" * 9000}}), 5000)
    async with running_standin(tmp_path, state=tmp_path / "cloud.sqlite") as standin:
        key, connection = standin.bearer("api_key"), fill(standin.cloud)
        assert (await standin.client.get("/v1/devices", headers=key)).status_code == 507
        assert (await push_chunk(standin, first)).status_code == 507
        connection.execute(ROOM)
        devices = await standin.client.get("/v1/devices", headers=key)
        assert devices.json()["total"] > 0
        for chunk in (first, rest):
            assert (await push_chunk(standin, chunk)).status_code == 202
        assert await problems(standin) == []
        assert len(await with_token(standin).data("~/traces")) == 1


async def test_numbers_go_on_where_they_were_after_a_restart(tmp_path: Path) -> None:
    state = tmp_path / "cloud.sqlite"
    path = "/v1/devices/nrf-352656109000002/messages"
    async with running_standin(tmp_path / "a", state=state) as standin:
        for number in range(3):
            body = {"message": {"appId": "TEMP", "data": number}}
            await standin.client.post(path, json=body, headers=standin.bearer("api_key"))
        table = standin.cloud.table(MESSAGES)
        table.delete(next(iter(table)))  # as happens to the oldest where there are too many
    async with running_standin(tmp_path / "b", state=state) as standin:
        await standin.client.post(
            path, json={"message": {"appId": "TEMP", "data": 3}}, headers=standin.bearer("api_key")
        )
        listed = await standin.client.get("/v1/messages", headers=standin.bearer("api_key"))
        assert [item["message"]["data"] for item in listed.json()["items"]] == [3, 2, 1]


FILE_OF_0_1_0 = Path(__file__).parents[2] / "interface" / "written-by-0.1.0" / "standin.state"


def rows_of(file: Path) -> dict[tuple[str, str], Any]:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT name, key, value FROM rows")
        return {(name, key): msgspec.msgpack.decode(value) for name, key, value in rows}


TEXTS = TableOf("texts", str)


@given(
    changes=st.lists(
        st.tuples(st.sampled_from(["put", "delete", "commit"]), st.sampled_from("abcd")),
        max_size=20,
    )
)
@example(changes=[("put", "a"), ("put", "b"), ("commit", ""), ("delete", "a"), ("put", "a")])
def test_records_are_in_the_order_of_their_insertion_also_after_a_restart(
    changes: list[tuple[str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cloud.sqlite"
        with contextlib.closing(Store(path)) as store:
            table = store.table(TEXTS)
            for change, key in changes:
                if change == "put":
                    table.put(key, key)
                elif change == "delete":
                    table.delete(key)
                else:
                    store.commit()
            before = table.items()
        with contextlib.closing(Store(path)) as store:
            assert store.table(TEXTS).items() == before


def test_records_of_an_earlier_version_are_written_as_they_were_read(tmp_path: Path) -> None:
    file = Path(shutil.copy(FILE_OF_0_1_0, tmp_path / "state"))
    before = rows_of(file)
    with contextlib.closing(Store(file)) as store:
        assert {name for name, _ in before} == set(store._tables)
        for name, key in before:
            store._tables[name].put(key, store._tables[name][key])
    for place, written in rows_of(file).items():
        if place[0] == "bulk":
            assert (before[place].pop("done"), written["status"]) == (True, "SUCCEEDED")
        # Where a bundle's files are is told by their paths.
        if place[0] == "bundles":
            names = [file["file"] for file in before[place].pop("files")]
            assert [path.rpartition("/")[2] for path in written["paths"]] == names
            assert all(map(str.endswith, before[place].pop("uris"), written["paths"]))
        if place[0] == "jobs":
            uris = before[place]["firmware"].pop("uris")
            assert all(map(str.endswith, uris, written["path"].split(" ")))
        known = before[place]
        assert written == (written | known if isinstance(known, dict) else known), place


def test_a_record_that_is_damaged_is_named_before_anything_is_served(tmp_path: Path) -> None:
    file = Path(shutil.copy(FILE_OF_0_1_0, tmp_path / "state"))
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        damaged = msgspec.msgpack.encode({"email": 5})
        connection.execute("UPDATE rows SET value = ? WHERE name = 'users'", (damaged,))
    done = serve("--state", str(file), "--", "true")
    assert done.returncode == 2
    assert "cannot be used: in users" in done.stderr
    assert "Traceback" not in done.stderr


async def test_what_a_device_sends_in_place_of_a_number_is_read_after_a_restart(
    tmp_path: Path,
) -> None:
    event = trace("kit-1") | {4: {1: True, 2: 3.5}}
    async with running_standin(tmp_path / "a", state=tmp_path / "cloud.sqlite") as standin:
        await push_chunk(standin, single(event_message(event)))
    async with running_standin(tmp_path / "b", state=tmp_path / "cloud.sqlite") as standin:
        [shown] = await with_token(standin).data("~/traces")
        assert (shown["reason_code"], shown["trace_info"]) == (None, {"reason": True, "pc": 3.5})


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**19 * 4], ids=str)
async def test_a_number_that_the_file_cannot_hold_stops_nothing(
    tmp_path: Path, number: int
) -> None:
    state, device = tmp_path / "cloud.sqlite", "/v1/devices/nrf-352656109000001"
    async with running_standin(tmp_path / "a", state=state) as standin:
        key = standin.bearer("api_key")
        for method, path, body in (
            ("PATCH", f"{device}/state", {"reported": {"n": number}}),
            ("POST", f"{device}/messages", {"message": {"n": [number]}}),
        ):
            answer = await standin.client.request(method, path, json=body, headers=key)
            assert answer.status_code == 202, answer.text
        assert (await standin.client.get("/v1/messages", headers=key)).status_code == 200
    async with running_standin(tmp_path / "b", state=state) as standin:
        shown = await standin.client.get(device, headers=key)
        assert shown.json()["state"]["reported"]["n"] == float(number)


def test_a_file_that_others_could_read_keeps_its_content_and_is_theirs_no_longer(
    tmp_path: Path,
) -> None:
    file = tmp_path / "state"
    file.write_text("kept")
    file.chmod(0o644)
    make_private(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "kept"


def test_it_needs_nothing_that_windows_lacks_before_python_3_13(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "fchmod", raising=False)
    file = tmp_path / "keys" / "service-key.pem"
    make_private(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
