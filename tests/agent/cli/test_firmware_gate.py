"""The firmware gate over every command and every way to the device cloud, as a table.

A kit whose firmware is too old, with an id and a companion in the profile; a stand-in that keeps
what it is sent; each command in a process of its own.
"""

from __future__ import annotations

import ast
import base64
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.call import Call, Host
from agent.cli.tree import Entry, LazyGroup, root
from agent.config import write as configuration
from agent.location.access_points import access_points_to_json
from agent.location.wifi.companion import WifiCompanion
from agent.standin.core.dispatch import Dispatcher
from agent.standin.device_cloud.devices.registry import registry
from agent.standin.device_cloud.seed import ip_device
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import ROOT, Done, cellagent
from tests.support.commands.command_tree import command_of, leaves
from tests.support.commands.running_agent import agent_on, write_profile
from tests.support.location.located_kit import LAT, LON
from tests.support.location.moving_kit import MovingKit, moving_kit

pytestmark = pytest.mark.contract("D1.3")

OLD = "mfw_nrf9160_1.2.7"
DEVICE = "bench-kit-1"


class Rule(Enum):
    """What the device cloud may get from a command, where the kit's firmware is too old."""

    KIT = "nothing: the command is refused"
    USER = "a user's own call"
    JOB = "the kit's job, with the API key, to refuse it (D1.4)"
    NOTHING = "nothing: the command makes no call"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the device cloud: one credential, and the form of the location path."""

    secret: str = ""
    legacy: bool = True
    keys: str = ""
    """"host": a device's key that this host holds; "service": keys for services."""


WAYS: Mapping[str, Way] = {
    "organization token": Way("organization_token", legacy=False),
    "service token": Way("service_token"),
    "evaluation token": Way("evaluation_token"),
    "service key": Way(keys="service"),
    "host-held key": Way(keys="host"),
    "modem": Way(),
    "API key": Way("api_key"),
}
LOCATION = ["organization token", "service token", "evaluation token", "service key",
            "host-held key", "modem"]  # fmt: skip
ANONYMOUS = LOCATION[:4]
OWN_TOKEN = ["host-held key"]

# The command, the ways by which it is tried, what may be sent.
TABLE: list[tuple[str, list[str], Rule]] = [
    ("locate", LOCATION, Rule.KIT),
    ("locate --with wifi", LOCATION, Rule.KIT),
    ("locate --with cell", LOCATION, Rule.KIT),
    ("locate --with ground-fix", LOCATION, Rule.KIT),
    ("assist agnss --filtered", LOCATION[:5], Rule.KIT),
    ("assist agnss", OWN_TOKEN, Rule.KIT),
    ("assist agnss", ANONYMOUS, Rule.KIT),
    ("assist pgps", OWN_TOKEN, Rule.KIT),
    ("assist pgps", ANONYMOUS, Rule.USER),
    ("assist decode agnss.bin", ["modem"], Rule.NOTHING),
    ("fota check", ["service key", "host-held key", "modem"], Rule.KIT),
    ("fota pull", ["service key", "host-held key", "modem"], Rule.KIT),
    ("fota pull --dry-run", ["modem"], Rule.KIT),
    ("fota check", ["API key"], Rule.JOB),
    ("fota pull", ["API key"], Rule.JOB),
    ("fota abandon --yes", ["API key", "modem"], Rule.NOTHING),
    ("fota status", ["modem"], Rule.NOTHING),
    (f"fota offer public.pem --version 1 --device {DEVICE}", ["API key"], Rule.USER),
    (f"device show {DEVICE}", OWN_TOKEN, Rule.KIT),
    (f"device show {DEVICE}", ["API key"], Rule.USER),
    (f"device show {DEVICE} --transform id", OWN_TOKEN, Rule.KIT),
    (f"device wait {DEVICE} --deadline 0", OWN_TOKEN, Rule.KIT),
    (f"device wait {DEVICE} --deadline 0", ["API key"], Rule.USER),
    (f"device write {DEVICE} 1525 0a", OWN_TOKEN, Rule.KIT),
    (f"device write {DEVICE} 1525 0a", ["API key"], Rule.USER),
    (f"device state {DEVICE} --reported {{}}", OWN_TOKEN, Rule.KIT),
    (f"device state {DEVICE} --reported {{}}", ["API key"], Rule.KIT),
    (f"device state {DEVICE} --desired {{}}", OWN_TOKEN, Rule.KIT),
    (f"device state {DEVICE} --desired {{}}", ["API key"], Rule.USER),
    (f"device message {DEVICE} {{}}", OWN_TOKEN, Rule.KIT),
    (f"device message {DEVICE} {{}}", ["API key"], Rule.KIT),
    (f"device read {DEVICE} 1525", ["API key"], Rule.USER),
    (f"device delete {DEVICE} --yes", ["API key"], Rule.USER),
    (f"device onboard {DEVICE} public.pem --no-wait", ["API key"], Rule.USER),
    ("device bulk-request 01HZ", ["API key"], Rule.USER),
    ("device service-token", ["API key"], Rule.USER),
    ("device openapi", ["API key"], Rule.USER),
    ("device list --per-page 2", ["API key"], Rule.USER),
    ("device list", ["API key"], Rule.USER),
    (f"device rename {DEVICE} north", ["API key"], Rule.USER),
    (f"device tag {DEVICE} north", ["API key"], Rule.USER),
    (f"device discover {DEVICE} DE:AD:BE:EF:00:01 --no-wait", ["API key"], Rule.USER),
    (f"device register-key {DEVICE} public.pem --no-wait", ["API key"], Rule.USER),
    ("device messages", ["API key"], Rule.USER),
    ("device scheme GET /v1/devices", ["API key"], Rule.USER),
    ("device account", ["API key"], Rule.USER),
    ("modem jwt", ["modem"], Rule.KIT),
    ("provision run --registration onboard", ["API key"], Rule.KIT),
    ("provision plan --registration onboard", ["API key"], Rule.NOTHING),
    ("provision status", ["API key"], Rule.NOTHING),
    ("provision report", ["API key"], Rule.NOTHING),
    ("provision migrate", ["API key"], Rule.NOTHING),
    ("provision export --as csv", ["API key"], Rule.NOTHING),
    ("scan cells", ["modem"], Rule.NOTHING),
    ("scan wifi", ["modem"], Rule.NOTHING),
]
# Their own tests below, and `tests/agent/demo`, which has a kit of its own. `page` opens the ledger
# by the room that has the calls, and `tests/agent/page` sees all that it serves.
ELSEWHERE = {"run", "demo", "login", "doctor", "page"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that the stand-in's device cloud got."""

    method: str
    path: str
    headers: Mapping[str, str]


@dataclass
class Bench:
    """A profile for a kit with an id and a companion, on the stand-in that keeps its requests."""

    standin: StandIn
    folder: Path
    asked: list[Asked] = field(default_factory=list)

    def use(self, way: Way, **kit: str) -> None:
        """Write the profile of a way."""
        values: dict[str, Any] = {
            "hosts": {name: url for name, url in self.standin.urls.items() if name != "downloads"},
            "account": {
                "organization": self.standin.organization,
                "project": self.standin.project,
                "team_id": self.standin.team_id,
            },
            "location": {"legacy": way.legacy, "wifi": "auto"},
            "kit": {"device_id": DEVICE, **kit},
            "provisioning": {"ledger": str(self.folder / "ledger.sqlite")},
        }
        if way.keys == "host":
            values["kit"]["device_key_file"] = str(self.folder / "device.pem")
        if way.keys == "service":
            key = str(Path(self.standin.credentials["service_key_file"]))
            values["credentials"] = {"service_key_files": {"all": key}}
        secrets = {way.secret: self.secret_of(way)} if way.secret else {}
        configuration.write_profile("sim", values, secrets)
        configuration.set_default_profile("sim")

    def secret_of(self, way: Way) -> str:
        """Return the secret of a way, as the stand-in takes it."""
        name = "organization_auth_token" if "organization" in way.secret else way.secret
        return self.standin.credentials[name]

    async def use_scan_of_host(self, kit: MovingKit) -> None:
        """Have this host hear what is heard where the kit is, without the kit."""
        points = (await WifiCompanion(str(kit.companion)).scan(10.0)).points
        scan = self.folder / "scan.json"
        scan.write_text(json.dumps(access_points_to_json(points)))
        configuration.set_value("location.wifi", f"file:{scan}", profile="sim")

    async def run(self, words: str, port: str = "", **environment: str) -> Done:
        """Run a command on a port, and keep only what it is that it sent."""
        self.asked.clear()
        named = {"CELLAGENT_PORT": port} if port else {}
        return await cellagent(*words.split(), "--json", environment={**named, **environment})


@pytest.fixture
def bench(standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    made = Bench(standin, tmp_path)
    registry(standin.cloud).create(standin.team_id, ip_device(DEVICE, "Generic"))
    answer = Dispatcher.__call__

    async def keep(self: Dispatcher, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].startswith("/v1/"):
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            made.asked.append(Asked(scope["method"], scope["path"], headers))
        await answer(self, scope, receive, send)

    monkeypatch.setattr(Dispatcher, "__call__", keep)
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "device.pem").touch(0o600)
    (tmp_path / "device.pem").write_bytes(private)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (tmp_path / "public.pem").write_bytes(public)
    return made


ROWS = [(words, way, rule) for words, ways, rule in TABLE for way in ways]


@pytest.mark.parametrize(("words", "way", "rule"), ROWS, ids=str)
async def test_of_an_old_kit_the_device_cloud_gets_what_the_table_says(
    bench: Bench, words: str, way: str, rule: Rule
) -> None:
    bench.use(WAYS[way], companion_port=str(bench.folder / "companion"))
    async with moving_kit(bench.folder, firmware=OLD, model="nrf9160") as kit:
        done = await bench.run(words, str(kit.port))
    if rule is Rule.KIT:
        assert done.code == 4, done.out + done.err
        assert "1.2.7" in done.out
        assert not bench.asked
    elif rule is Rule.NOTHING:
        assert not bench.asked
    elif rule is Rule.JOB:
        assert done.code == 0, done.err
        (asked,) = bench.asked
        assert asked.path == f"/v1/fota-job-executions/{DEVICE}/current"
        assert asked.headers["authorization"] == bench.standin.bearer("api_key")["Authorization"]
    else:
        assert done.code != 4, done.out + done.err
        assert bench.asked, done.out + done.err
        assert not any("x-custom-device-id" in asked.headers for asked in bench.asked)


# Each command by one way, and each way by one command.
SPOKEN_FOR = [
    (words, ways[0]) for words, ways, rule in TABLE if rule is Rule.KIT and words[0] not in "mp"
] + [("locate --with wifi", way) for way in LOCATION[1:]]


@pytest.mark.parametrize(("words", "way"), SPOKEN_FOR)
async def test_a_kit_that_may_speak_is_spoken_for_by_the_same_words(
    bench: Bench, words: str, way: str
) -> None:
    """Else the table above would prove nothing."""
    bench.use(WAYS[way], companion_port=str(bench.folder / "companion"))
    async with moving_kit(bench.folder) as kit:
        assert (await bench.run("modem at AT+CFUN=1", str(kit.port))).code == 0
        done = await bench.run(words, str(kit.port))
    assert done.code != 4, done.out + done.err
    assert bench.asked, done.out + done.err
    if words.startswith("locate"):
        assert bench.asked[0].headers["x-custom-device-id"] == DEVICE
    if WAYS[way].secret:  # the way that is meant, though a modem is attached
        sent = bench.asked[0].headers["authorization"]
        assert sent == f"Bearer {bench.secret_of(WAYS[way])}"


# --- the table names every command


@cache
def _imports(path: Path) -> list[str]:
    """Return the absolute names that a module imports when it runs, not for its types alone."""
    found: list[str] = []
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        todo += ast.iter_child_nodes(node)
    return found


@cache
def _file(name: str) -> Path | None:
    path = ROOT.joinpath(*name.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.exists():
            return candidate
    return None


def _reached(module: str) -> set[str]:
    """Return the modules of the agent that a module brings with it, at any depth."""
    reached: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if not name.startswith("agent."):
            continue
        if name == "agent.cli.framework.session.device_cloud_command":
            todo.append("agent.cloud.client")
        file = _file(name) or _file(name := name.rpartition(".")[0])
        # Every command has the session, which brings the client of the device cloud by that name.
        if file is None or name in reached or name == "agent.cli.framework.session":
            continue
        reached.add(name)
        todo += _imports(file)
    return reached


def _modules_with_calls_of_the_device_cloud() -> set[str]:
    def kinds(base: type) -> Iterator[type]:
        for kind in base.__subclasses__():
            yield kind
            yield from kinds(kind)

    for module in {name for entry in _commands().values() for name in _reached(entry)}:
        __import__(module)
    own = {Host.DEVICE_CLOUD, Host.PROVISIONING}
    return {
        kind.__module__
        for kind in kinds(Call)
        if kind.request is not Call.request
        and (Host.DEVICE_CLOUD if kind.host is Call.host else kind.host) in own
        and not kind.__module__.startswith(("agent.observability", "test"))
    }


def _commands(table: Mapping[str, Any] = root.table, above: str = "") -> dict[str, str]:
    """Return the module of each command and group that the tree names."""
    found: dict[str, str] = {}
    for name, entry in table.items():
        if isinstance(entry, LazyGroup):
            found |= _commands(entry.table, f"{above}{name} ")
        else:
            assert isinstance(entry, Entry)
            found[above + name] = f"agent.cli.{entry.module}".partition(":")[0]
    return found


def test_the_table_names_every_command_that_can_call_the_device_cloud() -> None:
    calling = _modules_with_calls_of_the_device_cloud()
    assert {"agent.cloud.fota_jobs", "agent.location.calls", "agent.cloud.firmware"} <= calling
    able = {
        leaf
        for name, module in _commands().items()
        if _reached(module) & calling
        for leaf in leaves(command_of(name), tuple(name.split()))
    }
    assert {"locate", "fota pull", "device show", "run"} <= able
    named = {
        leaf for leaf in able if any(f"{words} ".startswith(f"{leaf} ") for words, _, _ in TABLE)
    }
    assert able - named - ELSEWHERE == set()


# --- no kit to ask


@pytest.mark.parametrize(
    ("way", "port"),
    [(way, "") for way in ANONYMOUS]
    + [(ANONYMOUS[0], "nowhere"), (ANONYMOUS[0], "tcp://127.0.0.1:1")],
)
async def test_with_no_kit_to_ask_a_wifi_position_carries_nothing_of_one(
    bench: Bench, way: str, port: str
) -> None:
    async with moving_kit(bench.folder) as kit:  # whose companion would answer
        kit.go_to(LAT, LON)
        bench.use(WAYS[way], companion_port=str(kit.companion))
        await bench.use_scan_of_host(kit)
        done = await bench.run("locate --with wifi", port)
        assert done.code == 0, done.out + done.err
        assert "no device is named" in done.err
        (asked,) = bench.asked
        assert "x-custom-device-id" not in asked.headers
        parts = asked.headers["authorization"].removeprefix("Bearer ").split(".")
        if len(parts) == 3:
            claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
            assert "sub" not in claims
        configuration.set_value("location.wifi", "companion", profile="sim")
        done = await bench.run("locate --with wifi", port)
        assert done.code == 1, done.out + done.err
        assert "--port" in done.lines[-1]["error"]["try"]
        assert not bench.asked


@pytest.mark.parametrize("words", ["locate --with wifi", "assist pgps", f"device show {DEVICE}"])
async def test_with_no_kit_to_ask_no_token_of_one_is_made(bench: Bench, words: str) -> None:
    bench.use(WAYS["host-held key"])
    async with moving_kit(bench.folder) as kit:
        await bench.use_scan_of_host(kit)
    done = await bench.run(words)
    assert done.code in {3, 4}, done.out + done.err
    assert "--port" in done.lines[-1]["error"]["try"]
    assert not bench.asked


async def test_an_updater_that_needs_no_modem_asks_one_all_the_same(bench: Bench) -> None:
    bench.use(WAYS["API key"])
    configuration.set_value("kit.mcuboot_port", str(bench.folder / "mcuboot"), profile="sim")
    for words in ("fota check", "fota pull"):
        done = await bench.run(words)
        assert done.code == 3, done.out + done.err
        assert not bench.asked


# --- the running agent


async def test_the_running_agent_and_what_goes_through_it_obey_the_gate(bench: Bench) -> None:
    async with moving_kit(bench.folder, firmware=OLD, model="nrf9160") as kit:
        keys = {
            "port": str(kit.port),
            "companion_port": str(kit.companion),
            "device_id": DEVICE,
            "console_port": "none",
        }
        environment = write_profile(bench.folder, bench.standin.ready, {"kit": keys})
        async with agent_on({**os.environ, **environment}) as agent:
            await agent.until("kit", "location", "off")
            for words in ("locate", "locate --with wifi", "locate --with ground-fix",
                          "assist agnss --filtered", "modem jwt"):  # fmt: skip
                done = await agent.run(*words.split(), "--port", str(kit.port), "--json")
                assert done.code == 4, (words, done.out + done.err)
                assert "1.2.7" in done.out
            checked = await agent.run("fota", "check", "--port", str(kit.port), "--json")
            assert checked.code == 0, checked.err
            await agent.stop()
    # The agent's own look and the command's: D1.4's exception, by the API key.
    api_key = bench.standin.bearer("api_key")["Authorization"]
    for asked in bench.asked:
        assert asked.path == f"/v1/fota-job-executions/{DEVICE}/current"
        assert asked.headers["authorization"] == api_key
