"""The stand-in: small requests, transformed lists, start-up, and whether a fleet costs anything."""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from trials import measure
from trials.measure import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "standin"
DEVICE = "nrf-352656109000002"
TRANSFORM = '{"id": id, "tags": $map(tags, function($t) { $uppercase($t) })}'
# A bare route on the same server, with the same settings.
BARE = """
import asyncio, json, sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from agent.standin.serve import base_url, listen

body = json.dumps({"id": "x", "name": "x" * 600}).encode()

async def get(request):
    return Response(body, media_type="application/json")

async def main():
    with listen("127.0.0.1", 0) as listening:
        print(json.dumps({"urls": {"device_cloud": base_url(listening)}}), flush=True)
        app = Starlette(routes=[Route("/v1/devices/{device_id}", get)])
        config = uvicorn.Config(
            app, log_config=None, lifespan="off", ws="none", access_log=False, server_header=False
        )
        await uvicorn.Server(config).serve([listening])

asyncio.run(main())
"""


@contextmanager
def running(*arguments: str) -> Iterator[tuple[dict[str, Any], float]]:
    """Run a server until the block ends; give its ready line and how long it took, in ms."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        ready = json.loads(process.stdout.readline())
        yield ready, (time.perf_counter() - started) * 1000
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def getter(ready: dict[str, Any]) -> Callable[[str], bytes]:
    """Return a function that fetches a path over one connection."""
    target = urlsplit(ready["urls"]["device_cloud"])
    connection = http.client.HTTPConnection(target.hostname, target.port, timeout=60)
    key = ready.get("credentials", {}).get("api_key", "")

    def get(path: str) -> bytes:
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return content

    return get


def run(smoke: bool) -> Iterator[Row]:
    rounds, count = (1, 50) if smoke else (7, 400)
    serve = ("-m", "agent", "cloud", "serve")
    with running(*serve, "--devices", "1000") as (ready, _), running("-c", BARE) as (other, _):
        ours, bare = getter(ready), getter(other)
        path = f"/v1/devices/{DEVICE}"
        ratios = []
        for _ in range(rounds):
            bare_us = measure.median_us(lambda: bare(path), count)
            ours_us = measure.median_us(lambda: ours(path), count)
            ratios.append(ours_us / bare_us)
        ratio = statistics.median(ratios)
        yield Row("small GET, time over a bare route", ratio, "x", 1 / 0.7, "Starlette alone 1.0 x")
        yield from transforms(ours, rounds)
    yield from fleet(serve, rounds, count)
    yield start(serve, 2 if smoke else 9)


def walk(get: Callable[[str], bytes], query: str) -> list[object]:
    items: list[object] = []
    token = ""
    while True:
        more = f"&pageNextToken={quote(token, safe='')}" if token else ""
        page = json.loads(get(f"/v1/devices?includeState=true&pageLimit=100{query}{more}"))
        items += page["items"]
        token = page.get("pageNextToken", "")
        if not token:
            return items


def transforms(get: Callable[[str], bytes], rounds: int) -> Iterator[Row]:
    devices = walk(get, "")
    # The engine alone, in a process of its own as the stand-in has it.
    program = (
        "import sys, json, time\n"
        "from agent.standin.device_cloud.devices.jsonata_worker import evaluate\n"
        "devices = json.load(open(sys.argv[1]))\n"
        "evaluate(sys.argv[2], devices[:5])\n"
        "times = []\n"
        "for _ in range(5):\n"
        "    started = time.perf_counter()\n"
        "    evaluate(sys.argv[2], devices)\n"
        "    times.append(time.perf_counter() - started)\n"
        "print(sorted(times)[2] * 1000)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "devices.json"
        file.write_text(json.dumps(devices))
        engine = [sys.executable, "-c", program, str(file), TRANSFORM]
        ratios, controls = [], []
        walk(get, f"&transform={quote(TRANSFORM)}")
        for _ in range(rounds):
            alone = float(subprocess.run(engine, check=True, capture_output=True).stdout)
            plain = measure.median_us(lambda: walk(get, ""), 3) / 1000
            shaped = (
                measure.median_us(lambda: walk(get, f"&transform={quote(TRANSFORM)}"), 3) / 1000
            )
            ratios.append(shaped / (plain + alone))
            controls.append(plain + alone)
    control = f"plain list and engine alone {statistics.median(controls):.0f} ms"
    yield Row("list of 1,000 transformed", statistics.median(ratios), "x", 1.4, control)


def fleet(serve: tuple[str, ...], rounds: int, count: int) -> Iterator[Row]:
    with (
        running(*serve, "--devices", "10") as (small, _),
        running(*serve, "--devices", "100000") as (large, _),
    ):
        few, many = getter(small), getter(large)
        ratios = []
        for _ in range(rounds):
            base = measure.median_us(lambda: few("/v1/devices/nrf-352156000000007"), count)
            big = measure.median_us(lambda: many("/v1/devices/nrf-352156000099999"), count)
            ratios.append(big / base)
    yield Row("fetch among 100,000 devices", statistics.median(ratios), "x", 1.5, "among 10 1.0 x")


def start(serve: tuple[str, ...], rounds: int) -> Row:
    bare, ready = [], []
    for _ in range(rounds):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bare.append((time.perf_counter() - started) * 1000)
        with running(*serve) as (_, took):
            ready.append(took)
    interpreter = statistics.median(bare)
    over = statistics.median(ready) - interpreter
    return Row("start to ready over bare", over, "ms", 400.0, f"interpreter {interpreter:.0f} ms")
