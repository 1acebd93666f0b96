"""The live page: what three viewers of 64 kits cost the agent, beside the same fleet unwatched."""

from __future__ import annotations

import http.client
import json
import math
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from running import MODEMS, cpu_s, private_mb, profile, started
from trials.measure import Row

from tests.support.page.browsers import browser, until_text

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "page"
KITS, CHANGES, VIEWERS = 64, 10, 3
CPU_PERCENT, MEMORY_MB, UPDATE_MS = 3.0, 12.0, 4.0
# The agent itself, and ten readings a second, by turns.
FLEET = """
import asyncio, json, os, sys
from datetime import timedelta
from agent.cli.page import served_page
from agent.config import load
from agent.config.profile import PageSettings
from agent.daemon.agent import Agent
from agent.daemon.snapshot import Reading
async def main():
    fleet = Agent(lambda: load())
    ready = asyncio.Event()
    work = asyncio.ensure_future(fleet.run(ready.set))
    await ready.wait()
    links = [kit.link.concern for kit in fleet.kits.values()]
    now = fleet.registry.now()
    for link in links:
        with link.changing() as status:
            status.history = [Reading(now - timedelta(minutes=n), -100 + n % 9, 3.0, 3700, 24)
                              for n in range(60, 0, -1)]
    async def change():
        number = 0
        while True:
            with links[number % len(links)].changing() as status:
                status.reading = Reading(fleet.registry.now(), -90 - number % 20, 5.0, 3700, 24)
                status.history = [*status.history[1:], status.reading]
            number += 1
            await asyncio.sleep(1 / CHANGES)
    changing = asyncio.ensure_future(change())
    settings = PageSettings(listen="127.0.0.1:0")
    if len(sys.argv) == 1:
        print(json.dumps([]), flush=True)
        await work
    async with served_page(fleet.configuration, settings) as page:
        print(json.dumps([page.link() for _ in range(int(sys.argv[1]))]), flush=True)
        await work
asyncio.run(main())
""".replace("CHANGES", str(CHANGES))


def cost(viewers: int, settle_s: float, watch_s: float) -> tuple[float, float, int]:
    """Return processor (percent) and memory (MB) of the agent, and what each viewer was sent."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _, ports = started(stack, "-c", MODEMS, str(KITS))
        words = [str(viewers)] if viewers else []
        process, links = started(
            stack, "-c", FLEET, *words,
            environment=profile(folder, ports),
        )  # fmt: skip
        sent = [0] * viewers
        for number, link in enumerate(links):
            threading.Thread(target=view, args=(link, sent, number), daemon=True).start()
        time.sleep(settle_s)
        before, bytes_before = cpu_s(process.pid), sum(sent)
        time.sleep(watch_s)
        used = cpu_s(process.pid) - before
        each = (sum(sent) - bytes_before) // max(1, viewers)
        return 100 * used / watch_s, private_mb(process.pid), each


def painting(watch_s: float) -> tuple[float, int]:
    """Return what an update costs the main thread of a browser (ms, on average), and how many came.

    From its trace: all tasks of the thread meanwhile, style, layout and paint among them.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _, ports = started(stack, "-c", MODEMS, str(KITS))
        _, links = started(stack, "-c", FLEET, "1", environment=profile(folder, ports))
        driver = stack.enter_context(browser(trace="toplevel,blink.user_timing,__metadata"))
        driver.get(links[0])
        until_text(driver, "of 64 kits")
        time.sleep(watch_s)
        events = [
            json.loads(entry["message"])["message"]["params"]
            for entry in driver.get_log("performance")  # type: ignore[no-untyped-call]
            if '"Tracing.dataCollected"' in entry["message"]
        ]
    main = {
        (each["pid"], each["tid"])
        for each in events
        if each.get("name") == "thread_name" and each["args"].get("name") == "CrRendererMain"
    }
    updates = [each for each in events if each.get("name") == "update" and each["ph"] == "b"][1:]
    if not updates:  # Nothing was shown: then no figure may look met.
        return math.inf, 0
    pages = {each["pid"] for each in updates}
    busy_us = sum(
        each.get("tdur", each.get("dur", 0))
        for each in events
        if each.get("name") == "ThreadControllerImpl::RunTask"
        and (each["pid"], each["tid"]) in main
        and each["pid"] in pages
        and each["ts"] >= updates[0]["ts"]  # the load of the page is before
    )
    return busy_us / 1000 / len(updates), len(updates)


def view(link: str, sent: list[int], number: int) -> None:
    """Open a link as a browser does, and read the stream of changes for ever."""
    address = urlsplit(link)
    connection = http.client.HTTPConnection(address.netloc)
    connection.request("GET", f"/?{address.query}")
    answer = connection.getresponse()
    cookie = answer.headers["set-cookie"].partition(";")[0]
    answer.read()
    connection.request("GET", "/events?path=/kits", headers={"cookie": cookie})
    stream = connection.getresponse()
    with suppress(http.client.HTTPException, OSError):  # at the end of the agent
        while data := stream.read1():
            sent[number] += len(data)


def run(smoke: bool) -> Iterator[Row]:
    settle_s, watch_s = (3.0, 2.0) if smoke else (10.0, 30.0)
    alone_percent, alone_mb, _ = cost(0, settle_s, watch_s)
    percent, mb, size = cost(VIEWERS, settle_s, watch_s)
    yield Row(f"{KITS} kits, {CHANGES} changes a second, unwatched", alone_percent, "%")
    seen = f"unwatched {alone_percent:.1f} %; each was sent {size / watch_s / 1000:.0f} kB/s"
    yield Row(f"{VIEWERS} viewers, more", percent - alone_percent, "%", CPU_PERCENT, seen)
    ms, updates = painting(watch_s)
    told = f"{updates} updates, of its trace"
    yield Row("an update, of a browser's main thread", ms, "ms", UPDATE_MS, told)
    yield Row("their memory", mb - alone_mb, "MB", MEMORY_MB, f"unwatched {alone_mb:.1f} MB")
