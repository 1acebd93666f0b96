"""An operator's second thoughts about a few boards: no key that is at work dies without a word.

A round has a ledger and three sockets of its own. Things happen to the boards (erased, cloned, an
IMEI written twice), and the bench is run with whatever comes to the operator's mind, and killed.
Before and after each run the service is asked with a token of every key that was ever seen.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import random
import re
import shlex
import shutil
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from msgspec.structs import replace
from trials.measure import counted

from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.ledger import open_ledger
from agent.provisioning.planning.goal import CertificateSource, Goal, RegistrationMethod
from agent.provisioning.running.batch import run_boards
from agent.provisioning.running.steps.registrar import Registrar
from agent.standin import jwt
from at.driver.modem import Modem
from at.virtual.options import device_uuid
from at.virtual.transport import VirtualTransport
from tests.support.keys.operator_ca import make_ca
from tests.support.provisioning.ledgers import boards_of, registrations_of
from tests.support.provisioning.station_crashes import (
    Edge,
    Instrumented,
    KillAt,
    StationFolder,
    forked,
)
from tests.support.provisioning.virtual_tray import GOAL

if TYPE_CHECKING:
    from agent.provisioning.running.board_run import Station
    from agent.provisioning.running.outcome import Outcome

SOCKETS = range(3)
SECOND_TAG = 101
CAS = "usual-ca", "other-ca"
_RUNS = 8
_AT_ONCE = 8
_EDGES = 60
_METHODS = (
    RegistrationMethod.ONBOARD,
    RegistrationMethod.PUBLIC_KEY,
    RegistrationMethod.NONE,
    RegistrationMethod.CLAIM,
)
_OPTION = re.compile(r"--replace (\d+):(\d+)|(--rekey)|(--second-tag)|--take-over (\S+)")


@dataclass(frozen=True)
class AtWork:
    """A key in a board's flash, whose tokens the service accepts for a device.

    `uuids` and `tags` are those of the boards that hold it: a clone holds it, too.
    """

    pem: str
    device_id: str
    uuids: frozenset[str] = field(default=frozenset(), compare=False)
    tags: frozenset[int] = field(default=frozenset(), compare=False)


@dataclass(frozen=True)
class Allowed:
    """What the options of a run allow: which keys may die of it."""

    goal: Goal
    uuids: frozenset[str]

    def death_of(self, key: AtWork) -> bool:
        """Tell whether a key may die: of these boards, or of a device id that may be taken."""
        if key.device_id in self.goal.take_over and self.uuids:
            return True
        if not key.uuids & self.uuids:
            return False
        if self.goal.security_tag in key.tags:
            return self.goal.rekey or bool(self.goal.replace)
        return self.goal.second_tag


@dataclass
class Bench:
    """One round's bench: the identity (IMEI, UUID) in each socket, and all that was ever seen."""

    station: StationFolder
    client: httpx.Client
    identities: dict[int, tuple[str, str]]
    pems: set[str] = field(default_factory=set)
    device_ids: set[str] = field(default_factory=set)
    wrongs: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    allowed: list[Allowed] = field(default_factory=list)
    """What was allowed to runs that were killed: what one began, a later one may end."""
    given_up: set[AtWork] = field(default_factory=set)
    """Keys that the operator gave up with an option, at whichever device id they still work."""
    accepted: dict[tuple[str, str], bool] = field(default_factory=dict)
    """What the service said since the last run, by private key and device id."""

    # --- what is true

    def flash(self, socket: int) -> Path:
        return self.station.state(socket)

    def keys_in(self, socket: int) -> dict[int, str]:
        """Return the private keys (PEM) in a board's flash, by their tag, and note them."""
        if not self.flash(socket).exists():
            return {}
        held = json.loads(self.flash(socket).read_text())["credentials"].items()
        places = [(place.split(","), entry) for place, entry in held]
        found = {
            int(tag): entry["private_key"] or entry["content"]
            for (tag, kind), entry in places
            if kind == "2"
        }
        self.pems |= set(found.values())
        return found

    def accepts(self, pem: str, device_id: str) -> bool:
        """Tell whether the service accepts a token of this key for the device.

        It is asked once after each run: nothing else changes what it accepts.
        """
        if (pem, device_id) not in self.accepted:
            now = int(time.time())
            token = jwt.sign({"sub": device_id, "iat": now - 5, "exp": now + 300}, pem)
            url = f"{self.station.urls['device_cloud']}/v1/devices/{device_id}"
            answer = self.client.get(url, headers={"Authorization": f"Bearer {token}"})
            self.accepted[pem, device_id] = answer.status_code != 401
        return self.accepted[pem, device_id]

    def at_work(self) -> set[AtWork]:
        holders: dict[str, set[tuple[str, int]]] = {}
        for socket in SOCKETS:
            for tag, pem in self.keys_in(socket).items():
                holders.setdefault(pem, set()).add((self.identities[socket][1], tag))
        return {
            AtWork(pem, device_id, *map(frozenset, zip(*places, strict=True)))
            for pem, places in holders.items()
            for device_id in self.device_ids
            if self.accepts(pem, device_id)
        }

    # --- what happens to boards

    def fresh(self, socket: int, imei: str, uuid: str) -> None:
        self.flash(socket).unlink(missing_ok=True)
        self.identities[socket] = imei, uuid
        self.device_ids |= {uuid, f"nrf-{full(imei)}"}

    def erase(self, socket: int) -> None:
        if self.flash(socket).exists():
            state = json.loads(self.flash(socket).read_text())
            self.flash(socket).write_text(json.dumps({**state, "credentials": {}}))

    def clone(self, socket: int, other: int) -> None:
        if self.flash(other).exists():
            shutil.copy(self.flash(other), self.flash(socket))
            self.identities[socket] = self.identities[other]

    # --- the bench

    @asynccontextmanager
    async def means(self, goal: Goal, ca: Path, edge: Edge) -> AsyncIterator[Station]:
        async with self.station.means(edge) as usual:
            client = usual.registrar.inner.client  # type: ignore[union-attr]
            registrar: Any = Instrumented(Registrar(client, goal.registration), edge)
            authority = DeviceCa.load(ca / "ca.pem", ca / "ca.key", lambda: "")
            yield replace(usual, goal=goal, registrar=registrar, device_ca=authority)

    @asynccontextmanager
    async def open(self, place: BoardLocation, edge: Edge) -> AsyncIterator[Any]:
        socket = int(place.port)
        imei, uuid = self.identities[socket]
        path = str(self.flash(socket))
        modem = Modem(VirtualTransport(statefile=path, imei=imei, uuid=uuid, instant=True))
        await modem.open()
        try:
            yield Instrumented(ModemBoard(modem), edge)
        finally:
            await modem.close()

    async def provision(
        self, sockets: list[int], goal: Goal, ca: Path, edge: Edge = lambda: None
    ) -> list[Outcome]:
        places = [BoardLocation("", f"1-{one}", "", str(one)) for one in sockets]
        async with self.means(goal, ca, edge) as station:
            ended = run_boards(
                places, station, lambda place: self.open(place, edge), lambda *_: None
            )
            return [outcome async for outcome in ended]

    def run(self, sockets: list[int], goal: Goal, ca: Path, kill_at: int) -> list[Outcome]:
        """Run the bench, killed at an edge if not 0, and judge what became of the keys at work."""
        before = self.at_work()
        outcomes: list[Outcome] = []
        told = bool(goal.replace or goal.rekey or goal.second_tag or goal.take_over)
        killed = False
        if kill_at:
            child = forked(lambda: self.provision(sockets, goal, ca, KillAt(kill_at)))
            killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        else:
            outcomes = asyncio.run(self.provision(sockets, goal, ca))
        self.accepted.clear()
        self.log.append(f"{sockets} {words(goal)} {'killed' if killed else ''}"
                        f"{[(one.outcome, one.reason[:60]) for one in outcomes]}")  # fmt: skip
        died = before - self.at_work()
        allowed = Allowed(goal, frozenset(one.uuid for one in outcomes if one.ok))
        if killed:
            self.allowed.append(
                Allowed(goal, frozenset(self.identities[one][1] for one in sockets))
            )
        self.given_up |= {key for key in before if allowed.death_of(key)}
        for key in died - self.given_up:
            if not any(one.death_of(key) for one in self.allowed):
                self._wrong(f"the key of {key.device_id} died without a word")
        if died and told and outcomes and not self._recorded():
            self._wrong("a key died, and no record says why")
        for one in outcomes:
            if "a defect of this program" in one.reason:
                self._wrong(one.reason)
            if one.exit and not one.hint:
                self._wrong(f"no way out of: {one.reason}")
            pem = self.keys_in(int(one.location.port)).get(goal.security_tag, "")
            registered = goal.registration.gives_key and one.ok
            if registered and not (pem and self.accepts(pem, one.device_id)):
                self._wrong(f"{one.outcome}, and the key of {one.device_id} is not accepted")
        if not kill_at:
            self._judge_claims()
        return outcomes

    def _recorded(self) -> bool:
        ledger = open_ledger(self.station.address, "judge", writes=False)
        try:
            boards = boards_of(ledger)
            return any(run.consent for one in boards for run in ledger.runs(one.uuid))
        finally:
            ledger.close()

    def _judge_claims(self) -> None:
        """Check that the ledger knows which key works as which device, as the service does."""
        if any("killed" in line for line in self.log):
            return  # what was under way is settled by the rerun of that very board
        ledger = open_ledger(self.station.address, "judge", writes=False)
        try:
            keys = {key.id: key for board in boards_of(ledger) for key in ledger.keys(board.uuid)}
            claimed = {name: registrations_of(ledger, name) for name in self.device_ids}
        finally:
            ledger.close()
        pems = {public_half(pem): pem for pem in self.pems}
        for device_id, registrations in claimed.items():
            known = {pems.get(keys[one.key].public_key.strip()): one for one in registrations}
            for pem, one in known.items():
                given = RegistrationMethod(one.method).gives_key
                if given and pem and not self.accepts(pem, device_id):
                    self._wrong(f"the ledger calls a dead key of {device_id} live")
            # A method that gives no key takes an id over without a word to the service.
            if {one.method for one in registrations} & {"none", "claim"}:
                continue
            for pem in self.pems - known.keys():
                if self.accepts(pem, device_id) and AtWork(pem, device_id) not in self.given_up:
                    self._wrong(f"the ledger calls a live key of {device_id} dead")

    def _wrong(self, what: str) -> None:
        self.wrongs.append(f"{what}: {' | '.join(self.log)}")


def second_thoughts(
    station: StationFolder,
    seed: int,
    rounds: int,
    new_ledger: Callable[[str], str] = lambda _name: "",
) -> list[str]:
    """Return what was wrong in so many rounds, several at once: much of one is waits.

    `new_ledger` returns the address of an empty ledger of that name; "" is a file of the round's.
    """
    for name in CAS:
        (station.folder / name).mkdir(exist_ok=True)
        make_ca(station.folder / name)
    wrongs: list[str] = []
    with ProcessPoolExecutor(_AT_ONCE, multiprocessing.get_context("spawn")) as processes:
        begun = [
            processes.submit(
                one_round, replace(station, ledger=new_ledger(f"round{number}")), seed, number
            )
            for number in range(rounds)
        ]
        for ended in counted("rounds of second thoughts", begun):
            wrongs += ended.result()
    return wrongs


def one_round(station: StationFolder, seed: int, number: int) -> list[str]:
    """Return what was wrong in this round: alone, it goes as it did among the others."""
    logging.disable(logging.ERROR)
    folder = station.folder / f"round{number}"
    cas = [station.folder / name for name in CAS]
    shutil.copytree(cas[0], folder)
    with httpx.Client(trust_env=False, verify=False) as client:
        bench = Bench(replace(station, folder=folder), client, {})
        for socket in SOCKETS:
            imei = f"{3_000_000 + number * 10 + socket:014}"
            bench.fresh(socket, imei, device_uuid(full(imei)))
        play(bench, cas, random.Random(f"{seed} {number}"))
    shutil.rmtree(folder)
    return bench.wrongs


def play(bench: Bench, cas: list[Path], dice: random.Random) -> None:
    """Play one round."""
    usual = replace(GOAL, id_prefix=dice.choice(["", "nrf-"]))
    kills = dice.random() < 0.5
    bench.run(list(SOCKETS), usual, cas[0], 0)
    for _ in range(_RUNS):
        struck = happen(bench, dice)
        sockets = dice.sample(SOCKETS, dice.choice([1, 2, 3]))
        goal, ca = changed(usual, dice), dice.choices(cas, [4, 1])[0]
        if struck is not None and dice.random() < 0.5:
            sockets = [struck]  # alone, so that no double is seen beside it
            goal = dice.choice([usual, goal])
        kill_at = dice.randrange(1, _EDGES) if kills and dice.random() < 0.4 else 0
        outcomes = bench.run(sockets, goal, ca, kill_at)
        for one in outcomes:
            if one.outcome == "refused" and dice.random() < 0.4:
                paste(bench, one, goal, ca)


def happen(bench: Bench, dice: random.Random) -> int | None:
    """Let something happen to a board, or nothing; return its socket."""
    socket, other = dice.sample(SOCKETS, 2)
    event = dice.choice(["", "", "erased", "clone", "twin", "same uuid", "fresh"])
    imei, uuid = bench.identities[other]
    if event == "erased":
        bench.erase(socket)
    elif event == "clone":
        bench.clone(socket, other)
    elif event == "twin":  # an IMEI that was written twice
        bench.fresh(socket, imei, new_uuid(dice))
    elif event == "same uuid":
        bench.fresh(socket, imei, uuid)
    elif event == "fresh":
        imei = f"{dice.randrange(10**13):014}"
        bench.fresh(socket, imei, device_uuid(full(imei)))
    bench.log.append(f"{event} {socket} {other}")
    return socket if event else None


def changed(usual: Goal, dice: random.Random) -> Goal:
    """Return the usual goal with a second thought or two."""
    goal = usual
    if dice.random() < 0.35:
        goal = replace(goal, security_tag=SECOND_TAG)
    if dice.random() < 0.25:
        goal = replace(goal, id_prefix=dice.choice(["", "nrf-"]))
    if dice.random() < 0.3:
        method = dice.choice(_METHODS)
        goal = replace(goal, registration=method, prove=method.gives_key and dice.random() < 0.7)
    if dice.random() < 0.2:
        goal = replace(goal, certificate=CertificateSource.NONE)
    if dice.random() < 0.2:
        goal = replace(goal, rekey=dice.random() < 0.5, second_tag=dice.random() < 0.5)
    return goal


def paste(bench: Bench, refused: Outcome, goal: Goal, ca: Path) -> None:
    """Run a refused board alone with what its hint says."""
    options = refused.hint.partition(" allows it")[0].replace("`", " ")
    told = goal
    for tag, kind, rekey, second_tag, device_id in _OPTION.findall(options):
        if tag:
            told = replace(told, replace=told.replace | {(int(tag), int(kind))})
        if device_id:
            told = replace(told, take_over=told.take_over | set(shlex.split(device_id)))
        told = replace(
            told, rekey=told.rekey or bool(rekey), second_tag=told.second_tag or bool(second_tag)
        )
    if told == goal:
        return
    [again] = bench.run([int(refused.location.port)], told, ca, 0)
    if again.outcome == "refused":
        bench.wrongs.append(f"refused with what its hint says: {again.reason}; {again.hint}")


def words(goal: Goal) -> str:
    """Return a goal's second thoughts."""
    told = [name for name in ("rekey", "second_tag", "take_over", "replace") if getattr(goal, name)]
    return f"{goal.security_tag} {goal.id_prefix}{goal.registration.value} {told}"


def full(imei: str) -> str:
    """Return an IMEI with its check digit."""
    from at.virtual.options import check_digit

    return imei + check_digit(imei)


def new_uuid(dice: random.Random) -> str:
    import uuid

    return str(uuid.UUID(int=dice.getrandbits(128), version=4))


def public_half(pem: str) -> str:
    """Return the public half of a private key, both PEM."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(pem.encode(), None)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode().strip()
