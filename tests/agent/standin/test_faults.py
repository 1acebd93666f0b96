"""Faults on request: how they are written, switched on and ended; what a client sees of each."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from agent.standin.fault_kinds import FAULTS
from agent.standin.faults import active_faults, parse, set_faults
from agent.standin.state import open_cloud
from tests.support.cloud.observability import an_event, with_project_key, with_token
from tests.support.cloud.standin import StandIn, running_standin


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("cut-body", ("cut-body", "", None, "", "")),
        ("latency=0.5", ("latency", "0.5", None, "", "")),
        ("latency=0.5@/v1/*", ("latency", "0.5", None, "", "/v1/*")),
        ("server-error", ("server-error", "503", 3, "", "")),
        ("server-error=500*2@POST /api/v0/events", ("server-error", "500", 2, "POST",
                                                    "/api/v0/events")),
        ("redirect=https://u@elsewhere.invalid/x", ("redirect", "https://u@elsewhere.invalid/x",
                                                    None, "", "")),
        ("too-many-requests=-5", ("too-many-requests", "-5", None, "", "")),
    ],
)  # fmt: skip
def test_a_fault_is_read_as_it_is_written(text: str, parts: tuple) -> None:
    fault = parse(text)
    assert (fault.name, fault.argument, fault.left, fault.method, fault.route) == parts


@pytest.mark.parametrize(
    "text", ["", "no-such", "latency=soon", "latency=-1", "server-error=200", "deep-json=0",
             "too-many-requests=a\r\nb", "connection-reset=never", "rate-limit=many",
             "rate-limit=1*2", "rate-limit@/v1/*", "tls-wrong-certificate@/v1/*"],
)  # fmt: skip
def test_a_fault_that_is_none_is_refused_and_leaves_the_others(text: str) -> None:
    cloud = open_cloud()
    set_faults(cloud, ["cut-body"])
    with pytest.raises(ValueError, match=r"\w"):
        set_faults(cloud, [text])
    assert active_faults(cloud) == ["cut-body"]


def test_every_fault_is_described() -> None:
    assert all(kind.help.endswith(".") for kind in FAULTS.values())


PLACE = "/api/v0/organizations"


async def get(standin: StandIn, path: str = PLACE) -> httpx.Response:
    return await with_token(standin)("GET", path)


async def test_a_fault_strikes_its_route_and_its_times_and_no_more(standin: StandIn) -> None:
    set_faults(standin.cloud, [f"server-error=500*2@GET {PLACE}"])
    await get(standin, f"{PLACE}/acme/projects")
    statuses = [(await get(standin)).status_code for _ in range(3)]
    assert statuses == [500, 500, 200]
    assert active_faults(standin.cloud) == []


async def test_errors_are_written_as_the_half_that_is_asked_writes_them(standin: StandIn) -> None:
    set_faults(standin.cloud, ["server-error=502*2"])
    assert (await get(standin)).json()["error"]["http_code"] == 502
    assert "code" in (await standin.client.get("/v1/status")).json()


async def test_the_control_endpoint_switches_faults_and_is_never_spoiled(standin: StandIn) -> None:
    client, token = standin.client, standin.bearer("control_token")
    wish = {"faults": ["connection-reset", "html-error"]}
    assert (await client.post("/control", json=wish, headers=token)).json()["faults"] == [
        "connection-reset",
        "html-error",
    ]
    with pytest.raises(httpx.ReadError):
        await get(standin)
    bad = await client.post("/control", json={"faults": ["no-such"]}, headers=token)
    assert bad.status_code == 400
    assert (await client.post("/control", json={"faults": []}, headers=token)).status_code == 200
    assert (await client.get("/control")).status_code == 401
    assert (await get(standin)).status_code == 200


async def test_rate_limits_are_a_fault_too(standin: StandIn) -> None:
    set_faults(standin.cloud, ["rate-limit=1"])
    device = with_project_key(standin)
    statuses = [
        (await device("POST", "/api/v0/events", json=[an_event()])).status_code for _ in range(2)
    ]
    assert statuses == [202, 429]
    set_faults(standin.cloud, [])
    assert (await device("POST", "/api/v0/events", json=[an_event()])).status_code == 202


async def test_tls_with_a_wrong_certificate_is_refused_by_a_client_that_looks(tmp_path) -> None:
    async with running_standin(tmp_path, faults=["tls-wrong-certificate"]) as standin:
        url = standin.urls["api"]
        assert url.startswith("https://")
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await standin.client.get(url + "/v1/status")
        async with httpx.AsyncClient(verify=False, trust_env=False) as careless:
            assert (await careless.get(url + "/v1/status")).status_code == 200


async def test_a_wrong_certificate_comes_and_goes_while_it_runs(standin: StandIn) -> None:
    control, token = "/control", standin.bearer("control_token")
    url = standin.urls["api"].replace("http:", "https:")
    wish = {"faults": ["tls-wrong-certificate"]}
    assert (await standin.client.post(control, json=wish, headers=token)).status_code == 200
    async with httpx.AsyncClient(base_url=url, trust_env=False) as careful:
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await careful.get("/v1/status")
    async with httpx.AsyncClient(base_url=url, verify=False, trust_env=False) as careless:
        # Whoever does not look is served, and may end it.
        listed = await careless.get("/v1/devices", headers=standin.bearer("api_key"))
        assert listed.status_code == 200
        assert (await careless.post(control, json={"faults": []}, headers=token)).json()[
            "faults"
        ] == []
    async with httpx.AsyncClient(base_url=standin.urls["api"], trust_env=False) as plain:
        assert (await plain.get("/v1/status")).status_code == 200
        set_faults(standin.cloud, ["tls-wrong-certificate*1"])
        assert (await plain.get("/v1/status")).status_code == 200  # a connection that was there
    async with httpx.AsyncClient(base_url=url, trust_env=False) as careful:
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await careful.get("/v1/status")
    async with httpx.AsyncClient(base_url=standin.urls["api"], trust_env=False) as plain:
        assert (await plain.get("/v1/status")).status_code == 200
    assert active_faults(standin.cloud) == []


async def test_a_client_that_speaks_no_tls_is_let_go(standin: StandIn) -> None:
    set_faults(standin.cloud, ["tls-wrong-certificate*1"])
    target = urlsplit(standin.urls["api"])
    reader, writer = await asyncio.open_connection(target.hostname, target.port)
    writer.write(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"HTTP" not in await asyncio.wait_for(reader.read(), 60)
    writer.close()
    assert (await standin.client.get("/v1/status")).status_code == 200


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
    assert {text.partition("=")[0] for text in SEEN} == set(FAULTS)


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
            set_faults(standin.cloud, [fault])
        else:
            token = standin.bearer("control_token")
            answer = await standin.client.post("/control", json={"faults": [fault]}, headers=token)
            assert answer.json()["faults"] == [fault]
        yield {"urls": dict(standin.urls), "credentials": standin.credentials}


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


@pytest.mark.parametrize(
    ("form", "header"),
    [("", "1"), ("=7", "7"), ("=none", None), ("=-5", "-5"), ("=tomorrow", "tomorrow"),
     ("=" + "9" * 40, "9" * 40)],
)  # fmt: skip
async def test_every_form_of_retry_after(standin: StandIn, form: str, header: str | None) -> None:
    set_faults(standin.cloud, [f"too-many-requests{form}*1"])
    answer = await get(standin)
    assert (answer.status_code, answer.headers.get("Retry-After")) == (429, header)
    assert (await get(standin)).status_code == 200


async def test_retry_after_may_be_a_date_of_the_stand_in_s_clock(standin: StandIn) -> None:
    standin.clock.advance(86400)
    standin.clock.freeze()
    set_faults(standin.cloud, ["too-many-requests=date:90"])
    headers = (await get(standin)).headers
    until, said = (parsedate_to_datetime(headers[name]) for name in ("Retry-After", "Date"))
    assert 88 < (until - standin.clock.now()).total_seconds() <= 90
    assert (until - said).total_seconds() == 90, "a client reckons from the Date of the answer"


async def test_pages_arrays_and_redirects(standin: StandIn) -> None:
    set_faults(standin.cloud, ["html-error*1"])
    page = await get(standin)
    assert (page.status_code, page.headers["content-type"]) == (502, "text/html; charset=utf-8")
    set_faults(standin.cloud, ["array-error=422*1"])
    assert isinstance((await get(standin)).json(), list)
    set_faults(standin.cloud, ["redirect=https://elsewhere.invalid/base/*1"])
    moved = await get(standin, PLACE + "?page=1")
    assert moved.status_code == 307
    assert moved.headers["Location"] == f"https://elsewhere.invalid/base{PLACE}?page=1"


async def test_deep_and_huge_json(standin: StandIn) -> None:
    set_faults(standin.cloud, ["deep-json=5000*1"])
    assert (await get(standin)).text == "[" * 5000 + "]" * 5000
    set_faults(standin.cloud, ["huge-json=3*1"])
    assert len((await get(standin)).content) > 3 * 1024 * 1024


@pytest.mark.parametrize("fault", ["cut-body", "wrong-length=10"])
async def test_a_body_that_ends_early_is_seen_by_the_client(standin: StandIn, fault: str) -> None:
    set_faults(standin.cloud, [fault + "*1"])
    with pytest.raises(httpx.RemoteProtocolError):
        await get(standin)
    assert (await get(standin)).status_code == 200


async def test_a_length_that_is_too_small_cuts_the_body(standin: StandIn) -> None:
    set_faults(standin.cloud, ["wrong-length=-5*1"])
    whole = await get(standin, f"{PLACE}/acme")
    assert whole.content == (await get(standin, f"{PLACE}/acme")).content[:-5]


async def test_a_slow_body_comes_whole_and_latency_delays(standin: StandIn) -> None:
    set_faults(standin.cloud, ["slow-body=0.1*1", "latency=0.01*1"])
    assert (await get(standin)).json()["paging"]["page"] == 1
    assert (await get(standin)).status_code == 200


@pytest.mark.parametrize(("moment", "stored"), [("before", 0), ("after", 1)])
async def test_a_reset_comes_before_or_after_the_request_was_carried_out(
    standin: StandIn, moment: str, stored: int
) -> None:
    set_faults(standin.cloud, [f"connection-reset={moment}*1@/api/v0/events"])
    device = with_project_key(standin)
    with pytest.raises(httpx.ReadError):
        await device("POST", "/api/v0/events", json=[an_event()])
    assert len(await with_token(standin).data("~/events")) == stored
    assert (await device("POST", "/api/v0/events", json=[an_event()])).status_code == 202


async def test_spoiled_answers_leave_nothing_behind(standin: StandIn) -> None:
    before = len(asyncio.all_tasks())
    for fault in ("cut-body", "connection-reset", "wrong-length=3"):
        set_faults(standin.cloud, [fault])
        for _ in range(20):
            with pytest.raises(httpx.TransportError):
                await get(standin)
    set_faults(standin.cloud, [])
    assert (await get(standin)).status_code == 200
    assert len(asyncio.all_tasks()) <= before + 2
