"""A model of the service beside the ledger: which key works as which device, and who let it die."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent.auth.credential import Keyring
from agent.cloud.device import Device
from agent.errors import Unauthorized, Unreachable
from agent.http import HttpClient, HttpTransport
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.boards.modem_board import ModemBoard
from agent.provisioning.ledger import Ledger, open_ledger
from agent.provisioning.planning.goal import Goal, RegistrationMethod
from agent.provisioning.running.async_ledger import AsyncLedger
from agent.provisioning.running.batch import run_board
from agent.provisioning.running.board_run import Station
from agent.provisioning.running.steps.registrar import KeyAnswer, Registrar
from at.driver.modem import Modem
from at.tokens.jwt import read_jwt, verify
from at.tokens.key_formats import key_pem
from at.virtual import signing
from at.virtual.transport import VirtualTransport
from tests.support.provisioning.ledgers import registrations_of

if TYPE_CHECKING:
    from agent.auth.modem_jwt import AskModem
    from agent.http.client import KitGate
    from agent.provisioning.running.outcome import Outcome

IMEI = "004401000000012"
UUIDS = ["50503041-3633-4261-803d-1e2b8f70111a", "50503041-3633-4261-803d-1e2b8f70222b"]
TAGS = (10, 101)
DEVICE_IDS = [*UUIDS, f"nrf-{IMEI}"]
IDENTITY_KEY = -1
"""Where a device identity key is: in no tag."""
Made = tuple[int, int]


@dataclass
class Service:
    """The service: it keeps one key, by its public half, for each device."""

    keys: dict[str, str] = field(default_factory=dict)
    loses_answer: bool = False


class ModelRegistrar(Registrar):
    """Registers at the model."""

    service: Service

    async def submit(self, device_id: str, pem: str, attestation: str) -> str:
        if self.method.gives_key:
            self.service.keys[device_id] = pem.strip()
        if self.service.loses_answer:
            raise Unreachable("the answer was lost")
        return ""

    async def service_time(self) -> datetime | None:
        return datetime.now(UTC)

    async def ask_for_key(self, device_id: str, token: str, kit_gate: KitGate) -> KeyAnswer:
        known = self.service.keys.get(device_id, "")
        if known:
            key = serialization.load_pem_public_key(known.encode())
            assert isinstance(key, EllipticCurvePublicKey)
            if verify(read_jwt(token), key):
                return KeyAnswer(200, None)
        return KeyAnswer(401, None)

    async def prove(self, device_id: str, ask: AskModem, kit_gate: KitGate) -> Device | None:
        token = await ask(device_id, 60)
        if (await self.ask_for_key(device_id, token.token, kit_gate)).is_refusal:
            raise Unauthorized("it is another key's, or none is known")
        return Device.of({"id": device_id}, None)


class Bench:
    """Two boards into which one IMEI was written, a ledger, and the service."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service = Service()
        self.made: dict[str, Made] = {}
        """Which board made a key, and in which tag."""
        self.digests: dict[str, str] = {}
        self.given_up: set[str] = set()
        self.taken: set[tuple[str, str]] = set()
        self.parted = False
        """Whether two ledgers have each runs of their own: neither knows all."""

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    @property
    def other(self) -> Path:
        return self.folder / "other.sqlite"

    def flash(self, board: int, name: str = "json") -> Path:
        return self.folder / f"board{board}.{name}"

    @asynccontextmanager
    async def open(self, place: BoardLocation) -> AsyncIterator[ModemBoard]:
        board = int(place.port)
        self.transport = VirtualTransport(
            statefile=str(self.flash(board)), imei=IMEI, uuid=UUIDS[board], instant=True
        )
        modem = Modem(self.transport)
        await modem.open()
        try:
            yield ModemBoard(modem)
        finally:
            await modem.close()

    async def run(self, board: int, goal: Goal, *, loses_answer: bool = False) -> Outcome:
        ledger = AsyncLedger(lambda: open_ledger(str(self.ledger), "one"))
        self.service.loses_answer = loses_answer
        listed = self.listed(board)
        before = dict(self.service.keys)
        try:
            async with HttpClient(HttpTransport(), {}, Keyring([])) as client:
                registrar = ModelRegistrar(client, goal.registration)
                object.__setattr__(registrar, "service", self.service)
                station = Station(goal, ledger, registrar, None, self.folder / "keys")
                place = BoardLocation("", "", "", str(board))
                outcome = await run_board(place, station, self.open, lambda *_: None)
            self._learn(await ledger.opened())
        finally:
            ledger.close()
        self._judge(board, goal, outcome, before, listed)
        return outcome

    def _learn(self, ledger: Ledger) -> None:
        for board, uuid in enumerate(UUIDS):
            for key in ledger.keys(uuid):
                self.made[key.public_key.strip()] = board, key.security_tag or 0
                self.digests[key.public_key.strip()] = key.key_digest.upper()

    def _judge(
        self, board: int, goal: Goal, outcome: Outcome, before: dict[str, str], listed: set[str]
    ) -> None:
        tag = goal.security_tag
        if goal.rekey or goal.replace:
            held = {key for key, place in self.made.items() if place == (board, tag)}
            self.given_up |= held - ({outcome_key(self, board, tag)} & held)
        if outcome.ok:
            self.taken |= {(key, name) for name, key in before.items() if name in goal.take_over}
        for name, key in before.items():
            if self.service.keys[name] == key or key in self.given_up:
                continue
            if (key, name) in self.taken:  # a claim took it over, of which the service made no key
                continue
            whose, where = self.made[key]
            if where == IDENTITY_KEY:
                told = whose != board or not goal.prove  # in another modem; or the run warns of it
            else:  # of one that is in no modem's list nobody can tell
                told = self.parted and self.digests[key] not in listed
            if told:
                continue
            allowed = name in goal.take_over if whose != board else goal.second_tag
            assert allowed, f"the key of {name} (board {whose}, tag {where}) died without a word"
        self._judge_ledger()

    def _judge_ledger(self) -> None:
        if self.parted:
            return
        ledger = open_ledger(str(self.ledger), "judge", writes=False)
        keys = {key.id: key for uuid in UUIDS for key in ledger.keys(uuid)}
        for name in DEVICE_IDS:
            known = registrations_of(ledger, name)
            as_device = {keys[one.key].public_key.strip(): one for one in known}
            at_work = self.service.keys.get(name)
            if at_work is not None and (at_work, name) not in self.taken:
                assert at_work in as_device, f"the ledger does not know the key of {name}"
                retired = keys[as_device[at_work].key].retired_at
                assert retired is None or at_work in self.given_up
            if all(one.finished for one in known):
                given = [
                    key for key, one in as_device.items()
                    if RegistrationMethod(one.method).gives_key
                ]  # fmt: skip
                assert given in ([], [at_work]), f"the ledger calls a dead key of {name} live"
        ledger.close()

    def listed(self, board: int) -> set[str]:
        """Return the digests of the credentials that a board's modem lists."""
        if not self.flash(board).exists():
            return set()
        held = json.loads(self.flash(board).read_text())["credentials"].values()
        return {each["sha256"].upper() for each in held}

    # --- what happens to the ledger

    def copy(self, _board: int) -> None:
        """Keep a copy of the ledger."""
        if self.ledger.exists():
            shutil.copy(self.ledger, self.other)

    def swap(self, _board: int) -> None:
        """Go on with the copy, or with what a copy took the place of; with none, with a new one."""
        if not self.ledger.exists():
            return
        self.parted = True
        aside = self.ledger.rename(self.folder / "aside.sqlite")
        if self.other.exists():
            self.other.rename(self.ledger)
        aside.rename(self.other)

    # --- what happens to a board

    def identify(self, board: int) -> None:
        """Have the service know a board by its device identity key, as no ledger does."""
        asyncio.run(self._identify(board))

    async def _identify(self, board: int) -> None:
        async with self.open(BoardLocation("", "", "", str(board))):
            key = key_pem(signing.identity_key(self.transport.modem.kit).public_key()).strip()
        self.parted = True
        self.made[key] = board, IDENTITY_KEY
        self.service.keys[UUIDS[board]] = key

    def erase(self, board: int) -> None:
        if self.flash(board).exists():
            state = json.loads(self.flash(board).read_text())
            self.flash(board).write_text(json.dumps({**state, "credentials": {}}))

    def keep(self, board: int) -> None:
        """Keep a copy of the flash: a clone, or what a workshop puts back."""
        if self.flash(board).exists():
            shutil.copy(self.flash(board), self.flash(board, "kept"))

    def put_back(self, board: int) -> None:
        if self.flash(board, "kept").exists():
            shutil.copy(self.flash(board, "kept"), self.flash(board))


def outcome_key(bench: Bench, board: int, tag: int) -> str:
    """Return the public half of the ledger's live key of a board's tag."""
    ledger = open_ledger(str(bench.ledger), "judge", writes=False)
    found = ledger.board(UUIDS[board], tag)
    ledger.close()
    return found.public_key.strip() if found is not None else ""


def goal_of(
    tag: int, prefix: str, method: RegistrationMethod, allowed: frozenset[str], *, prove: bool
) -> Goal:
    return Goal(
        tag,
        id_prefix=prefix,
        registration=method,
        prove=prove and method is not RegistrationMethod.CLAIM,
        set_clock=True,
        rekey="rekey" in allowed,
        second_tag="second-tag" in allowed,
        replace=frozenset({(tag, 2)}) if "replace" in allowed else frozenset(),
        take_over=frozenset(DEVICE_IDS) if "take-over" in allowed else frozenset(),
    )


ONBOARD = RegistrationMethod.ONBOARD
NOTHING: frozenset[str] = frozenset()
# An attestation token brings a board into a project, and tells no key.
OF_A_TEAM = [each for each in RegistrationMethod if each is not RegistrationMethod.ATTESTATION]
OPTIONS = ["rekey", "second-tag", "replace", "take-over"]
ALLOWED = st.one_of(st.just(NOTHING), st.frozensets(st.sampled_from(OPTIONS)))
GOALS = st.builds(
    goal_of,
    st.sampled_from(TAGS),
    st.sampled_from(["", "nrf-"]),
    st.one_of(st.just(ONBOARD), st.sampled_from(OF_A_TEAM)),
    ALLOWED,
    prove=st.booleans(),
)
BOARDS = st.sampled_from([0, 1])
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), BOARDS, GOALS),
        st.tuples(st.just("run"), BOARDS, GOALS),
        st.tuples(st.just("run and lose the answer"), BOARDS, GOALS),
        st.tuples(st.sampled_from(["erase", "keep", "put back", "identify"]), BOARDS, st.none()),
        st.tuples(st.sampled_from(["copy", "swap"]), st.just(0), st.none()),
    ),
    min_size=3,
    max_size=10,
)
BY_UUID = goal_of(10, "", ONBOARD, NOTHING, prove=True)
BY_IMEI = replace(BY_UUID, id_prefix="nrf-")
TAKING = replace(BY_IMEI, take_over=frozenset(DEVICE_IDS))
EVERYTHING = frozenset(OPTIONS)
LOST_BETWEEN = [
    ("run", 1, goal_of(101, "nrf-", ONBOARD, NOTHING, prove=False)),
    ("run and lose the answer", 0, replace(TAKING, prove=False)),
    ("run", 1, goal_of(10, "nrf-", RegistrationMethod.CLAIM, EVERYTHING, prove=False)),
]
SETTLED_BY_A_CLAIM = [
    ("run", 0, BY_IMEI),
    ("run and lose the answer", 0, goal_of(101, "nrf-", ONBOARD, EVERYTHING, prove=False)),
    ("run", 0, goal_of(101, "nrf-", RegistrationMethod.CLAIM, NOTHING, prove=False)),
]
LOST_BEHIND_A_CLAIM = [
    ("run", 1, goal_of(101, "nrf-", ONBOARD, NOTHING, prove=False)),
    ("run", 1, goal_of(10, "nrf-", RegistrationMethod.CLAIM, EVERYTHING, prove=False)),
    ("run and lose the answer", 1, goal_of(10, "nrf-", ONBOARD, EVERYTHING, prove=False)),
]
LOST_BEFORE_IT_IS_KEPT = [
    ("run", 0, BY_IMEI),
    ("run and lose the answer", 1, TAKING),
    ("run", 0, replace(TAKING, registration=RegistrationMethod.NONE, prove=False)),
]
AS_BOTH = [("run", 0, BY_UUID), ("run", 0, BY_IMEI), ("run", 1, TAKING)]
SECOND = goal_of(101, "", ONBOARD, frozenset({"second-tag"}), prove=True)
# A run with another ledger gave the service the key of another tag.
WITH_THE_COPY = [*(("run", 0, BY_UUID), ("copy", 0, None), ("run", 0, SECOND), ("swap", 0, None))]


@pytest.mark.contract("D2.2")
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(EVENTS)
@example([*AS_BOTH, ("run", 0, replace(BY_UUID, security_tag=101))])
@example([*AS_BOTH, ("erase", 0, None), ("run", 0, BY_UUID)])
@example(LOST_BETWEEN)
@example(SETTLED_BY_A_CLAIM)
@example(LOST_BEHIND_A_CLAIM)
@example(LOST_BEFORE_IT_IS_KEPT)
@example([*WITH_THE_COPY, ("run", 0, BY_UUID)])
@example([*WITH_THE_COPY, ("run", 0, replace(BY_UUID, prove=False))])
@example([("identify", 0, None), ("run", 0, BY_UUID)])
@example([("run", 0, BY_UUID), ("identify", 0, None), ("run", 0, BY_UUID)])
@example([("run", 0, BY_UUID), ("swap", 0, None), ("run", 0, replace(BY_UUID, security_tag=101))])
def test_a_key_that_works_is_live_in_the_ledger_and_none_dies_without_its_option(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, int, Goal | None]]
) -> None:
    bench = Bench(tmp_path_factory.mktemp("bench"))
    for what, board, goal in events:
        if goal is not None:
            asyncio.run(bench.run(board, goal, loses_answer="lose" in what))
        else:
            getattr(bench, what.replace(" ", "_"))(board)
