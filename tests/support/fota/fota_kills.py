"""Kills an update and lets it go on: at every edge where a kill matters, and at random instants.

A run of its own process: it forks a child for each pull, so that a kill is a real `kill -9` and
costs no new interpreter. Prints one JSON object with the counts.

    python tests/support/fota/fota_kills.py --random 40 --seed 1
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[3])]

from agent.fota.releases import ReleaseNotKept  # noqa: E402
from tests.support.fota.download_server import FileServer, file_server  # noqa: E402
from tests.support.fota.file_backed_kit import (  # noqa: E402
    Edges,
    FileBackedCloud,
    FileBackedKit,
    FileBackedService,
    Programmer,
    make_runner,
)
from tests.support.fota.signed_images import signed_image  # noqa: E402

MOST_PULLS = 15
MUST_BE_ZERO = (
    "unfinished", "unverified_installs", "false_successes", "false_failures", "different_results",
)  # fmt: skip
FINAL = {"SUCCEEDED", "FAILED", "REJECTED", "TIMED_OUT"}


def serve(content: bytes, ready: int) -> None:
    """Serve the image until killed; write the port to a pipe."""

    async def forever() -> None:
        async with file_server(content) as server:
            os.write(ready, f"{server.port}\n".encode())
            await asyncio.Event().wait()

    asyncio.run(forever())


def child(work: Callable[[], None]) -> int:
    """Fork; the child does `work` and nothing of the parent's."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:  # noqa: BLE001 - the parent sees the exit code
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    os._exit(code)


def pull(folder: Path, kill_at: int = 0, mood: str = "good") -> None:
    edges = Edges(kill_at)

    async def once() -> None:
        runner = make_runner(folder, edge=edges, mood=mood)
        with contextlib.suppress(ReleaseNotKept):  # it is offered all the same
            await runner.pull()
        await runner.close()

    asyncio.run(once())
    (folder / "edges").write_text(str(edges.seen))


def waited(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Bench:
    def __init__(self, root: Path, port: int, image: Path) -> None:
        self.root, self.port, self.image = root, port, image
        self.counts: dict[str, int] = dict.fromkeys(
            (
                "cases", "kills", "unfinished", "unverified_installs", "false_successes",
                "false_failures", "different_results", "failed_pulls", "most_installs",
            ),
            0,
        )  # fmt: skip
        self.sha256 = FileServer(image.read_bytes()).sha256
        self.number = 0
        self.source = "jobs"

    def scene(self) -> Path:
        self.number += 1
        folder = self.root / f"case-{self.number}"
        folder.mkdir()
        if self.source == "kit":
            (folder / "by-kit").touch()
            return folder
        if self.source == "releases":
            md5 = hashlib.md5(self.image.read_bytes(), usedforsecurity=False).hexdigest()
            url = f"http://127.0.0.1:{self.port}/app.bin"
            FileBackedService(folder).deploy(url, "2.0.1", md5)
            return folder
        FileBackedCloud(folder).offer(
            firmwareType="APP",
            host=f"http://127.0.0.1:{self.port}",
            path="app.bin",
            fileSize=self.image.stat().st_size,
            version="2.0.1",
        )
        return folder

    def finish(self, folder: Path, mood: str = "good") -> None:
        """Pull again until the job has a result, then look at what came of it."""
        self.counts["cases"] += 1
        cloud, kit = FileBackedCloud(folder), FileBackedKit(folder)
        for _ in range(MOST_PULLS):
            if FINAL & set(cloud.statuses):
                break
            if waited(child(lambda: pull(folder, mood=mood))) != 0:
                self.counts["failed_pulls"] += 1
        results = {tuple(report) for report in cloud.reports if report[1] in FINAL}
        state = json.loads((folder / "kit.json").read_text())
        board = hashlib.sha256(Programmer(folder).board).hexdigest()
        good = self.sha256 == board or state.get("version") in {"2.0.1+0", "2.0.1"}
        counts = self.counts
        counts["unfinished"] += not results
        counts["different_results"] += len(results) > 1
        counts["false_successes"] += not good and any(one[1] == "SUCCEEDED" for one in results)
        counts["false_failures"] += good and any(one[1] == "FAILED" for one in results)
        counts["unverified_installs"] += any(sha != self.sha256 for sha in kit.installed)
        counts["most_installs"] = max(counts["most_installs"], len(kit.installed))

    def every_edge(self, mood: str) -> int:
        folder = self.scene()
        assert waited(child(lambda: pull(folder, mood=mood))) == 0
        edges = int((folder / "edges").read_text())
        self.finish(folder, mood)
        for edge in range(1, edges + 1):
            killed = self.scene()
            code = waited(child(lambda at=edge, where=killed: pull(where, at, mood)))  # type: ignore[misc]
            self.counts["kills"] += code == -signal.SIGKILL
            self.finish(killed, mood)
        return edges

    def random_instants(self, count: int, draw: random.Random, mood: str = "good") -> None:
        folder = self.scene()
        began = time.perf_counter()
        waited(child(lambda: pull(folder, mood=mood)))
        length = time.perf_counter() - began
        landed = 0
        for _ in range(count * 10):
            if landed == count:
                break
            killed = self.scene()
            pid = child(lambda where=killed: pull(where, mood=mood))  # type: ignore[misc]
            time.sleep(draw.random() * length * 0.95)
            os.kill(pid, signal.SIGKILL)
            # A child that had ended already was not killed: it does not count.
            landed += waited(pid) == -signal.SIGKILL
            self.finish(killed, mood)
        self.counts["kills"] += landed


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        image = signed_image(root, "2.0.1", body=bytes(range(256)) * 1200)
        ours, theirs = os.pipe()
        server = child(lambda: serve(image.read_bytes(), theirs))
        try:
            port = int(os.read(ours, 20))
            bench = Bench(root, port, image)
            pull(bench.scene())  # what is imported late, each of the forks has then
            found: dict[str, Any] = {"seed": given.seed}
            found["edges"] = sum(map(bench.every_edge, ("good", "reverts", "programmed")))
            bench.random_instants(given.random, random.Random(given.seed))
            bench.random_instants(given.random // 4, random.Random(given.seed), "programmed")
            bench.source = "releases"
            found["edges"] += sum(map(bench.every_edge, ("good", "reverts", "programmed")))
            bench.random_instants(given.random // 4, random.Random(given.seed))
            by_kit = Bench(root / "kit", port, image)
            by_kit.root.mkdir()
            by_kit.source = "kit"
            edges = sum(map(by_kit.every_edge, ("good", "reverts", "refuses")))
            by_kit.random_instants(given.random // 4, random.Random(given.seed))
            found["by_kit"] = {"edges": edges, **by_kit.counts}
        finally:
            os.kill(server, signal.SIGKILL)
            os.waitpid(server, 0)
    sys.stdout.write(json.dumps({**found, **bench.counts}) + "\n")
    return int(any(one.counts[name] for one in (bench, by_kit) for name in MUST_BE_ZERO))


if __name__ == "__main__":
    sys.exit(main())
