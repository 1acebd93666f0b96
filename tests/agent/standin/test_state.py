"""What `--state` keeps: everything that was acknowledged, whatever ends the process."""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.standin.observability.ingest.chunk_reassembly import Reassembler
from agent.standin.observability.ingest.messages import StoredReassembler
from agent.standin.observability.project import Project
from agent.standin.observability.tables import WAITING_CHUNKS
from agent.standin.state import open_cloud
from tests.support.cloud.observability import an_event, with_project_key, with_token
from tests.support.cloud.standin import StandIn, running_standin
from tests.support.dumps.sdk_bytes import EXAMPLE_PAIR, chunks

OCTETS = {"Content-Type": "application/octet-stream"}


async def push_chunk(standin: StandIn, chunk: bytes, serial: str = "kit-1") -> None:
    path = f"/api/v0/chunks/{serial}"
    answer = await with_project_key(standin)("POST", path, content=chunk, headers=OCTETS)
    assert answer.status_code == 202, answer.text


@pytest.mark.contract("O5.1")
async def test_a_message_that_came_in_part_is_made_whole_after_a_restart(tmp_path: Path) -> None:
    state = tmp_path / "cloud.sqlite"
    first, last = EXAMPLE_PAIR
    async with running_standin(tmp_path / "a", state=state) as standin:
        await push_chunk(standin, first)
    async with running_standin(tmp_path / "b", state=state) as standin:
        await push_chunk(standin, last)
        (event,) = await with_token(standin).data("~/events")
        assert event["event_info"]["metrics"] == {"chunk_test_success": 1}
        assert len(standin.cloud.table(WAITING_CHUNKS)) == 0


@pytest.mark.contract("O5.1")
@given(data=st.data())
@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
def test_a_restart_between_any_two_chunks_changes_nothing(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    message = st.binary(min_size=1, max_size=120)
    stream = [
        (serial, part)
        for serial in ("kit-1", "kit-2")
        for one in data.draw(st.lists(message, max_size=3))
        for part in chunks(one, data.draw(st.integers(9, 40)))
    ]
    # Some are lost or come twice, as on a bad line.
    stream = [part for part in stream for _ in range(data.draw(st.sampled_from((1, 1, 1, 2, 0))))]
    cut = data.draw(st.integers(0, len(stream)))
    path = tmp_path_factory.mktemp("state") / "cloud.sqlite"
    alone = Reassembler()
    expected = [alone.receive(serial, part, 0.0).message for serial, part in stream]
    found = []
    for part in (stream[:cut], stream[cut:]):
        cloud = open_cloud(path)
        waiting = StoredReassembler(cloud)
        project = Project(cloud, "acme", "kits")
        found += [waiting.receive(project, serial, chunk).message for serial, chunk in part]
        cloud.store.close()
    assert found == expected


def push_until_killed(process: subprocess.Popen[str], client: httpx.Client, turn: int) -> set[str]:
    """Push events, kill the server in the middle; return the serials that it acknowledged."""
    acknowledged: set[str] = set()
    enough = threading.Event()
    killer = threading.Thread(target=lambda: (enough.wait(60), process.kill()))
    killer.start()
    with contextlib.suppress(httpx.TransportError):
        for number in itertools.count():
            event = an_event(f"kit-{turn}-{number}", user_info={"text": "x" * 20_000})
            if client.post("/events", json=[event]).status_code == 202:
                acknowledged.add(event["device_serial"])
            if number == 20 + turn * 7:
                enough.set()
    killer.join()
    return acknowledged


@contextlib.contextmanager
def served(state: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client, dict[str, Any]]]:
    """Serve that state from a process of its own; give it, a device's client, the ready line."""
    command = [sys.executable, "-m", "agent", "cloud", "serve", "--state", str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            ready = json.loads(process.stdout.readline())
            key = {"Service-Project-Key": ready["credentials"]["project_key"]}
            base = ready["urls"]["api"] + "/api/v0"
            with httpx.Client(base_url=base, headers=key, trust_env=False) as client:
                yield process, client, ready
        finally:
            process.kill()


@pytest.mark.contract("O3.4", "O5.1")
def test_what_was_acknowledged_outlives_a_kill_in_the_middle_of_writing(tmp_path: Path) -> None:
    state = tmp_path / "cloud.sqlite"
    first, last = EXAMPLE_PAIR
    acknowledged: set[str] = set()
    turns = range(4)
    for turn in turns:
        with served(state) as (process, client, _):
            assert client.post(f"/chunks/half-{turn}", content=first, headers=OCTETS).is_success
            acknowledged |= push_until_killed(process, client, turn)
    with contextlib.closing(sqlite3.connect(state)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    events: list[dict[str, Any]] = []
    with served(state) as (_, client, ready):
        for turn in turns:
            client.post(f"/chunks/half-{turn}", content=last, headers=OCTETS)
        bearer = {"Authorization": f"Bearer {ready['credentials']['organization_auth_token']}"}
        for page in itertools.count(1):
            query = {"per_page": 100, "page": page}
            path = "/organizations/acme/projects/kits/events"
            answer = client.get(path, params=query, headers=bearer).json()
            events += answer["data"]
            if page >= answer["paging"]["page_count"]:
                break
    assert len(acknowledged) > 20 * len(turns)
    assert acknowledged <= {event["device"]["device_serial"] for event in events}
    metrics = [event["event_info"]["metrics"] for event in events]
    assert metrics.count({"chunk_test_success": 1}) == len(turns)
