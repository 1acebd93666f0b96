"""Every fault, by each way of driving it: the command line, the control endpoint, a test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from observability import an_event
from standin import running_standin

from agent.standin.faults import describe, install

PATH = "/v1/openapi.json"
SEEN = {
    "latency=3600": httpx.ReadTimeout,
    "slow-body=3600": httpx.ReadTimeout,
    "cut-body": httpx.RemoteProtocolError,
    "wrong-length=10": httpx.RemoteProtocolError,
    "too-many-requests=7": (429, "retry-after", "7"),
    "server-error=504": (504, "content-type", "application/json"),
    "html-error": (502, "content-type", "text/html; charset=utf-8"),
    "array-error": (400, "content-type", "application/json"),
    "huge-json=2": (200, "content-type", "application/json"),
    "deep-json=5000": (200, "content-length", "10000"),
    "redirect=http://elsewhere.invalid": (307, "location", "http://elsewhere.invalid" + PATH),
    "connection-reset": httpx.ReadError,
    "tls-wrong-certificate": httpx.ConnectError,
    "rate-limit=1": (429, "retry-after", None),
}
"""Fault -> what a client meets: an error, or a status and a header (None: whatever it is)."""


def test_every_fault_is_in_the_table() -> None:
    assert {text.partition("=")[0] for text in SEEN} == set(describe())


@contextlib.asynccontextmanager
async def spoiled(way: str, fault: str, folder: Path) -> AsyncIterator[dict[str, Any]]:
    """Give the ready line of a stand-in with that fault."""
    if way == "command line":
        command = [sys.executable, "-m", "agent", "cloud", "serve", "--fault", fault]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            yield json.loads(await process.stdout.readline())
        finally:
            process.terminate()
            await process.wait()
        return
    async with running_standin(folder) as standin:
        if way == "a test":
            install(standin.cloud, [fault])
        else:
            token = standin.bearer("control_token")
            answer = await standin.client.post("/control", json={"faults": [fault]}, headers=token)
            assert answer.json()["faults"] == [fault]
        yield {"urls": dict(standin.urls), "credentials": standin.credentials}


async def meet(ready: dict[str, Any], fault: str) -> httpx.Response:
    base = ready["urls"]["api"]
    if fault.startswith("tls"):
        base = base.replace("http:", "https:")
    async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=60) as client:
        if not fault.startswith("rate-limit"):
            patience = httpx.Timeout(30, read=0.5 if fault.endswith("3600") else 30)
            return await client.get(PATH, timeout=patience)
        key = {"Service-Project-Key": ready["credentials"]["project_key"]}
        for _ in range(2):
            answer = await client.post("/api/v0/events", json=[an_event()], headers=key)
        return answer


@pytest.mark.parametrize("way", ["command line", "control endpoint", "a test"])
@pytest.mark.parametrize("fault", SEEN)
async def test_a_fault_is_met_however_it_was_switched_on(
    fault: str, way: str, tmp_path: Path
) -> None:
    seen = SEEN[fault]
    async with spoiled(way, fault, tmp_path) as ready:
        if isinstance(seen, type):
            with pytest.raises(seen):
                await meet(ready, fault)
            return
        answer = await meet(ready, fault)
    status, header, value = seen
    assert answer.status_code == status
    assert header in answer.headers
    assert value in {None, answer.headers[header]}
    if fault.startswith("huge"):
        assert len(answer.content) > 2 * 1024 * 1024
    if fault.startswith("array"):
        assert isinstance(answer.json(), list)
