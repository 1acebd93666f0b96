"""The bench: power pulled, boards swapped, two stations, a tray that is right, canary secrets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_kills import TAG, Dying, Edged, Station, forked
from measure import Row
from operator_ca import make_ca

from agent.provisioning.bench import run_board
from agent.provisioning.ledger import open_ledger
from agent.provisioning.outcome import Place
from at.errors import LinkLost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.provisioning.outcome import Outcome

NAME = "provisioning"
SEED = 20260314
SECRETS = {
    "CELLAGENT_DEVICE_CA_PASSPHRASE": "canary-passphrase",
    "CELLAGENT_LEDGER_PASSWORD": "canary-ledger-password",
}


@contextlib.contextmanager
def service(folder: Path) -> Iterator[Station]:
    """Serve a stand-in in a process of its own; yield a station that uses it."""
    command = (sys.executable, "-m", "agent", "cloud", "serve", "--state", str(folder / "cloud"))
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        ready = json.loads(server.stdout.readline())
        make_ca(folder)
        yield Station(folder, ready["urls"], ready["credentials"]["api_key"])
    finally:
        server.terminate()
        server.wait(10)
        server.stdout.close()


# --- power


def edges_of_a_run(station: Station, board: int) -> int:
    """Return how many edges a whole run has."""
    counter = Dying()
    asyncio.run(station.provision(board, counter))
    return counter.seen


def pulled(station: Station, board: int, edge: int, after_s: float | None) -> bool:
    """Pull the power at an edge, or after a time; tell whether it struck before the end."""
    child = forked(lambda: station.provision(board, Dying(edge)))
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def wrongs_after(station: Station, board: int) -> list[str]:
    """Run the board again and return what is not as it must be then."""
    outcome = asyncio.run(station.provision(board))
    held = json.loads(station.state(board).read_text())["credentials"]
    types = sorted(place for place in held if place.startswith(f"{TAG},"))
    ledger = open_ledger(str(station.folder / "ledger.sqlite"), "judge", writes=False)
    try:
        record = ledger.board(outcome.uuid)
        notes = ledger.steps(outcome.uuid)
    finally:
        ledger.close()
    keys = {note.detail for note in notes if (note.step, note.state) == ("register", "begun")}
    wrongs = []
    if not outcome.ok:
        wrongs.append(f"not done: {outcome.reason}")
    if types != [f"{TAG},{kind}" for kind in (0, 1, 2)]:
        wrongs.append(f"held: {types}")
    # The proof that ended the run says that the service has the key that is in the modem.
    if len(keys) != 1:
        wrongs.append(f"{len(keys)} keys were sent to the service")
    if record is None or not record.registered_key:
        wrongs.append("the ledger knows no registration")
    return wrongs


# --- swaps


def swapped(station: Station, dice: random.Random, count: int) -> tuple[int, int]:
    """Swap boards `count` times; return keys on a wrong board and swaps that were not noticed."""
    wrong = unnoticed = 0
    for number in range(count):
        first, second = 1_000_000 + 2 * number, 1_000_001 + 2 * number
        # By hand, so that the link breaks; or harsher than any hand, between two steps unseen.
        by_hand = number % 2 == 0
        outcome = asyncio.run(swap_once(station, first, second, dice, by_hand=by_hand))
        if by_hand:
            again = asyncio.run(station.provision(second))
            wrong += not again.ok
            unnoticed += outcome.ok
            continue
        if station.state(second).exists():
            held = json.loads(station.state(second).read_text())["credentials"]
            wrong += any(place.startswith(f"{TAG},") for place in held)
        unnoticed += outcome.outcome != "swapped"
    return wrong, unnoticed


async def swap_once(
    station: Station, first: int, second: int, dice: random.Random, *, by_hand: bool
) -> Outcome:
    """Run the first board; at some point the second is in its place."""
    async with station.bench() as bench, station.open(first) as one, station.open(second) as two:
        # In commands, of which a run has 26 edges; or in steps, from the first after the look at
        # the board up to its registration.
        left = dice.randrange(1, 20) if by_hand else dice.randrange(2, 10)

        def link_breaks() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                raise LinkLost("the board was unplugged")

        port = Edged(one.inner, link_breaks if by_hand else lambda: None)

        def at_step(_place: Place, _step: object) -> None:
            nonlocal left
            left -= not by_hand
            if left == 0 and not by_hand:
                port.inner = two.inner

        @contextlib.asynccontextmanager
        async def opened(_place: Place) -> Any:
            yield port

        goal = replace(bench.goal, prove=False)
        return await run_board(
            Place("", "", "", "tray"), replace(bench, goal=goal), opened, at_step
        )


# --- two stations


def two_stations(station: Station, url: str, rounds: int) -> tuple[int, int]:
    """Run one board at two stations at once; return interleaved runs and boards not done."""
    interleaved = not_done = 0
    folders = [station.folder / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        make_ca(folder)
    for number in range(rounds):
        board = 2_000_000 + number
        there = [
            replace(station, folder=folder, ledger=url, name=folder.name) for folder in folders
        ]
        for child in [forked(partial(at.provision, board)) for at in there]:
            os.waitpid(child, 0)
        ledger = open_ledger(url, "judge", writes=False)
        try:
            [record] = [one for one in ledger.boards() if one.imei.startswith(f"0044010{board:07}")]
            notes = [note.station for note in ledger.steps(record.uuid)]
        finally:
            ledger.close()
        changes = sum(one != other for one, other in pairwise(notes))
        interleaved += changes > 1
        not_done += not record.registered_key
    return interleaved, not_done


# --- canaries


def canaries_found(folder: Path, verbosities: list[str]) -> int:
    """Run the whole bench with canary secrets; return how many of them can be found anywhere."""
    folder.mkdir()
    make_ca(folder, password=SECRETS["CELLAGENT_DEVICE_CA_PASSPHRASE"].encode())
    environment = {
        **os.environ,
        **SECRETS,
        "CELLAGENT_CONFIG": str(folder / "config" / "config.toml"),
        "CELLAGENT_STATE_DIR": str(folder / "state"),
        "CELLAGENT_PROFILE": "canary",
    }
    agent = (sys.executable, "-m", "agent")
    serve = (*agent, "cloud", "serve", "--write-profile", "canary")
    server = subprocess.Popen(serve, env=environment, stdout=subprocess.PIPE, stderr=-3, text=True)
    assert server.stdout is not None
    try:
        ready = json.loads(server.stdout.readline())
        for key, file in (("device_ca_file", "ca.pem"), ("device_ca_key_file", "ca.key")):
            setting = (f"provisioning.{key}", str(folder / file))
            subprocess.run(
                [*agent, "config", "set", *setting], env=environment, check=True, stdout=-3
            )
        said = b""
        for number, verbosity in enumerate(verbosities):
            port = f"virtual:{folder / f'kit{number}.json'}"
            transcript = folder / f"{number}.transcript"
            run = ("provision", "run", "--set-clock", "--host-key", *verbosity.split())
            record = ("modem", "record", str(transcript), "--port", port, "--")
            commands = [
                (*agent, *record, *agent, *run, "--json"),
                (*agent, "provision", "status", "--json", *verbosity.split()),
                (*agent, "provision", "export", *verbosity.split()),
                (*agent, "provision", "export", "--as", "bulk", *verbosity.split()),
            ]
            for command in commands:
                said += watched(command, environment)
            said += transcript.read_bytes()
        said += (folder / "state" / "ledger.sqlite").read_bytes()
    finally:
        server.terminate()
        server.wait(10)
        server.stdout.close()
    keys = "".join(path.read_text() for path in (folder / "state" / "keys").iterdir())
    secrets = [*SECRETS.values(), ready["credentials"]["api_key"]]
    secrets += [line for line in keys.splitlines() if "-----" not in line]
    assert len(secrets) > 5, "no key was made"
    return sum(secret.encode() in said for secret in secrets)


def watched(command: tuple[str, ...], environment: dict[str, str]) -> bytes:
    """Run a command; return all that it printed, and the process list as it was meanwhile."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, stdin=-3
        )
        listed = b""
        while process.poll() is None:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    listed += path.read_bytes()
            time.sleep(0.05)
        output.seek(0)
        said = output.read()
    if process.returncode:
        raise RuntimeError(f"{command[3:]} failed: {said.decode()[-2000:]}")
    return said + listed


def run(smoke: bool) -> Iterator[Row]:
    logging.disable(logging.ERROR)
    dice = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name, service(Path(name)) as station:
        edges = edges_of_a_run(station, 0)
        began = time.perf_counter()
        asyncio.run(station.provision(1_000))
        whole_s = time.perf_counter() - began
        wrongs: list[str] = []
        struck = range(1, edges + 1, 12 if smoke else 1)
        for board, edge in enumerate(struck, 1):
            assert pulled(station, board, edge, None)
            wrongs += wrongs_after(station, board)
        yield Row(f"boards not right after power was pulled at {len(struck)} of {edges} edges",
                  len(wrongs), "boards", 0, "; ".join(wrongs[:3]))  # fmt: skip

        count, cut, wrongs = 8 if smoke else 500, 0, []
        for board in range(10_000, 10_000 + count):
            cut += pulled(station, board, 0, dice.uniform(0.0, whole_s))
            wrongs += wrongs_after(station, board)
        yield Row(f"boards not right after {cut} of {count} runs were cut at random instants",
                  len(wrongs), "boards", 0, "; ".join(wrongs[:3]) or f"seed {SEED}")  # fmt: skip

        count = 10 if smoke else 1000
        wrong, unnoticed = swapped(station, dice, count)
        yield Row(f"keys on a wrong board in {count} swaps", wrong, "keys", 0, f"seed {SEED}")
        yield Row("swaps that went unnoticed", unnoticed, "swaps", 0)

        count, before = 3 if smoke else 100, json.loads(station.state(0).read_text())["writes"]
        for _ in range(count):
            asyncio.run(station.provision(0))
        writes = json.loads(station.state(0).read_text())["writes"] - before
        yield Row(f"credential writes to a right board in {count} runs", writes, "writes", 0)

        yield from stations(station, 3 if smoke else 100)

        levels = ["-vvv"] if smoke else ["", "-v", "-vv", "-vvv"]
        found = canaries_found(Path(name) / "canaries", levels)
        yield Row(f"canary secrets found at {len(levels)} verbosities", found, "secrets", 0)


def stations(station: Station, rounds: int) -> Iterator[Row]:
    from postgres import PostgresMissing, postgres_cluster_if_there

    what = f"boards that two stations worked on at once in {rounds} rounds"
    try:
        with postgres_cluster_if_there() as url:
            interleaved, not_done = two_stations(station, url, rounds)
    except PostgresMissing as missing:
        yield Row(what, 0, "boards", 0, skipped=str(missing))
        return
    yield Row(what, interleaved, "boards", 0)
    yield Row("boards that neither of them finished", not_done, "boards", 0)
